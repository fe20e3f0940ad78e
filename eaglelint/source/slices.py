"""One function, or a few statements, read as a small module of its own: only what the interpretation reaches is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import libcst as cst

from eaglelint.source.read_statements import read_statements
from eaglelint.source.reading import NotRead, Reading

if TYPE_CHECKING:
    from libcst.metadata import CodeRange

__all__ = ["Site", "Slice", "parse_slice"]

_Ends = tuple[tuple[int, int], tuple[int, int]]
_EMPTY = cst.Module([])


@dataclass(eq=False, slots=True)
class _Parsed:
    """Statements that libcst's own parser read, with the same questions as a ``Reading`` answers."""

    module: cst.Module
    _positions: dict[cst.CSTNode, CodeRange] | None = None

    @property
    def body(self) -> tuple[cst.BaseStatement, ...]:
        return cast("tuple[cst.BaseStatement, ...]", tuple(self.module.body))

    def span(self, node: cst.CSTNode) -> _Ends | None:
        if self._positions is None:
            from libcst.metadata import MetadataWrapper, PositionProvider  # seldom needed, and slow to import

            wrapper = MetadataWrapper(self.module, unsafe_skip_copy=True)
            self._positions = cast("dict[cst.CSTNode, CodeRange]", wrapper.resolve(PositionProvider))
        found = self._positions.get(node)
        return None if found is None else ((found.start.line, found.start.column), (found.end.line, found.end.column))

    def code(self, node: cst.CSTNode) -> str | None:
        return self.module.code_for_node(node)


@dataclass(eq=False, slots=True)
class Slice:
    """Statements of one file, with the way back from a node to its line."""

    path: str
    body: tuple[cst.BaseStatement, ...]
    line_offset: int
    text: str
    _read: Reading | _Parsed
    _codes: dict[int, tuple[cst.CSTNode, str]] = field(default_factory=dict)
    # What evaluates its expressions (expressions.py), by their ids; with them, as a node that lives keeps its id.
    prepared: dict[int, tuple[cst.CSTNode, Any]] = field(default_factory=dict)

    def position(self, node: cst.CSTNode) -> tuple[int, int]:
        """Line and column, both 1-based, of a node of this slice in the file."""
        found = self._read.span(node)
        if found is None:
            return max(self.line_offset + 1, 1), 1
        (line, column), _ = found
        return line + self.line_offset, column + 1

    def end(self, node: cst.CSTNode) -> tuple[int, int] | None:
        """Line and column just behind a node, None where it has no place."""
        found = self._read.span(node)
        if found is None:
            return None
        _, (line, column) = found
        return line + self.line_offset, column + 1

    def code(self, node: cst.CSTNode) -> str:
        """The node as written, on one line."""
        found = self._codes.get(id(node))
        if found is None:
            written = self._read.code(node)
            code = _one_line(_EMPTY.code_for_node(node) if written is None else written)
            found = self._codes[id(node)] = node, code
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
    """Read the statements on ``line`` .. ``end_line`` (1-based, inclusive), whatever their indentation.

    Raises:
        SyntaxError: They are no Python.
    """
    chosen = lines[line - 1 : end_line]
    indented = bool(chosen) and chosen[0][:1] in " \t"
    text = "".join(chosen)
    if not text.endswith("\n"):
        text += "\n"
    # An indented function keeps its columns and its multi-line strings when it stands in a block of its own.
    source = "if True:\n" + text if indented else text
    try:
        read = _read(source)
    except (cst.ParserSyntaxError, RecursionError) as error:
        raise SyntaxError(f"{path}:{line}: {error}") from error
    body = read.body
    if indented:
        body = tuple(cast("Any", body[0]).body.body)
    return Slice(path, body, line - 1 - (1 if indented else 0), text, read)


def _read(source: str) -> Reading | _Parsed:
    try:
        return read_statements(source)
    except (NotRead, SyntaxError, ValueError, RecursionError, MemoryError):  # libcst also takes a newer Python's syntax
        return _Parsed(cst.parse_module(source))
