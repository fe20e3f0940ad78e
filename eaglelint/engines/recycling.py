"""An engine that drafts several tokens in a row: what it hands a draft first, and what the draft hands itself then."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from eaglelint.engines.base import EngineSource
from eaglelint.source.machine import Machine
from eaglelint.source.tree import Binding, SourceModule

__all__ = ["RecyclesStates", "builds_on", "made_of"]

_IMPORT = re.compile(r"import[ \t]+([\w.]+)")
_FROM = re.compile(r"from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)")


@runtime_checkable
class RecyclesStates(Protocol):
    """Where the last state of the target, and then the draft's own, goes to the draft's next step.

    Each run gives the state that is handed on and the one that the head of the same model reads, as the engine takes
    them of that model; None where it hands on something of another kind.
    """

    def prepare(self, machine: Machine, source: EngineSource, kind: str) -> None:
        """Set up intercepts for a run."""

    def may_differ(self, source: EngineSource, path: Path) -> bool:
        """Whether a file's model, or one that is made of its layers, may hand on another state than its head reads.

        A test on the text of their files.
        """

    def targets_of(self, source: EngineSource, module: SourceModule) -> Iterator[Binding]:
        """The classes of targets that a file defines, and then those of files that import from it.

        None where the file defines no target: what it holds is no target's own.
        """

    def hands_first(self, machine: Machine, source: EngineSource, target: Binding) -> tuple[Any, Any] | None:
        """Run the target, whose state the draft is handed at its first step."""

    def hands_on(self, machine: Machine, source: EngineSource, draft: Binding) -> tuple[Any, Any] | None:
        """Run the draft, whose state it is handed at each later step."""


def builds_on(text: bytes, module: SourceModule) -> bool:
    """Whether a file imports from a module of that name: its models may be made of that one's layers."""
    name = module.name.rpartition(".")[2].encode()
    if name not in text:
        return False
    found = re.finditer(rb"from\s+[\w.]*\b%s\s+import\b" % re.escape(name), text)  # fast, as it begins with a literal
    return any(not text[text.rfind(b"\n", 0, each.start()) + 1 : each.start()].strip() for each in found)


def made_of(source: EngineSource, directory: Path, path: Path) -> Iterator[Path]:
    """A file, and those of a directory that it imports from, or that those import from: a test on text."""
    files = source.tree.once(("modules", directory), partial(_modules, source, directory))
    pending, seen = [path], {path}
    while pending:
        current = pending.pop()
        yield current
        for name in source.tree.once(("imported", current), partial(_imported, source, current)):
            file = files.get(name) or files.get(f"{name}.__init__")
            if file is not None and file not in seen:
                seen.add(file)
                pending.append(file)


def _modules(source: EngineSource, directory: Path) -> dict[str, Path]:
    """The files of a directory, by the names under which they are imported."""
    above = source.package.parent
    return {".".join(file.relative_to(above).with_suffix("").parts): file for file in source.tree.files(directory)}


def _imported(source: EngineSource, path: Path) -> frozenset[str]:
    """The modules that a file's import statements may name."""
    text = source.tree.read(path).decode("utf-8", "replace")
    found = set(_IMPORT.findall(text))
    for dots, module, listed in _FROM.findall(text):
        place = path.parents[len(dots) - 1].relative_to(source.package.parent).parts if dots else ()
        name = ".".join((*place, *([module] if module else [])))
        found |= {name, *(f"{name}.{each}" for each in re.findall(r"\w+", listed))}
    return frozenset(found)
