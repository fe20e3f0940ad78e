"""The values of a JSON document, each with its place."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from eaglelint.finding import Position, Span

__all__ = ["DuplicateKey", "Member", "Node", "NodeKind", "Problem", "SourceText"]

NodeKind = Literal["object", "array", "string", "number", "word"]
KeyPath = tuple[str, ...]

_CONTINUATION = bytes(range(0x80, 0xC0))


class SourceText:
    """The bytes of a document and the way from an offset to a line and column."""

    __slots__ = ("_ascii", "_line_starts", "data", "path")

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data
        self._ascii = data.isascii()
        self._line_starts = [0, *(match.end() for match in re.finditer(b"\n", data))]

    def position(self, offset: int) -> Position:
        line = bisect_right(self._line_starts, offset)
        start = self._line_starts[line - 1]
        if self._ascii:
            return Position(line, offset - start + 1)
        return Position(line, len(self.data[start:offset].translate(None, _CONTINUATION)) + 1)

    def span(self, start: int, end: int) -> Span:
        return Span(self.path, self.position(start), self.position(end))


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a document that is not JSON."""

    message: str
    span: Span


@dataclass(frozen=True, slots=True)
class DuplicateKey:
    """A key that stands twice in one object; readers of JSON take ``span``, the later one."""

    key_path: KeyPath
    span: Span
    first: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node:
    """One value of a document and its place.

    Attributes:
        kind: ``word`` is true, false or null.
        value: The value as plain Python data, as ``json.loads`` gives it.
        elements: The items of an array; empty for everything else.
        members: The values of an object by key, with the places of the keys.
        source: The text that ``start`` and ``end``, in bytes, are offsets into.
    """

    kind: NodeKind
    value: Any
    elements: tuple[Node, ...]
    members: dict[str, Member]
    source: SourceText
    start: int
    end: int

    def __repr__(self) -> str:
        return f"<{self.kind} node at {self.span}>"

    @property
    def span(self) -> Span:
        return self.source.span(self.start, self.end)

    def get(self, key: str) -> Node | None:
        """The value of ``key``; ``None`` where the key is not there or this is no object."""
        member = self.members.get(key)
        return None if member is None else member.node

    def key_span(self, key: str) -> Span | None:
        """Where ``key`` itself stands, quotes included."""
        member = self.members.get(key)
        return None if member is None else self.source.span(member.start, member.end)

    def items(self) -> Iterator[tuple[str, Node]]:
        """Keys and values of an object, each key once."""
        return ((key, member.node) for key, member in self.members.items())

    def find(self, *key_path: str) -> Node | None:
        """The value at the end of a key path; an element of an array is named by its index, as in ``"0"``."""
        node: Node | None = self
        for key in key_path:
            if node is None:
                return None
            if node.kind == "array":
                inside = key.isdecimal() and key.isascii() and len(key) < 10 and int(key) < len(node.elements)
                node = node.elements[int(key)] if inside else None
            else:
                node = node.get(key)
        return node


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A value of an object; ``start`` and ``end`` are the byte offsets of its key."""

    node: Node
    start: int
    end: int
