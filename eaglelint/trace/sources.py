"""What an expression holds, put into containers and taken out of them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from eaglelint.trace.graph import Source

if TYPE_CHECKING:
    from eaglelint.trace.places import Places

__all__ = ["dotted_path", "unwrap", "wrap"]


def wrap(sources: list[Source], position: str) -> list[Source]:
    """The same values, in a container."""
    return [(node, (*push, position)) for node, push in sources]


def unwrap(walker: Places, sources: list[Source], position: str, at: ast.expr) -> list[Source]:
    """What is at a position of a container. Where that is not written out here, a node stands for the part.

    ``*`` is any position; ``?`` any position of a list, and the whole of a tensor that is indexed.
    """
    found: list[Source] = []
    for source in sources:
        if source[1]:
            if source[1][-1] == position or "*" in (source[1][-1], position):
                found.append((source[0], source[1][:-1]))
            elif position == "?":
                found.append(source)
        else:
            part = walker.part(at, position)
            walker.graph.connect(source, part, pop=(position,))
            found.append((part, ()))
    return found


def dotted_path(node: ast.expr) -> str | None:
    """``self.model.layers`` as a text, None for anything that is not a name with attributes."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])
