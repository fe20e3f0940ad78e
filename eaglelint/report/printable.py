"""Makes text from scanned files safe to print: no character of theirs may steer the terminal or break a line."""

from __future__ import annotations

import unicodedata

__all__ = ["one_line", "printable"]

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Controls, invisible formatting (bidirectional overrides among it), lone surrogates and line separators.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def printable(text: str) -> str:
    """The text with every unsafe character replaced by U+FFFD, one for one, so that columns stay right."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_REPLACEMENT if unicodedata.category(character) in _UNSAFE else character for character in text)


def one_line(text: str) -> str:
    """As ``printable``, with line breaks and tabs as spaces."""
    return printable(" ".join(text.split()) if any(c in text for c in "\n\r\t") else text)
