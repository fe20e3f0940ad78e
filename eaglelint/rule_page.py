"""Reads a rule's page: its sections, and the small projects in its fenced blocks that serve as the rule's tests.

In the sections Example and Use instead, each heading of level three (or the section itself) holds one project::

    ```json title="draft/config.json"       a file, any number of them
    ```text include="mini-sglang" title="serving"
                                            a tree kept with the tests, put below a directory; the text says what it is
    ```console                              the command, after "$ "; `eaglelint scan .` if left out
    ```expect                               the findings, one a line; an empty block says: stays silent
    draft/config.json:3:41 error[CAP002] certain ~ part of the message

A file that is shown takes the place of an included one of the same path. One whose path ends in ``.safetensors`` is
shown as JSON, a type and shape for each tensor, and written as a checkpoint by the tests.
In Python, TOML and YAML files a finding may stand on its own line instead, as ``# error: CAP002`` at the end.
A project of Example must say what is found. One of Use instead that says nothing must stay silent.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import get_args

from eaglelint.finding import Confidence, Severity

__all__ = ["SECTIONS", "Example", "Expected", "Page", "Section", "parse_page", "parse_projects"]

SECTIONS = ("What it does", "Why it is bad", "Example", "Use instead", "References")

_PROJECT_SECTIONS = ("Example", "Use instead")
_SEVERITY = "|".join(get_args(Severity))
_CONFIDENCE = "|".join(get_args(Confidence))
_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,})[ ]*(?P<language>[^\s`]*)[ ]*(?P<rest>[^`]*)")
_TITLE = re.compile(r'title="(?P<path>[^"]+)"')
_INCLUDE = re.compile(r'include="(?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)"')
_HEADING = re.compile(r"(?P<level>#{1,3}) +(?P<text>.*?)(?: +#+)?")
_PAGE_HEADING = re.compile(r"(?P<name>[a-z0-9]+(?:-[a-z0-9]+)*) \((?P<code>[A-Z]{3}\d{3})\)")
_EXPECTED = re.compile(
    rf"(?P<path>[^:]+):(?P<line>\d+):(?P<column>\d+) (?P<severity>{_SEVERITY})\[(?P<code>[A-Z]{{3}}\d{{3}})\]"
    rf" (?P<confidence>{_CONFIDENCE})(?: ~ (?P<message>.+))?"
)
_MARKER = re.compile(rf"# (?P<severity>{_SEVERITY}): (?P<code>[A-Z]{{3}}\d{{3}})\s*$")
_MARKED_SUFFIXES = frozenset({".py", ".toml", ".yaml", ".yml"})


@dataclass(frozen=True, slots=True)
class Expected:
    """A finding that a project must give; what is ``None`` is left open."""

    path: str
    line: int
    severity: str
    code: str
    column: int | None = None
    confidence: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """A small project: files by path, the arguments after ``eaglelint``, and all findings that they give.

    ``includes`` holds the names of trees that are kept beside the tests, by the directory they are put below.
    """

    section: str
    title: str
    files: Mapping[str, str]
    command: tuple[str, ...]
    expected: tuple[Expected, ...]
    includes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of level two and the Markdown below it."""

    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    name: str
    code: str
    sections: tuple[Section, ...]
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class _Heading:
    level: int
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class _Block:
    language: str
    title: str | None
    include: str | None
    body: tuple[str, ...]
    line: int


@dataclass(slots=True)
class _Project:
    """An example while its blocks are being read."""

    section: str
    title: str
    files: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] | None = None
    expected: list[Expected] | None = None
    includes: dict[str, str] = field(default_factory=dict)

    def add(self, block: _Block) -> None:
        if block.include is not None:
            self._include(block.include, block)
        elif block.title is not None:
            self._add_file(block.title, block)
        elif block.language == "console":
            if self.command is not None:
                raise ValueError(f"line {block.line}: a project has one command, and '{self.title}' has two.")
            self.command = _command(block)
        elif block.language == "expect":
            self._expect(_expected(row, block.line) for row in block.body if row.strip())

    def finish(self) -> Example | None:
        """The example, or ``None`` where a heading has no project below it."""
        if not self.files:
            if self.command is not None or self.expected is not None or self.includes:
                raise ValueError(f"The project '{self.title}' of {self.section} has no files.")
            return None
        if self.expected is None and self.section == "Example":
            raise ValueError(f"The project '{self.title}' of Example does not say what is found in it.")
        command = self.command or ("scan", ".")
        return Example(self.section, self.title, self.files, command, tuple(self.expected or ()), self.includes)

    def _include(self, name: str, block: _Block) -> None:
        directory = block.title or "."
        _check_inside(directory, block)
        if directory in self.includes:
            raise ValueError(f"line {block.line}: the project '{self.title}' includes two trees at '{directory}'.")
        self.includes[directory] = name

    def _add_file(self, path: str, block: _Block) -> None:
        _check_inside(path, block)
        if path in self.files:
            raise ValueError(f"line {block.line}: the project '{self.title}' has the file '{path}' twice.")
        self.files[path] = "".join(f"{row}\n" for row in block.body)
        if PurePosixPath(path).suffix not in _MARKED_SUFFIXES:
            return
        for number, row in enumerate(block.body, start=1):
            if marker := _MARKER.search(row):
                self._expect(iter([Expected(path, number, marker["severity"], marker["code"])]))

    def _expect(self, expected: Iterator[Expected]) -> None:
        self.expected = [*(self.expected or []), *expected]


