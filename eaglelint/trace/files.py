"""The files that a trace looks into, read once, and on which of their lines a word stands."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from eaglelint.overlay import read_bytes
from eaglelint.source.outline import Outline, Unparsable
from eaglelint.source.snapshot import Snapshot

__all__ = ["Files"]

_EXCLUDED = frozenset({"__pycache__", "build", "dist", "node_modules", "site-packages", "venv"})
_MAX_FILES = 200_000
_ALL = 1 << 60
# What names of one kind end with: ``Model(``, ``to_capture``, ``hidden_states``.
_ENDING = re.compile(rb"(?<=.)[A-Z][a-z]+\(?$|(?<=_)[a-z]+_[a-z]+$")


class Files:
    """Python files below some paths; others are read where an import leads to them."""

    def __init__(
        self, paths: Sequence[Path], *, relative_to: Path | None = None, snapshot: Snapshot | None = None
    ) -> None:
        self.base = relative_to or Path.cwd()
        self.snapshot = snapshot  # through which all is read, where somebody keeps what rests on it
        self.skipped: dict[str, str] = {}
        self.notes: list[str] = []
        self.searched = 0  # bytes looked through for words
        self.sources: dict[str, bytes] = {}
        self.size = 0
        self._files: dict[bytes, list[str]] = {}
        self._outlines: dict[str, Outline | None] = {}
        self._lines: dict[tuple[str, str], dict[str, list[int]]] = {}
        self._least: dict[tuple[str, str], int] = {}  # how many lines there are at least
        for path in paths:
            self._collect(path)

    def _collect(self, path: Path) -> None:
        if path.is_file():
            self._read(os.path.abspath(path))
            return
        if self.snapshot is not None:
            start = len(os.fspath(path))
            for name, source in self.snapshot.contents(path):
                if _EXCLUDED.isdisjoint(name[start:].split(os.sep)):
                    self._add(name, source)
            return
        pending = [os.path.abspath(path)]
        while pending:
            directory = pending.pop()
            try:
                with os.scandir(directory) as entries:
                    listed = sorted(entries, key=lambda entry: entry.name)
            except OSError as error:
                self.notes.append(f"{self.display(Path(directory))} was not read: {error.strerror or error}.")
                continue
            for entry in listed:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        if not entry.name.startswith(".") and entry.name not in _EXCLUDED:
                            pending.append(entry.path)
                    elif entry.name.endswith(".py") and entry.is_file():
                        self._read(entry.path)
                except OSError:
                    continue
            if len(self.sources) > _MAX_FILES:
                self.notes.append(f"More than {_MAX_FILES:,} files: the rest was not read. Name fewer paths.")
                return

    def _read(self, name: str) -> None:
        try:
            source = self._bytes(Path(name))
        except OSError as error:
            shown = self.display(Path(name))
            self.skipped[shown] = f"{shown}: {error.strerror or error}"
            return
        self._add(name, source)

    def _bytes(self, path: Path) -> bytes:
        return read_bytes(path) if self.snapshot is None else self.snapshot.read(path)

    def is_file(self, path: Path) -> bool:
        return path.is_file() if self.snapshot is None else self.snapshot.is_file(path)

    def _add(self, name: str, source: bytes) -> None:
        self.sources[name] = source.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in source else source
        self.size += len(source)

    @property
    def count(self) -> int:
        return len(self.sources)

    def display(self, path: Path) -> str:
        """How messages name a path: relative to the working directory where it lies in it."""
        try:
            return path.relative_to(self.base).as_posix()
        except ValueError:
            return path.as_posix()

    def includes(self, outline: Outline) -> bool:
        """Whether a file is one of those that were named, and not only one that an import leads to."""
        return str(outline.path) in self.sources

    def outline(self, name: str) -> Outline | None:
        """The outline of a file, None where it cannot be read."""
        if name not in self._outlines:
            path = Path(name)
            try:
                source = self.sources.get(name)
                self._outlines[name] = Outline(
                    path, self.display(path), self._bytes(path) if source is None else source
                )
            except (OSError, Unparsable) as error:
                self.skip(self.display(path), error)
                self._outlines[name] = None
        return self._outlines[name]

    def skip(self, shown: str, error: Exception) -> None:
        """Note that a file is left out, and why."""
        text = str(error)
        self.skipped.setdefault(shown, text if text.startswith(shown) else f"{shown}: {text}")

    def lines_with(self, word: str, pattern: str | None = None) -> dict[Outline, list[int]]:
        """The files that hold a word, and the lines it stands on, comments and strings included.

        ``pattern`` narrows it down: a regular expression that contains the word.
        """
        found: dict[Outline, list[int]] = {}
        for name, lines in self._matches(word, pattern).items():
            outline = self.outline(name)
            if outline is not None:
                found[outline] = lines
        return found

    def is_on_more_lines(self, most: int, word: str, pattern: str | None = None) -> bool:
        """Whether a word stands on more lines than that; cheaper than to find them all."""
        key = (word, pattern or "")
        if key in self._lines:
            return sum(map(len, self._lines[key].values())) > most
        if self._least.get(key, 0) <= most:
            self._least[key] = sum(len(lines) for lines in self._matches(word, pattern, most).values())
        return self._least[key] > most

    def _matches(self, word: str, pattern: str | None, most: int = _ALL) -> dict[str, list[int]]:
        """The lines of each file; not those of all where they are more than ``most``."""
        key = (word, pattern or "")
        if key in self._lines:
            return self._lines[key]
        expression = re.compile((pattern or rf"(?<!\w){re.escape(word)}(?!\w)").encode())
        mark = word.encode()
        found: dict[str, list[int]] = {}
        count = 0
        for name in self._files_with(mark):
            lines = _matching_lines(self.sources[name], mark, expression)
            if lines:
                found[name] = lines
                count += len(lines)
                if count > most:
                    return found
        self._lines[key] = found
        return found

    def _files_with(self, mark: bytes) -> Iterator[str]:
        if mark in self._files:
            yield from self._files[mark]
            return
        found = []
        for name in self._candidates(mark):
            source = self.sources[name]
            self.searched += len(source)
            if mark in source:
                found.append(name)
                yield name
        self._files[mark] = found

    def _candidates(self, mark: bytes) -> Iterable[str]:
        """Files that may hold a mark: those that hold a part of it, so that names of one kind share a search."""
        known = [names for part, names in self._files.items() if part in mark]
        if known:
            return min(known, key=len)
        ending = _ENDING.search(mark)
        return self._files_with(ending[0]) if ending else self.sources


def _matching_lines(source: bytes, mark: bytes, expression: re.Pattern[bytes]) -> list[int]:
    """The lines that hold a mark and match an expression, counted from 1."""
    lines: list[int] = []
    number, counted, at = 1, 0, source.find(mark)
    while at >= 0:
        start = source.rfind(b"\n", 0, at) + 1
        end = source.find(b"\n", at)
        end = len(source) if end < 0 else end
        if expression.search(source[start:end]):
            number += source.count(b"\n", counted, start)
            counted = start
            lines.append(number)
        at = source.find(mark, end)
    return lines
