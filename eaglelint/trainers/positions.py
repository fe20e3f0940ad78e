"""How training code turns heads by positions: which two numbers together, and whether by what it was handed.

Syntactic facts. The ``forward`` of a class with ``rotary`` in its name has a parameter for positions that its body
never names, and makes positions with ``arange``. A function with ``rotate`` or ``rotary`` in its name takes every
second number of a head, or its halves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import libcst as cst

from eaglelint.cache.units import remember
from eaglelint.source.slices import Slice
from eaglelint.source.tree import SourceModule
from eaglelint.source.walk import walk
from eaglelint.survey.facts import Place, Rotary
from eaglelint.survey.places import place_of_node
from eaglelint.survey.readers import functions_of
from eaglelint.trainers.files import find_files, source_tree

__all__ = ["trained_rotary", "uncounted_positions"]

_T = TypeVar("_T")

_POSITIONS = ("position_ids", "positions")
_ROTATES = re.compile(r"rotate|rotary|rope", re.IGNORECASE)


def uncounted_positions(paths: tuple[Path, ...], relative_to: Path) -> tuple[Place, ...]:
    """The parameter of every such ``forward`` in the files at and below the paths."""
    return _in_files("uncounted positions", paths, relative_to, b"otary", _in_module)


def trained_rotary(paths: tuple[Path, ...], relative_to: Path) -> Rotary | None:
    """Which numbers the files at and below the paths turn together; None where they do not say, or differ."""
    found = _in_files("trained rotary", paths, relative_to, b"rot", _turned_in)
    return found[0] if len({rotary.layout for rotary in found}) == 1 else None


def _in_files(
    what: str, paths: tuple[Path, ...], relative_to: Path, mark: bytes, look: Callable[[SourceModule], Iterator[_T]]
) -> tuple[_T, ...]:
    """What ``look`` finds in each file that holds the mark."""
    files = find_files(paths)
    tree = source_tree(paths, files, relative_to)

    def find() -> tuple[_T, ...]:
        readable = (file for file in files if tree.is_file(file) and mark in tree.read(file))
        modules = (module for file in readable if (module := tree.module_at(file)) is not None)
        return tuple(found for module in modules for found in look(module))

    parts = ([str(path) for path in (*paths, *files)], str(relative_to))
    return remember(what, parts, tree.snapshot, find, display=tree.display)


def _turned_in(module: SourceModule) -> Iterator[Rotary]:
    for name, info in functions_of(module):
        if not _ROTATES.search(name.rpartition(".")[2]):
            continue
        try:
            piece = module.slice(info.line, info.end_line)
        except SyntaxError:
            continue
        yield from _turned(piece)


def _turned(piece: Slice) -> Iterator[Rotary]:
    """``x[..., ::2]`` and pairs along a new axis are neighbours; ``x[..., : n // 2]`` and two chunks are halves."""
    for node in walk(piece.body[0]):
        match node:
            case cst.Slice(step=cst.Integer(value="2")):
                yield Rotary("interleaved", place_of_node(piece, node))
            case cst.Slice(lower=lower, upper=upper) if any(
                isinstance(end, cst.BinaryOperation) and isinstance(end.operator, cst.FloorDivide)
                for end in (lower, upper)
            ):
                yield Rotary("half-split", place_of_node(piece, node))
            case cst.Call(func=func, args=[*_, cst.Arg(value=cst.Integer(value="2"), keyword=None)]) if piece.code(
                func
            ).endswith((".reshape", ".view")):
                yield Rotary("interleaved", place_of_node(piece, node))
            case cst.Call(func=func) if piece.code(func).endswith("view_as_complex"):
                yield Rotary("interleaved", place_of_node(piece, node))
            case cst.Call(func=func, args=[*_]) if piece.code(func).endswith(".chunk") and "2" in [
                piece.code(argument.value) for argument in node.args
            ]:
                yield Rotary("half-split", place_of_node(piece, node))


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
