"""The life of the value under the cursor, for "find all references": what ``eaglelint trace`` tells, as places."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from eaglelint.exceptions import EaglelintError
from eaglelint.finding import Position, Span
from eaglelint.overlay import overlaid
from eaglelint.project.discovery import display_path
from eaglelint.rule import Facts

__all__ = ["life_of", "word_at"]

_WORD = re.compile(r"\w+")


def word_at(text: str, position: Position) -> str | None:
    """The name at a place, of a variable or of a config's key; ``None`` where there is none."""
    lines = text.split("\n")
    if not 1 <= position.line <= len(lines):
        return None
    for match in _WORD.finditer(lines[position.line - 1]):
        if match.start() <= position.column - 1 <= match.end() and match.group().isidentifier():
            return match.group()
    return None


def life_of(
    path: Path, text: str, position: Position, root: Path, unsaved: Mapping[Path, bytes], facts: Sequence[Facts] = ()
) -> tuple[Span, ...]:
    """Where the value was made, what it becomes and where it goes.

    Args:
        path: The document, absolute.
        text: What it holds now.
        position: Where the cursor is.
        root: The workspace folder, in which code is looked through.
        unsaved: The texts of all open documents.
        facts: Of a draft's config: the sources of the engines that read it are looked through as well.
    """
    from eaglelint.trace import trace

    word = word_at(text, position)
    if word is None:
        return ()
    symbol = word if path.suffix != ".py" else _in_function(path, text, position, word)
    sources = {served.wiring.source for item in facts for served in item.servings if served.wiring.source}
    packages = [Path(source.partition("@")[2]) for source in sorted(sources)]
    with overlaid(unsaved):
        try:
            found = trace(symbol, [root, *(p for p in packages if not p.absolute().is_relative_to(root))])
        except EaglelintError:
            return ()
    return tuple(
        Span(item.path, Position(item.line, item.column), Position(item.line, item.column + len(item.name)))
        for item in found.occurrences
    )


def _in_function(path: Path, text: str, position: Position, word: str) -> str:
    """The symbol of a name where it stands: a local variable of one function is not that of another."""
    from eaglelint.source.outline import Outline, Unparsable

    try:
        block = Outline(path, str(path), text.encode("utf-8", "replace")).innermost(position.line)
    except Unparsable:
        return word
    while block is not None and block.kind != "def":
        block = block.parent
    return f"{display_path(path)}:{block.qualname if block is not None else ''}:{word}"
