"""Places in code as findings name them: lines and columns of a node, of a class or of a method."""

from __future__ import annotations

import libcst as cst

from eaglelint.finding import Position, Span
from eaglelint.source.index import ClassInfo, FunctionInfo
from eaglelint.source.slices import Site, Slice
from eaglelint.source.tree import SourceModule
from eaglelint.survey.facts import Place

__all__ = ["place_of", "place_of_definition", "place_of_node"]

_WIDTH = 160


def place_of(site: Site) -> Place:
    return place_of_node(site.slice, site.node)


def place_of_node(piece: Slice, node: cst.CSTNode) -> Place:
    """A node's place; a compound statement's is its first line."""
    line, column = piece.position(node)
    end = piece.end(node)
    one_line = end is not None and end[0] == line
    code = piece.code(node)
    return Place(
        Span(piece.path, Position(line, column), Position(*end) if one_line and end is not None else None),
        code if len(code) <= _WIDTH else code[: _WIDTH - 1] + "…",
    )


def place_of_definition(module: SourceModule, item: ClassInfo | FunctionInfo) -> Place:
    """The line with the name of a class or function, decorators left aside."""
    keyword = "class" if isinstance(item, ClassInfo) else "def"
    for number in range(item.line, item.end_line + 1):
        text = module.lines[number - 1]
        start = text.find(f"{keyword} {item.name}")
        if start >= 0:
            begin = start + len(keyword) + 1
            span = Span(module.display, Position(number, begin + 1), Position(number, begin + len(item.name) + 1))
            return Place(span, text.strip())
    return Place(Span.at(module.display, item.line), "")
