"""The one source line that a finding points at, cut to fit and underlined; a file that cannot be shown gives none."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len

from eaglelint.finding import Span
from eaglelint.overlay import unsaved_text
from eaglelint.report.printable import printable

__all__ = ["Excerpt", "excerpt", "read_line"]

_TAB = "    "
_LEFT_OUT = "⋯"
_MOST_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A line as it is shown; ``indent`` and ``length`` place the underline below it, in terminal cells."""

    text: str
    indent: int
    length: int


def read_line(path: Path, number: int) -> str | None:
    """Line ``number`` (1-based) of a file, or ``None`` where there is none fit to show.

    A path may name a device, a checkpoint of many gigabytes or nothing at all by now, so only a regular
    file is opened, and not more than 16 MiB of it are read.
    """
    unsaved = unsaved_text(path)
    try:
        if unsaved is None and not path.is_file():
            return None
        with path.open("rb") if unsaved is None else io.BytesIO(unsaved) as file:
            left = _MOST_BYTES
            for _ in range(number):
                line = file.readline(left)
                left -= len(line)
                if not line.endswith(b"\n") and left <= 0:
                    return None
    except (OSError, ValueError):
        return None
    if not line or b"\0" in line:
        return None
    return line.decode("utf-8-sig" if number == 1 else "utf-8", "replace").rstrip("\r\n")


def excerpt(line: str, span: Span, width: int) -> Excerpt:
    """The part of ``line`` around ``span`` that fits into ``width`` cells."""
    shown = [_TAB if character == "\t" else printable(character) for character in line]
    start = min(span.start.column - 1, len(shown))
    end = len(shown)
    if span.end is None:
        end = start + 1
    elif span.end.line == span.start.line:
        end = span.end.column - 1
    first, last = _window([cell_len(text) for text in shown], start, width)
    before = (_LEFT_OUT if first else "") + "".join(shown[first:start])
    marked = "".join(shown[start : min(end, last)])
    after = "".join(shown[max(start, min(end, last)) : last]) + (_LEFT_OUT if last < len(shown) else "")
    return Excerpt((before + marked + after).rstrip(), cell_len(before), max(1, cell_len(marked)))


def _window(cells: list[int], start: int, width: int) -> tuple[int, int]:
    """The range of characters to show: all, or a third of the room before ``start`` and the rest after it."""
    if sum(cells) <= width:
        return 0, len(cells)
    room = width - 2 * cell_len(_LEFT_OUT)
    first, used = start, 0
    while first > 0 and used + cells[first - 1] <= room // 3:
        first -= 1
        used += cells[first]
    last = start
    while last < len(cells) and used + cells[last] <= room:
        used += cells[last]
        last += 1
    return first, last
