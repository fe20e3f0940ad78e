"""Small sources in a directory of their own, and functions of theirs run by the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from eaglelint.recursion import deep_recursion
from eaglelint.source.calls import call_value
from eaglelint.source.index import FunctionInfo
from eaglelint.source.machine import Machine
from eaglelint.source.tree import Binding, SourceTree
from eaglelint.source.values import Function

Sources = Callable[..., SourceTree]
Interpret = Callable[..., Any]


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    """Write files, by path, and open a tree over them."""

    def write(files: dict[str, str]) -> SourceTree:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), "utf-8")
        return SourceTree((tmp_path,), relative_to=tmp_path)

    return write


@pytest.fixture
def interpret(sources: Sources) -> Interpret:
    """What the interpreter makes of ``main()`` in a module of this source."""

    def run(source: str, *, args: tuple[Any, ...] = (), **files: str) -> Any:
        tree = sources({"program.py": source, **{f"{name}.py": text for name, text in files.items()}})
        return call_main(tree, args=args)

    return run


def call_main(tree: SourceTree, machine: Machine | None = None, args: tuple[Any, ...] = ()) -> Any:
    module = tree.module("program")
    assert module is not None, tree.unreadable
    found = tree.resolve(module, "main")
    assert isinstance(found, Binding) and isinstance(found.item, FunctionInfo)
    with deep_recursion():
        return call_value(machine or Machine(tree), Function(module, found.item), args, {}, None)
