"""What was read of a text: libcst's nodes, and the place in the text that each one came from.

libcst's parser keeps each blank and each comment in an object of its own, which an interpretation never looks at, and
which take most of its time. So texts are read by Python's own parser, and each of its nodes becomes the node of libcst
that means the same, with libcst's default layout (read_statements.py, read_expressions.py).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, NamedTuple, Protocol, TypeVar

import libcst as cst

from eaglelint.source.outline import characters

__all__ = ["NotRead", "Placed", "Reading", "Span", "altered", "name_node", "new_node", "plain_node"]


class NotRead(Exception):
    """What only libcst's parser reads: ``match``, ``except*``, ``type``, type parameters and what is newer."""


class Placed(Protocol):
    """Where something stands: lines from 1, columns in UTF-8 bytes from 0, as ``ast`` has them."""

    @property
    def lineno(self) -> int: ...
    @property
    def col_offset(self) -> int: ...
    @property
    def end_lineno(self) -> int | None: ...
    @property
    def end_col_offset(self) -> int | None: ...


class Span(NamedTuple):
    """A place that no node of ``ast`` has."""

    lineno: int
    col_offset: int
    end_lineno: int | None
    end_col_offset: int | None


@dataclass(eq=False, slots=True)
class Reading:
    """The statements of a text, and where their nodes stand, by the nodes' ids.

    What is written at one of ``places`` is its node, parentheses around it left out. A node that has no such place is
    ``near`` one: a part of a string, a name in an import.
    """

    lines: list[str]
    body: tuple[cst.BaseStatement, ...] = ()
    places: dict[int, Placed] = field(default_factory=dict)
    near: dict[int, Placed] = field(default_factory=dict)

    def node_of(self, node: ast.AST, kinds: Mapping[type[Any], Callable[[Any, Reading], Any]]) -> Any:
        """The node of libcst that means the same as one of ``ast``, which is of one of these kinds.

        Raises:
            NotRead: It is of none.
        """
        convert = kinds.get(node.__class__)
        if convert is None:
            raise NotRead(node.__class__.__name__)
        found = convert(node, self)
        self.places[id(found)] = node  # type: ignore[assignment]
        return found

    def span(self, node: cst.CSTNode) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """Where a node begins and ends: lines from 1, columns in characters from 0; None where it has no place."""
        place = self.places.get(id(node)) or self.near.get(id(node))
        return None if place is None else self._ends(place)

    def code(self, node: cst.CSTNode) -> str | None:
        """A node as it is written; None where it has no place of its own."""
        place = self.places.get(id(node))
        return None if place is None else self.text(place)

    def text(self, place: Placed) -> str:
        """What is written at a place."""
        (line, start), (last, end) = self._ends(place)
        if line == last:
            return self.lines[line - 1][start:end]
        return "\n".join([self.lines[line - 1][start:], *self.lines[line : last - 1], self.lines[last - 1][:end]])

    def begins_line(self, place: Placed) -> bool:
        """Whether nothing but blanks stands before a place on its line."""
        line = self.lines[place.lineno - 1]
        return not line[: characters(line, place.col_offset)].strip()

    def _ends(self, place: Placed) -> tuple[tuple[int, int], tuple[int, int]]:
        line, last = place.lineno, place.end_lineno or place.lineno
        start = characters(self.lines[line - 1], place.col_offset)
        return (line, start), (last, characters(self.lines[last - 1], place.end_col_offset or 0))


_new_object = object.__new__
_Put = Callable[[Any, Any], None]
_parts: dict[type[Any], list[tuple[str, _Put, Any]]] = {}


def new_node(kind: type[Any], **given: Any) -> Any:
    """A node without the checks that its own ``__init__`` makes: Python's parser has made them."""
    parts = _parts.get(kind)
    if parts is None:
        parts = _parts[kind] = [_part(kind, each) for each in fields(kind)]
    node = _new_object(kind)
    for name, put, default in parts:
        put(node, given.get(name, default))
    return node


def _part(kind: type[Any], part: Field[Any]) -> tuple[str, _Put, Any]:
    """A field's name, what sets it past the guard of a frozen class, and its default."""
    default = part.default if part.default_factory is MISSING else part.default_factory()
    slot = next(cls.__dict__[part.name] for cls in kind.__mro__ if part.name in cls.__dict__)
    return part.name, slot.__set__, default


_Node = TypeVar("_Node", bound=cst.CSTNode)


def altered(node: _Node, **changes: Any) -> _Node:
    """A node with other parts, as ``with_changes`` gives it, without its checks."""
    kind = node.__class__
    return new_node(kind, **{each.name: getattr(node, each.name) for each in fields(kind)} | changes)  # type: ignore[no-any-return]


_plain: dict[type[Any], Any] = {}


def plain_node(kind: type[Any]) -> Any:
    """The node of an operator, of which one is as good as another."""
    if kind not in _plain:
        _plain[kind] = new_node(kind)
    return _plain[kind]


def name_node(value: str, place: Placed, reading: Reading) -> cst.Name:
    """A name that a text only has as a part of something else, which stands at ``place``."""
    node = new_node(cst.Name, value=value)
    reading.near[id(node)] = place
    return node  # type: ignore[no-any-return]
