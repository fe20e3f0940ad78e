"""Which variables of a function may be read after a statement: a difference in the others keeps no paths apart."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from eaglelint.source.slices import Slice
from eaglelint.source.walk import walk

__all__ = ["read_after"]

_LOOPS = (cst.For, cst.While)
# What is called at any time, and what names variables of a scope around.
_NESTED = frozenset([cst.FunctionDef, cst.Lambda, cst.ClassDef, cst.Nonlocal, cst.Global])


def read_after(statement: cst.If, piece: Slice) -> frozenset[str] | None:
    """The names that stand behind an ``if`` or in what can run behind it; None where that is not known."""
    function = next((part for part in piece.body if isinstance(part, cst.FunctionDef)), None)
    if function is None:
        return None
    known = piece.prepared.get(id(function.name))  # as the function's own is what runs it
    if known is None:
        after: dict[int, frozenset[str]] = {}
        _note(function.body, _in_nested(function.body), after)
        known = piece.prepared[id(function.name)] = function.name, after
    found: dict[int, frozenset[str]] = known[1]
    return found.get(id(statement))


def _in_nested(body: cst.CSTNode) -> frozenset[str]:
    """The names in functions inside, and those that belong to a scope around."""
    parts = [node for node in walk(body) if type(node) in _NESTED]
    return frozenset().union(*map(_names, parts)) if parts else frozenset()


def _names(node: cst.CSTNode) -> frozenset[str]:
    return frozenset(part.value for part in walk(node) if type(part) is cst.Name)


def _note(suite: cst.CSTNode | None, after: frozenset[str], found: dict[int, frozenset[str]]) -> None:
    """Note for each ``if`` in a suite what is read after it; ``after`` is what is read after the suite."""
    if not isinstance(suite, cst.IndentedBlock):
        return
    for statement in reversed(suite.body):
        _note_in(statement, after, found)
        after |= _names(statement)


def _note_in(statement: cst.CSTNode, after: frozenset[str], found: dict[int, frozenset[str]]) -> None:
    if isinstance(statement, cst.If):
        found[id(statement)] = after
        _note(statement.body, after, found)
        orelse = statement.orelse
        if isinstance(orelse, cst.If):
            _note_in(orelse, after, found)
        elif orelse is not None:
            _note(orelse.body, after, found)
    elif isinstance(statement, _LOOPS):
        _note(statement.body, after | _names(statement), found)
    elif isinstance(statement, cst.With):
        _note(statement.body, after, found)
    elif isinstance(statement, cst.Try | cst.TryStar):
        rest: Sequence[cst.CSTNode] = [*statement.handlers]
        rest = [*rest, *(part for part in (statement.orelse, statement.finalbody) if part is not None)]
        _note(statement.body, after.union(*map(_names, rest)), found)
