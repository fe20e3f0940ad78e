"""Cuts JSON text into tokens with byte offsets, so that a half-typed document can still be read.

The tree that tree-sitter recovers from a broken document may hang the whole file under one error node, so only
its leaves are used here. What lies between two leaves and is not white space becomes a ``junk`` token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tree_sitter import Language, Tree

__all__ = ["NON_FINITE", "Token", "TokenKind", "tokenize"]

TokenKind = Literal["{", "}", "[", "]", ",", ":", "string", "number", "word", "junk"]

# Python's json reads and writes these three; the JSON standard and the tree-sitter grammar know none of them.
NON_FINITE = {b"NaN": float("nan"), b"Infinity": float("inf"), b"-Infinity": float("-inf")}

_LEAVES: dict[str, TokenKind] = {
    "{": "{",
    "}": "}",
    "[": "[",
    "]": "]",
    ",": ",",
    ":": ":",
    "string": "string",
    "number": "number",
    "true": "word",
    "false": "word",
    "null": "word",
}
_WHITE_SPACE = b" \t\r\n"
# A string ends at its closing quote, or at the end of its line where the quote is not there yet. Numbers are here
# because the grammar (tree-sitter-json 0.24.8) refuses 1e+300, which is JSON.
_MASKED = re.compile(rb'"(?:[^"\\\r\n]|\\[^\r\n])*"?|-?(?:[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|Infinity)|NaN')


@dataclass(frozen=True, slots=True)
class Token:
    """One token and its byte offsets; ``end`` is exclusive."""

    kind: TokenKind
    start: int
    end: int


def tokenize(text: bytes) -> Iterator[Token]:
    """Yield the tokens of ``text`` in order; every byte that is not white space belongs to exactly one."""
    tree = _parse(text)
    if tree.root_node.has_error:
        # One open quote would turn the rest of the file inside out, so strings are closed first.
        tree = _parse(_MASKED.sub(_mask, text))
    position = 0
    for token in _leaves(tree, text):
        yield from _junk(text, position, token.start)
        yield token
        position = token.end
    yield from _junk(text, position, len(text))


@cache
def _language() -> Language:
    import tree_sitter
    import tree_sitter_json

    return tree_sitter.Language(tree_sitter_json.language())


def _parse(text: bytes) -> Tree:
    import tree_sitter

    return tree_sitter.Parser(_language()).parse(text)


def _mask(match: re.Match[bytes]) -> bytes:
    """Text of the same length that the grammar reads as the token that was meant."""
    found = match[0]
    if found.startswith(b'"'):
        return b'"' + b"x" * (len(found) - 2) + b'"' if len(found) > 1 else b" "
    return b"-" + b"1" * (len(found) - 1) if found.startswith(b"-") else b"1" * len(found)


def _leaves(tree: Tree, text: bytes) -> Iterator[Token]:
    cursor = tree.walk()
    position = 0
    while True:
        node = cursor.node
        assert node is not None
        kind = _LEAVES.get(node.type)
        start, end = node.start_byte, node.end_byte
        if node.type == '"' and start >= position:
            # Error recovery can leave the parts of a string without the string.
            string = _MASKED.match(text, start)
            if string is not None and len(string[0]) > 1:
                kind, end = "string", string.end()
        if kind is not None and position <= start < end:
            yield Token(kind, start, end)
            position = end
        if kind is None and cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def _junk(text: bytes, start: int, end: int) -> Iterator[Token]:
    gap = text[start:end]
    if gap.strip(_WHITE_SPACE):
        start += len(gap) - len(gap.lstrip(_WHITE_SPACE))
        yield Token("junk", start, start + len(gap.strip(_WHITE_SPACE)))
