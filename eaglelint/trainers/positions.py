"""Rotary embeddings in training code that are handed positions and count by themselves.

A syntactic fact: the ``forward`` of a class with ``rotary`` in its name has a parameter for positions that its body
never names, and makes positions with ``arange``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import libcst as cst

from eaglelint.cache.units import remember
from eaglelint.source.slices import Slice
from eaglelint.source.tree import SourceModule
from eaglelint.source.walk import walk
from eaglelint.survey.facts import Place
from eaglelint.survey.places import place_of_node
from eaglelint.trainers.files import find_files, source_tree

__all__ = ["uncounted_positions"]

_POSITIONS = ("position_ids", "positions")


def uncounted_positions(paths: tuple[Path, ...], relative_to: Path) -> tuple[Place, ...]:
    """The parameter of every such ``forward`` in the files at and below the paths."""
    files = find_files(paths)
    tree = source_tree(paths, files, relative_to)

    def find() -> tuple[Place, ...]:
        readable = (file for file in files if tree.is_file(file) and b"otary" in tree.read(file))
        modules = (module for file in readable if (module := tree.module_at(file)) is not None)
        return tuple(place for module in modules for place in _in_module(module))

    parts = ([str(path) for path in (*paths, *files)], str(relative_to))
    return remember("uncounted positions", parts, tree.snapshot, find, display=tree.display)


def _in_module(module: SourceModule) -> Iterator[Place]:
    for cls in module.index.classes.values():
        forward = cls.methods.get("forward")
        if forward is None or "rotary" not in cls.name.lower():
            continue
        try:
            piece = module.slice(forward.line, forward.end_line)
        except SyntaxError:
            continue
        yield from _unread(piece)


def _unread(piece: Slice) -> Iterator[Place]:
    function = next((node for node in walk(piece.body[0]) if isinstance(node, cst.FunctionDef)), None)
    if function is None:
        return
    inside = list(walk(function.body))
    if not any(isinstance(node, cst.Call) and piece.code(node.func) == "torch.arange" for node in inside):
        return
    read = {node.value for node in inside if isinstance(node, cst.Name)}
    for parameter in (*function.params.params, *function.params.kwonly_params):
        if parameter.name.value in _POSITIONS and parameter.name.value not in read:
            yield place_of_node(piece, parameter)