def _check_inside(path: str, block: _Block) -> None:
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts:
        raise ValueError(f"line {block.line}: '{path}' must lie inside the project.")


def parse_page(text: str) -> Page:
    """A rule's page, taken apart.

    Raises:
        ValueError: The page breaks its own form; the message says where and how.
    """
    items = tuple(_items(text))
    headings = [item for item in items if isinstance(item, _Heading)]
    first = _PAGE_HEADING.fullmatch(headings[0].text) if headings and headings[0].level == 1 else None
    if first is None:
        raise ValueError("A rule's page begins with its name and code: '# boundary-mismatch (CAP002)'.")
    return Page(first["name"], first["code"], _sections(text, headings), tuple(_examples(items)))


def parse_projects(text: str) -> tuple[Example, ...]:
    """The projects of a page that is no rule's: one below each heading that has some.

    Raises:
        ValueError: A block breaks the form; the message says where and how.
    """
    items = tuple(_items(text))
    return tuple(_examples(items, {item.text for item in items if isinstance(item, _Heading)}))


def _items(text: str) -> Iterator[_Heading | _Block]:
    """Headings and fenced blocks in their order; what looks like a heading inside a block is none."""
    lines = enumerate(text.splitlines(), start=1)
    for number, row in lines:
        if fence := _FENCE.fullmatch(row):
            title, include = _TITLE.search(fence["rest"]), _INCLUDE.search(fence["rest"])
            body = tuple(_until(fence["fence"], lines, number))
            yield _Block(
                fence["language"], title["path"] if title else None, include["name"] if include else None, body, number
            )
        elif heading := _HEADING.fullmatch(row):
            yield _Heading(len(heading["level"]), heading["text"], number)


def _until(fence: str, lines: Iterator[tuple[int, str]], opened: int) -> Iterator[str]:
    for _, row in lines:
        closing = row.rstrip()
        if closing.startswith(fence) and not closing.strip(fence[0]):
            return
        yield row
    raise ValueError(f"line {opened}: the fenced block that begins here never ends.")


def _sections(text: str, headings: list[_Heading]) -> tuple[Section, ...]:
    rows = text.splitlines()
    starts = [heading for heading in headings if heading.level == 2]
    ends = [heading.line - 1 for heading in starts[1:]] + [len(rows)]
    return tuple(
        Section(start.text, "\n".join(rows[start.line : end]).strip()) for start, end in zip(starts, ends, strict=True)
    )


def _examples(items: tuple[_Heading | _Block, ...], sections: Container[str] = _PROJECT_SECTIONS) -> Iterator[Example]:
    projects: list[_Project] = []
    section = ""
    for item in items:
        if isinstance(item, _Heading):
            section = item.text if item.level <= 2 else section
            if section in sections:
                projects.append(_Project(section, item.text))
        elif section in sections:
            projects[-1].add(item)
    for project in projects:
        if example := project.finish():
            yield example


def _command(block: _Block) -> tuple[str, ...]:
    """The arguments of the block's one command; lines that do not begin with ``$`` show its output."""
    joined = "\n".join(block.body).replace("\\\n", " ")
    commands = [shlex.split(row.removeprefix("$ ")) for row in joined.splitlines() if row.startswith("$ ")]
    if len(commands) != 1 or commands[0][:1] != ["eaglelint"]:
        raise ValueError(f"line {block.line}: a console block holds one command, '$ eaglelint scan ...'.")
    return tuple(commands[0][1:])


def _expected(row: str, line: int) -> Expected:
    match = _EXPECTED.fullmatch(row.strip())
    if match is None:
        raise ValueError(
            f"line {line}: '{row}' does not read like"
            " 'draft/config.json:3:41 error[CAP002] certain ~ words of the message'."
        )
    return Expected(
        match["path"],
        int(match["line"]),
        match["severity"],
        match["code"],
        int(match["column"]),
        match["confidence"],
        match["message"],
    )
