"""What a run has read of the file system: each question is answered once, and noted by whoever rests on the answer.

A *dependency* is a question (what is in this file, which Python files are below this directory); its *answer* is a
fingerprint. What was computed from files holds for as long as every question that it asked has the same answer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Protocol

from eaglelint.overlay import unsaved_text, unsaved_texts

__all__ = ["UNSETTLED", "Dependency", "Snapshot", "Stamps", "fingerprint"]

Dependency = tuple[str, str, str]
"""What is asked (``file``, ``kind``, ``files``, ``defined``, ``tree``), of which path, and a name if it has one."""

UNSETTLED = "?"
"""The answer to a question that was answered twice, differently: the file changed during the run."""

_MISSING = "-"
# Each begins with a literal, so that it is found at the speed of C.
_DEFINITIONS = {"class": re.compile(rb"class[ \t]+(\w+)"), "def": re.compile(rb"def[ \t]+(\w+)")}


class Stamps(Protocol):
    """Fingerprints of files that an earlier run has read, found by what ``stat`` says."""

    def expect(self, directory: str) -> None:
        """All files below a directory are about to be asked for."""

    def known(self, path: str, stat: os.stat_result) -> str | None:
        """The fingerprint of a file that has not been touched since."""

    def note(self, path: str, stat: os.stat_result, mark: str) -> None:
        """Remember the fingerprint of a file that did not change while it was read."""


def fingerprint(content: bytes) -> str:
    """What tells one content from another."""
    return sha256(content).hexdigest()[:32]


class Snapshot:
    """The file system as one run sees it."""

    def __init__(self, stamps: Stamps | None = None, *, lasting: bool = False) -> None:
        """``lasting``: it takes note of what can change, so that ``holds`` can tell whether something did."""
        self.stamps = stamps
        self.answers: dict[Dependency, str] = {}
        self._kept: dict[str, tuple[bytes, str]] = {}  # contents of files with their fingerprints
        self._unsaved: dict[str, bytes] = {}
        self._seen: dict[str, tuple[int, ...] | None] | None = {} if lasting else None
        self._noting: list[set[Dependency]] = []
        self._listed: dict[str, list[str]] = {}
        self._defined: dict[str, dict[tuple[str, str], list[str]]] = {}
        self._states: dict[str, str] = {}

    def holds(self) -> bool:
        """Whether all that was answered would be answered so again: nothing that was looked at has changed since."""
        if self._seen is None:
            return True  # for one run, in which the file system is taken to stand still
        unsaved = unsaved_texts()
        if any(unsaved.get(path) != text for path, text in self._unsaved.items()):
            return False
        if any(path not in self._unsaved and path in self._seen for path in unsaved):
            return False
        return all(_stat(path) == seen for path, seen in self._seen.items())

    def _look(self, path: str) -> None:
        if self._seen is not None and path not in self._seen:
            self._seen[path] = _stat(path)

    # --- notes ---

    @contextmanager
    def noting(self) -> Iterator[set[Dependency]]:
        """Note all questions that are asked while this lasts; whoever takes notes around it gets them too."""
        found: set[Dependency] = set()
        self._noting.append(found)
        try:
            yield found
        finally:
            self._noting.pop()
            self.note(found)

    def note(self, dependencies: Iterable[Dependency]) -> None:
        """What is used now was computed from the answers to these."""
        if self._noting:
            self._noting[-1].update(dependencies)

    def adopt(self, answers: Mapping[Dependency, str]) -> None:
        """Take over what another process has seen and used."""
        for dependency, answer in answers.items():
            self._settle(dependency, answer)
        self.note(answers)

    def _ask(self, dependency: Dependency, answer: str) -> None:
        self._settle(dependency, answer)
        if self._noting:
            self._noting[-1].add(dependency)

    def _settle(self, dependency: Dependency, answer: str) -> None:
        if self.answers.setdefault(dependency, answer) != answer:
            self.answers[dependency] = UNSETTLED

    # --- questions ---

    def read(self, path: str | os.PathLike[str]) -> bytes:
        """The content of a file.

        Raises:
            OSError: It cannot be read.
        """
        name = os.fspath(path)
        try:
            content, mark = self._read(name)
        except OSError:
            self._ask(("file", name, ""), _MISSING)
            raise
        self._ask(("file", name, ""), mark)
        return content

    def is_file(self, path: str | os.PathLike[str]) -> bool:
        name = os.fspath(path)
        answer = self._kind(name)
        self._ask(("kind", name, ""), answer)
        return answer == "file"

    def is_dir(self, path: str | os.PathLike[str]) -> bool:
        name = os.fspath(path)
        answer = self._kind(name)
        self._ask(("kind", name, ""), answer)
        return answer == "directory"

    def files(self, directory: str | os.PathLike[str]) -> list[str]:
        """All Python files below a directory, in order; links to directories are not followed."""
        name = os.fspath(directory)
        found = self._files(name)
        self._ask(("files", name, ""), _digest(found))
        return found

    def defining(self, directory: str | os.PathLike[str], keyword: str, name: str) -> list[str]:
        """The files below a directory that may define a class or function (``class``, ``def``) of that name."""
        place = os.fspath(directory)
        found = self._definitions(place).get((keyword, name), [])
        self._ask(("defined", place, f"{keyword} {name}"), _digest(found))
        return found

    def contents(self, directory: str | os.PathLike[str]) -> Iterator[tuple[str, bytes]]:
        """All Python files below a directory that can be read, with their contents: one question about all of them."""
        name = os.fspath(directory)
        for path in self._files(name):
            try:
                content, mark = self._read(path, keep=False)  # all at once are too many
            except OSError:
                content, mark = None, _MISSING
            self._settle(("file", path, ""), mark)
            if content is not None:
                yield path, content
        self._ask(("tree", name, ""), self.state(name))

    # --- answers ---

    def state(self, directory: str) -> str:
        """A fingerprint of all Python files below a directory: while it holds, so does all that they define."""
        if directory not in self._states:
            files = self._files(directory)
            if self.stamps is not None:
                self.stamps.expect(directory)
            self._states[directory] = _digest([*files, *(self.answer(("file", path, "")) for path in files)])
        return self._states[directory]

    def answer(self, dependency: Dependency) -> str:
        """The answer to a question, without taking note that it was asked."""
        known = self.answers.get(dependency)
        if known is None:
            known = self.answers[dependency] = self._answer(dependency)
        return known

    def _answer(self, dependency: Dependency) -> str:
        what, path, name = dependency
        if what == "file":
            return self._mark(path)
        if what == "kind":
            return self._kind(path)
        if what == "files":
            return _digest(self._files(path))
        if what == "tree":
            return self.state(path)
        keyword, _, defined = name.partition(" ")
        return _digest(self._definitions(path).get((keyword, defined), []))

    def _mark(self, path: str) -> str:
        """A file's fingerprint; read only where it may have been touched since an earlier run."""
        try:
            if self.stamps is not None and unsaved_text(path) is None:
                self._look(path)
                known = self.stamps.known(path, os.stat(path))
                if known is not None:
                    return known
            return self._read(path, keep=False)[1]
        except OSError:
            return _MISSING

    def _read(self, path: str, *, keep: bool = True) -> tuple[bytes, str]:
        unsaved = unsaved_text(path)
        if unsaved is not None:
            self._unsaved[os.path.realpath(path)] = unsaved
            return unsaved, fingerprint(unsaved)
        if path in self._kept:
            return self._kept[path]
        self._look(path)
        with open(path, "rb", buffering=0) as file:
            before = os.fstat(file.fileno())
            content = file.read()
            after = os.fstat(file.fileno())
        mark = fingerprint(content)
        if self.stamps is not None and _untouched(before, after):
            self.stamps.note(path, after, mark)
        if keep:
            self._kept[path] = content, mark
        return content, mark

    def _kind(self, path: str) -> str:
        self._look(path)
        if unsaved_text(path) is not None or os.path.isfile(path):
            return "file"
        return "directory" if os.path.isdir(path) else _MISSING

    def _files(self, directory: str) -> list[str]:
        if directory not in self._listed:
            self._listed[directory] = sorted(_python_files(directory, self._look), key=lambda path: path.split(os.sep))
        return self._listed[directory]

    def _definitions(self, directory: str) -> dict[tuple[str, str], list[str]]:
        if directory not in self._defined:
            found: dict[tuple[str, str], list[str]] = {}
            for path in self._files(directory):
                try:
                    content, mark = self._read(path)
                except OSError:
                    content, mark = b"", _MISSING
                self._settle(("file", path, ""), mark)
                for definition in _defined(content):
                    found.setdefault(definition, []).append(path)
            self._defined[directory] = found
        return self._defined[directory]


def _untouched(before: os.stat_result, after: os.stat_result) -> bool:
    return (before.st_mtime_ns, before.st_ctime_ns, before.st_size) == (
        after.st_mtime_ns,
        after.st_ctime_ns,
        after.st_size,
    )


def _defined(content: bytes) -> set[tuple[str, str]]:
    """What looks like the header of a class or function: the keyword and the name. Some stand in strings."""
    return {
        (keyword, found[1].decode("ascii", "replace"))
        for keyword, header in _DEFINITIONS.items()
        for found in header.finditer(content)
        if content[content.rfind(b"\n", 0, found.start()) + 1 : found.start()].lstrip(b" \t") in (b"", b"async ")
    }


def _digest(parts: Iterable[str]) -> str:
    return fingerprint("\0".join(parts).encode("utf-8", "surrogateescape"))


def _stat(path: str) -> tuple[int, ...] | None:
    """What changes when a file or directory does; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mode, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _python_files(top: str, look: Callable[[str], None]) -> Iterator[str]:
    pending = [top]
    while pending:
        directory = pending.pop()
        look(directory)
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    elif entry.name.endswith(".py") and _is_file(entry):
                        yield entry.path
        except OSError:
            continue


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link to itself
        return False
