"""One function, or a few statements, parsed by libcst as a small module of its own.

Parsing whole files costs several times more, and positions double it: so only what the
interpretation reaches is parsed, and positions are computed for the slices that end up as evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

__all__ = ["Site", "Slice", "parse_slice"]


@dataclass(eq=False, slots=True)
class Slice:
    """Statements of one file, with the way back from a node to its line."""

    path: str
    module: cst.Module
    body: tuple[cst.BaseStatement, ...]
    line_offset: int
    _positions: dict[cst.CSTNode, CodeRange] | None = field(default=None)
    _codes: dict[int, tuple[cst.CSTNode, str]] = field(default_factory=dict)
    # What evaluates its expressions (expressions.py), by their ids; with them, as a node that lives keeps its id.
    prepared: dict[int, tuple[cst.CSTNode, Any]] = field(default_factory=dict)

    def position(self, node: cst.CSTNode) -> tuple[int, int]:
        """Line and column, both 1-based, of a node of this slice in the file."""
        if self._positions is None:
            wrapper = MetadataWrapper(self.module, unsafe_skip_copy=True)
            self._positions = cast("dict[cst.CSTNode, CodeRange]", wrapper.resolve(PositionProvider))
        found = self._positions.get(node)
        if found is None:
            return max(self.line_offset + 1, 1), 1
        return found.start.line + self.line_offset, found.start.column + 1

    def end(self, node: cst.CSTNode) -> tuple[int, int] | None:
        """Line and column just behind a node, None where it has no place."""
        self.position(node)
        found = (self._positions or {}).get(node)
        return None if found is None else (found.end.line + self.line_offset, found.end.column + 1)

    def code(self, node: cst.CSTNode) -> str:
        """The node as written, on one line."""
        found = self._codes.get(id(node))
        if found is None:
            found = self._codes[id(node)] = node, _one_line(self.module.code_for_node(node))
        return found[1]


@dataclass(slots=True, unsafe_hash=True)
class Site:
    """A place in the code that an interpretation passed; its line is computed when someone asks."""

    slice: Slice
    node: cst.CSTNode
    _callee: tuple[str, str] | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def path(self) -> str:
        return self.slice.path

    @property
    def line(self) -> int:
        return self.slice.position(self.node)[0]

    @property
    def code(self) -> str:
        return self.slice.code(self.node)

    @property
    def callee(self) -> tuple[str, str]:
        """What is called here, as it is written, and the last of its names; empty where nothing is called."""
        if self._callee is None:
            name = self.slice.code(self.node.func) if isinstance(self.node, cst.Call) else ""
            self._callee = name, name.rsplit(".", 1)[-1]
        return self._callee

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


def _one_line(code: str) -> str:
    """Code without comments and line breaks; strings with a ``#`` in them are rare here and lose only their tail."""
    lines = (
        line.split("#", 1)[0].strip() if line.lstrip().startswith("#") else line.strip() for line in code.split("\n")
    )
    joined = " ".join(line for line in lines if line)
    return joined.replace("( ", "(").replace(" )", ")").replace("[ ", "[").replace(" ]", "]").replace(", )", ")")


def parse_slice(path: str, lines: list[str], line: int, end_line: int) -> Slice:
    """Parse the statements on ``line`` .. ``end_line`` (1-based, inclusive), whatever their indentation.

    Raises:
        SyntaxError: libcst does not take what ``ast`` took.
    """
    chosen = lines[line - 1 : end_line]
    indented = bool(chosen) and chosen[0][:1] in " \t"
    text = "".join(chosen)
    if not text.endswith("\n"):
        text += "\n"
    # An indented function keeps its columns and its multi-line strings when it stands in a block of its own.
    source = "if True:\n" + text if indented else text
    try:
        module = cst.parse_module(source)
    except (cst.ParserSyntaxError, RecursionError) as error:
        raise SyntaxError(f"{path}:{line}: {error}") from error
    if indented:
        block = cast("cst.If", module.body[0]).body
        body = tuple(cast("cst.IndentedBlock", block).body)
    else:
        body = tuple(cast("tuple[cst.BaseStatement, ...]", module.body))
    return Slice(path, module, body, line - 1 - (1 if indented else 0))
