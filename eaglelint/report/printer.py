"""Prints lines of styled text: rich paints them on a terminal; a pipe gets the text alone, without rich."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Piece", "Printer", "printer_for"]

Piece = str | tuple[str, str]
"""Text, or text and its style in rich's words: ``("note", "bold cyan")``."""

# With these set rich takes any stream for a terminal (rich 15.0.0, Console.is_terminal).
_AS_TERMINAL = ("FORCE_COLOR", "TTY_COMPATIBLE")


@dataclass(frozen=True, slots=True)
class Printer:
    """A stream, and the console that paints on it where it is a terminal."""

    stream: TextIO
    console: Console | None = None

    @property
    def width(self) -> int | None:
        """The cells of a terminal's line; ``None`` where lines are left whole for the reader's tools."""
        return self.console.width if self.console is not None and self.console.is_terminal else None

    def line(self, *pieces: Piece, wrap: bool = True) -> None:
        """Print one line; a terminal breaks it where it does not fit, unless ``wrap`` is false."""
        if self.console is None:
            self.stream.write("".join(piece if isinstance(piece, str) else piece[0] for piece in pieces) + "\n")
            return
        from rich.text import Text

        self.console.print(Text.assemble(*pieces), soft_wrap=not (wrap and self.console.is_terminal))


def printer_for(stream: TextIO) -> Printer:
    """The printer for a stream; colours go to a terminal, or where the environment asks for them."""
    if not stream.isatty() and not any(os.environ.get(name) for name in _AS_TERMINAL):
        return Printer(stream)
    from rich.console import Console

    return Printer(stream, Console(file=stream, highlight=False, soft_wrap=True))
