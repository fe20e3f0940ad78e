"""Builds the nodes of a JSON document from its tokens; whatever is wrong becomes a problem with a place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from eaglelint.artifacts.json_nodes import DuplicateKey, Member, Node, NodeKind, Problem, SourceText
from eaglelint.artifacts.json_tokens import NON_FINITE, Token

__all__ = ["MAX_DEPTH", "TreeBuilder"]

MAX_DEPTH = 200
"""Deepest nesting that is read; a model config needs about six, and json itself gives up near 1,000."""
MAX_PROBLEMS = 100
"""Most problems that are noted for one document; behind them it is not read."""
MAX_DIGITS = 4300  # the limit of Python's own int()

_PLAIN_STRING = re.compile(rb'"[^"\\\x00-\x1f]*"')
_CLOSED_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORDS = {b"true": True, b"false": False, b"null": None}
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}
_CLOSER = {"object": "}", "array": "]"}
_NOUN = {"object": "object", "array": "list"}


@dataclass(frozen=True, slots=True)
class _Key:
    text: str
    start: int
    end: int


@dataclass(slots=True)
class _Frame:
    """An object or array that is still open; ``expects`` is what may stand next."""

    kind: Literal["object", "array"]
    start: int
    expects: Literal["first", "key", "colon", "value", "comma"] = "first"
    key: _Key | None = None
    elements: list[Node] = field(default_factory=list)
    members: dict[str, Member] = field(default_factory=dict)
    last: str | None = None


class _Stop(Exception):
    """The rest of the document is not worth reading; what was read so far stands."""


class TreeBuilder:
    """Reads tokens into nodes without recursion; a mistake is noted, and reading goes on behind it."""

    def __init__(self, source: SourceText) -> None:
        self.root: Node | None = None
        self.problems: list[tuple[int, Problem]] = []
        self.duplicate_keys: list[DuplicateKey] = []
        self._source = source
        self._stack: list[_Frame] = []
        self._end = 0

    def read(self, tokens: Iterable[Token]) -> None:
        try:
            for token in tokens:
                self._feed(token)
                self._end = token.end
            if self._stack:
                frame = self._stack[-1]
                opened = self._source.position(frame.start)
                size = len(self._source.data)
                self._problem(
                    f"the file ends inside the {_NOUN[frame.kind]} opened at line {opened.line}, "
                    f"column {opened.column}; close it with {_CLOSER[frame.kind]}",
                    size,
                    size,
                )
        except _Stop:
            pass
        while self._stack:
            self._close(self._end)

    def _problem(self, message: str, start: int, end: int) -> None:
        self.problems.append((start, Problem(message, self._source.span(start, end))))
        if len(self.problems) >= MAX_PROBLEMS:
            raise _Stop

    def _feed(self, token: Token) -> None:
        match token.kind:
            case "{" | "[":
                self._begin_value(token)
                if len(self._stack) >= MAX_DEPTH:
                    self._problem(f"nested deeper than {MAX_DEPTH} levels", token.start, token.end)
                    raise _Stop
                self._stack.append(_Frame("object" if token.kind == "{" else "array", token.start))
            case "}" | "]":
                self._end_container(token)
            case ",":
                self._comma(token)
            case ":":
                self._colon(token)
            case "junk":
                self._junk(token)
            case "string" | "number" | "word":
                self._scalar(token)

    def _begin_value(self, token: Token) -> None:
        """Check that a value may stand here; where a key is missing, the value is read and dropped."""
        if not self._stack:
            if self.root is not None:
                self._problem("more text after the end of the document", token.start, token.end)
            return
        frame = self._stack[-1]
        if frame.expects == "comma":
            self._problem(f"expected ',' or '{_CLOSER[frame.kind]}' before this", token.start, token.end)
        elif frame.expects == "colon":
            self._problem("expected ':' after the key", token.start, token.end)
        elif frame.kind == "object" and frame.expects in ("first", "key"):
            self._problem("expected a key in double quotes", token.start, token.end)

    def _scalar(self, token: Token) -> None:
        frame = self._stack[-1] if self._stack else None
        is_key = token.kind == "string" and frame is not None and frame.kind == "object" and frame.expects != "value"
        if frame is None or not is_key:
            self._begin_value(token)
            self._add(self._node(token))
            return
        # A string where ',' or ':' is missing is far more often the next key than a value.
        if frame.expects == "comma":
            self._problem("expected ',' or '}' before this key", token.start, token.end)
        elif frame.expects == "colon":
            self._problem("expected ':' after the key before this one", token.start, token.end)
        frame.key = _Key(self._string(token), token.start, token.end)
        frame.expects = "colon"

    def _comma(self, token: Token) -> None:
        frame = self._stack[-1] if self._stack else None
        if frame is None:
            self._problem("a ',' outside of any object or list", token.start, token.end)
            return
        if frame.expects == "colon":
            self._problem("expected ':' and a value after the key", token.start, token.end)
        elif frame.expects != "comma":
            missing = "value" if frame.kind == "array" or frame.expects == "value" else "key"
            self._problem(f"expected a {missing} before ','", token.start, token.end)
        frame.key = None
        frame.expects = "key" if frame.kind == "object" else "value"

    def _colon(self, token: Token) -> None:
        frame = self._stack[-1] if self._stack else None
        if frame is not None and frame.expects == "colon":
            frame.expects = "value"
            return
        self._problem("a ':' that does not follow a key", token.start, token.end)
        if frame is None or frame.kind != "object" or frame.expects != "comma" or frame.last is None:
            return
        previous = frame.members[frame.last].node
        if previous.kind == "string":
            # `"a": "b": 1` is a key whose value is not typed yet, followed by the next key.
            del frame.members[frame.last]
            frame.key = _Key(previous.value, previous.start, previous.end)
            frame.expects = "value"

    def _end_container(self, token: Token) -> None:
        kind = "object" if token.kind == "}" else "array"
        if all(frame.kind != kind for frame in self._stack):
            self._problem(f"a '{token.kind}' that closes nothing", token.start, token.end)
            return
        while self._stack[-1].kind != kind:
            frame = self._stack[-1]
            opened = self._source.position(frame.start)
            self._problem(
                f"expected '{_CLOSER[frame.kind]}' to close the {_NOUN[frame.kind]} opened at line {opened.line}, "
                f"column {opened.column}, found '{token.kind}'",
                token.start,
                token.end,
            )
            self._close(self._end)
        expects = self._stack[-1].expects
        if expects == "colon":
            self._problem("expected ':' and a value after the key", token.start, token.end)
        elif expects in ("key", "value"):
            trailing = self._stack[-1].key is None
            message = f"a ',' right before '{token.kind}'" if trailing else f"expected a value before '{token.kind}'"
            self._problem(message, token.start, token.end)
        self._close(token.end)

    def _close(self, end: int) -> None:
        frame = self._stack.pop()
        value: Any = (
            {key: member.node.value for key, member in frame.members.items()}
            if frame.kind == "object"
            else [element.value for element in frame.elements]
        )
        self._add(Node(frame.kind, value, tuple(frame.elements), frame.members, self._source, frame.start, end))

    def _add(self, node: Node) -> None:
        if not self._stack:
            self.root = self.root or node
            return
        frame = self._stack[-1]
        frame.last = None
        if frame.kind == "array":
            frame.elements.append(node)
        elif frame.key is not None and frame.expects != "comma":
            key = frame.key
            first = frame.members.get(key.text)
            if first is not None and len(self.duplicate_keys) < MAX_PROBLEMS:
                path = (*self._path(), key.text)
                span = self._source.span(key.start, key.end)
                self.duplicate_keys.append(DuplicateKey(path, span, self._source.span(first.start, first.end)))
            frame.members[key.text] = Member(node, key.start, key.end)
            frame.last = key.text
        frame.key = None
        frame.expects = "comma"

    def _path(self) -> tuple[str, ...]:
        """The key path of the innermost open container."""
        path = []
        for frame in self._stack[:-1]:
            path.append(str(len(frame.elements)) if frame.kind == "array" else frame.key.text if frame.key else "")
        return tuple(path)

    def _node(self, token: Token) -> Node:
        text = self._source.data[token.start : token.end]
        value: Any
        kind: NodeKind
        if token.kind == "string":
            kind, value = "string", self._string(token)
        elif token.kind == "word":
            kind, value = "word", _WORDS[text]
        else:
            kind, value = "number", self._number(token, text)
        return Node(kind, value, (), {}, self._source, token.start, token.end)

    def _number(self, token: Token, text: bytes) -> int | float | None:
        if text in NON_FINITE:
            return NON_FINITE[text]
        match = _NUMBER.fullmatch(text)
        if match is None:
            self._problem(f"{_excerpt(text)} is not a JSON number", token.start, token.end)
            return None
        if match[1] or match[2]:
            return float(text)
        if len(text) > MAX_DIGITS:
            self._problem(f"a number of {len(text)} digits", token.start, token.end)
            return None
        return int(text)

    def _string(self, token: Token) -> str:
        text = self._source.data[token.start : token.end]
        if _PLAIN_STRING.fullmatch(text):
            return text[1:-1].decode("utf-8", "replace")
        decoded = text.decode("utf-8", "replace")
        if _CLOSED_STRING.fullmatch(text) is None:
            self._problem("a string that is not closed on its line; add '\"'", token.start, token.end)
            return decoded[1:]
        try:
            value = json.loads(decoded)
        except ValueError:
            self._problem("a string with a bare control character or an unknown escape", token.start, token.end)
            return decoded[1:-1]
        return value if isinstance(value, str) else decoded[1:-1]

    def _junk(self, token: Token) -> None:
        text = self._source.data[token.start : token.end]
        word = text.decode("utf-8", "replace")
        if word.startswith(("//", "/*", "#")):
            message = "JSON has no comments"
        elif word.startswith("'"):
            message = "JSON strings and keys stand in double quotes"
        elif word in _PYTHON_WORDS:
            message = f"{word} is Python; JSON writes {_PYTHON_WORDS[word]}"
        else:
            message = f"{_excerpt(text)} is not JSON"
        self._problem(message, token.start, token.end)


def _excerpt(text: bytes) -> str:
    shown = text[:24].decode("utf-8", "replace")
    return ascii(shown) if len(text) <= 24 else f"{shown!a}..."
