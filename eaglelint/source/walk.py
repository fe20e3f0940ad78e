"""Walking libcst nodes without its visitors, which spend most of their time on whitespace."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

__all__ = ["children", "walk"]

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

_fields: dict[type, tuple[str, ...]] = {}


def children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes directly below a node, in order, layout and annotations left out."""
    kind = type(node)
    names = _fields.get(kind)
    if names is None:
        all_names: tuple[str, ...] = tuple(kind.__dataclass_fields__)
        names = _fields[kind] = tuple(
            name for name in all_names if name not in _SKIPPED and not any(mark in name for mark in _LAYOUT)
        )
    for name in names:
        value = getattr(node, name)
        if type(value) in (list, tuple):
            for item in value:
                if isinstance(item, cst.CSTNode):
                    yield item
        elif value is not None and type(value) is not str and isinstance(value, cst.CSTNode):
            yield value


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and everything below it, parents first."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack += reversed(list(children(current)))
