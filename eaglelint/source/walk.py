"""Walking libcst nodes without its visitors, which spend most of their time on whitespace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import Any

import libcst as cst

__all__ = ["children", "is_statement", "walk"]

# Fields that hold layout, or annotations, never code that runs.
_LAYOUT = (
    "whitespace",
    "lpar",
    "rpar",
    "lbracket",
    "rbracket",
    "lbrace",
    "rbrace",
    "comma",
    "semicolon",
    "lines",
    "header",
)
_SKIPPED = frozenset(
    ["annotation", "equal", "footer", "dot", "star", "colon", "trailing_whitespace", "asynchronous", "returns"]
)

# What a field holds besides nodes.
_PLAIN = frozenset([str, bool, type(None), cst.MaybeSentinel])

_fields: dict[type[Any], tuple[str, ...]] = {}


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes directly below a node, in order, layout and annotations left out."""
    kind: type[Any] = node.__class__
    names = _fields.get(kind)
    if names is None:
        own = [each.name for each in fields(kind)]
        names = _fields[kind] = tuple(
            name for name in own if name not in _SKIPPED and not any(mark in name for mark in _LAYOUT)
        )
    found: list[cst.CSTNode] = []
    for name in names:
        value = getattr(node, name)
        kind = value.__class__
        if kind is list or kind is tuple:
            found += value
        elif kind not in _PLAIN:
            found.append(value)
    return found


def is_statement(node: cst.CSTNode) -> bool:
    """``isinstance(node, cst.BaseStatement)``, told once for each class: libcst's are abstract, and slow to ask."""
    return _is_statement(node.__class__)


@cache
def _is_statement(kind: type[Any]) -> bool:
    return issubclass(kind, cst.BaseStatement)


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and everything below it, parents first."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack += reversed(children(current))
