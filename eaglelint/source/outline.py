"""The outline of one Python file, found without parsing it: classes, functions and the lines they stand on.

A trace looks into a handful of functions of files of thousands of lines. So a file is cut into blocks by its
indentation, and only the blocks that are asked for are parsed. A cut that does not parse is not believed: then the
whole file is parsed, and the blocks are taken from its syntax tree.
"""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from pathlib import Path

from eaglelint.source.nodes import all_nodes, children

__all__ = ["Block", "Outline", "Unparsable", "characters"]

_MAX_SOURCE_BYTES = 8 * 1024 * 1024
_STRINGS = re.compile(
    r"""#[^\n]*|\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S
)
_GOES_ON = tuple(map(re.compile, ('"""', "'''", r"\\\n")))  # without one of these a string ends in its line
# Each begins with a literal, so that it is found at the speed of C.
_HEADERS = (re.compile(r"(def)[ \t]+(\w+)"), re.compile(r"(class)[ \t]+(\w+)"))
_SHORT_HEADER = re.compile(r"""[^"'#()\[\]{}]*(?:\([^"'#()\[\]{}]*\)[^"'#()\[\]{}]*)?""")
_BRACKETS = re.compile(r"[()\[\]{}]")
_BEGINS = re.compile(r":[ \t]*(?:#[^\n]*)?$")  # a suite, on lines of its own
_DECORATOR = re.compile("@")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def characters(line: str, offset: int) -> int:
    """A column in characters, from one in UTF-8 bytes as syntax trees have it."""
    return offset if line.isascii() else len(line.encode()[:offset].decode(errors="replace"))


class Unparsable(Exception):
    """The file is not Python; the message says where and why."""


@dataclass(eq=False, slots=True)
class Block:
    """A class or function: ``first`` is its first line with decorators, ``line`` that of its name.

    ``header`` is the line on which its header ends, where it was cut out.
    """

    kind: str
    name: str
    indent: int
    first: int
    line: int
    end: int
    parent: Block | None = None
    children: list[Block] = field(default_factory=list)
    header: int = 0

    @property
    def qualname(self) -> str:
        return self.name if self.parent is None else f"{self.parent.qualname}.{self.name}"

    @property
    def owner(self) -> Block | None:
        """The class that a method belongs to."""
        return self.parent if self.parent is not None and self.parent.kind == "class" else None

    @property
    def outermost(self) -> Block:
        """The outermost function around it: nested functions are read together with the one that holds them."""
        found = self
        block: Block | None = self
        while block is not None:
            if block.kind == "def":
                found = block
            block = block.parent
        return found


class Outline:
    """One file. Nothing is parsed before it is asked for, and nothing twice."""

    def __init__(self, path: Path, display: str, source: bytes) -> None:
        if len(source) > _MAX_SOURCE_BYTES:
            raise Unparsable(f"{display}: larger than {_MAX_SOURCE_BYTES // 1024 // 1024} MiB")
        text = source.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
        self.path = path
        self.display = display
        self.lines = text.split("\n")
        self.blocks: list[Block] = []
        self._whole: dict[tuple[str, int], ast.AST] | None = None
        self._module: ast.Module | None = None
        self._parsed: dict[Block, ast.AST] = {}
        self._texts: dict[Block, str] = {}
        self._imports: dict[Block, list[ast.Import | ast.ImportFrom]] = {}
        self._cut(text)

    # --- where things are ---

    def innermost(self, line: int) -> Block | None:
        """The smallest block around a line."""
        found = None
        for block in self.blocks:
            if block.first > line:
                break
            if line <= block.end:
                found = block
        return found

    def top(self, name: str) -> Block | None:
        """The class or function of that name at the top of the module; the last one, as Python binds it."""
        return next((block for block in reversed(self.blocks) if block.name == name and block.parent is None), None)

    def without_bodies(self) -> str:
        """The source with ``def NAME(): pass`` on the first and last line of each function, without what it takes."""
        lines = list(self.lines)
        for block in self.blocks:
            if block.kind != "def" or block.outermost is not block:
                continue
            if block.header < block.end and _BEGINS.search(lines[block.header - 1]):
                indent = lines[block.line - 1][: block.indent]
                left = [f"{indent}def {block.name}():", *[""] * (block.end - block.line - 1), f"{indent} pass"]
                lines[block.line - 1 : block.end] = left
        return "\n".join(lines)

    # --- parsing on demand ---

    def function(self, block: Block) -> Function:
        """The syntax tree of a function, with its lines in the file."""
        node = self._parsed.get(block)
        if node is None:
            node = self._parsed[block] = self._parse_block(block)
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        return node

    def cls(self, block: Block) -> ast.ClassDef:
        """The syntax tree of a class; its functions and inner classes may be left out."""
        node = self._parsed.get(block)
        if node is None:
            node = self._parsed[block] = self._parse_block(block)
        assert isinstance(node, ast.ClassDef)
        return node

    def module(self) -> ast.Module:
        """The module's own statements: imports, assignments; functions and classes left out."""
        if self._module is None:
            lines = self._without(self.blocks, 1, len(self.lines))
            try:
                self._module = _parse("\n".join(lines))
            except SyntaxError:
                self._parse_whole()
                self._module = _parse("\n".join(self._without(self.blocks, 1, len(self.lines))))
        return self._module

    def text(self, block: Block) -> str:
        """The source of a block."""
        found = self._texts.get(block)
        if found is None:
            found = self._texts[block] = "\n".join(self.lines[block.first - 1 : block.end])
        return found

    def imports_inside(self, block: Block) -> list[ast.Import | ast.ImportFrom]:
        """The import statements of a function, those of functions inside it included."""
        if block not in self._imports:
            tree = self.function(block.outermost)
            self._imports[block] = [
                node
                for node in all_nodes(tree)
                if isinstance(node, ast.Import | ast.ImportFrom) and block.first <= node.lineno <= block.end
            ]
        return self._imports[block]

    def _parse_block(self, block: Block) -> ast.AST:
        if self._whole is None:
            lines = self.lines[block.first - 1 : block.end]
            if block.kind == "class":
                lines = self._without(block.children, block.first, block.end)
            # Blank lines before it keep its line numbers; an indented block stands in one of its own.
            head = [""] * (block.first - 1)
            if block.indent and head:
                head[-1] = "if 1:"
            try:
                body = _parse("\n".join(head + lines)).body
                if block.indent:
                    body = body[0].body if len(body) == 1 and isinstance(body[0], ast.If) else []
                if len(body) == 1 and getattr(body[0], "name", None) == block.name:
                    return body[0]
            except SyntaxError:
                pass
            self._parse_whole()
        assert self._whole is not None
        found = self._whole.get((block.name, block.line))
        if found is None:
            raise Unparsable(f"{self.display}:{block.line}: {block.kind} {block.name} is no code")
        return found

    def _parse_whole(self) -> None:
        """Parse the file; its blocks are those of the syntax tree from now on."""
        if self._whole is not None:
            return
        try:
            tree = _parse("\n".join(self.lines))
        except SyntaxError as error:
            where = f"{self.display}:{error.lineno}" if error.lineno else self.display
            raise Unparsable(f"{where}: {error.msg}") from error
        self._whole = {}
        known = {(block.name, block.line): block for block in self.blocks}
        self.blocks = []
        self._collect(tree, None, known)
        self.blocks.sort(key=lambda block: (block.first, -block.end))

    def _collect(self, node: ast.AST, parent: Block | None, known: dict[tuple[str, int], Block]) -> None:
        assert self._whole is not None
        for child in children(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                kind = "class" if isinstance(child, ast.ClassDef) else "def"
                first = min([child.lineno, *(item.lineno for item in child.decorator_list)])
                block = known.get((child.name, child.lineno)) or Block(kind, child.name, 0, 0, child.lineno, 0)
                block.indent, block.first, block.end = child.col_offset, first, child.end_lineno or child.lineno
                block.parent, block.children = parent, []
                if parent is not None:
                    parent.children.append(block)
                self.blocks.append(block)
                self._whole[child.name, child.lineno] = child
                self._collect(child, block, known)
            else:
                self._collect(child, parent, known)

    def _without(self, blocks: list[Block], first: int, last: int) -> list[str]:
        """The lines with blocks taken out; what would leave a suite empty is a ``pass``."""
        lines = self.lines[first - 1 : last]
        for block in blocks:
            if block.parent is not None and block.parent in blocks:
                continue
            start = block.first - first
            if 0 <= start < len(lines):
                end = min(block.end, last) - first + 1
                lines[start:end] = [" " * block.indent + "pass", *([""] * (end - start - 1))]
        return lines

    # --- cutting ---

    def _cut(self, text: str) -> None:
        """Find the headers of classes and functions, and for each the line before the next statement beside it."""
        text = f"\n{text}"
        inside = _inside_strings(text)
        breaks = [*accumulate(map((1).__add__, map(len, self.lines[:-1])), initial=0)]  # the n-th stands before line n
        decorated = self._decorated(text, breaks, inside)
        open_blocks: list[Block] = []
        headers = sorted((found.start(), found) for kind in _HEADERS for found in kind.finditer(text))
        for at, found in headers:
            number = bisect_right(breaks, at)
            before = text[breaks[number - 1] + 1 : at]
            start = before.lstrip(" \t")
            if (start and start.rstrip(" \t") != "async") or number in inside:
                continue
            indent = len(before) - len(start)
            while open_blocks and (open_blocks[-1].end < number or open_blocks[-1].indent >= indent):
                open_blocks.pop()
            parent = open_blocks[-1] if open_blocks else None
            block = Block(found[1], found[2], indent, decorated.get(number, number), number, number, parent)
            block.end = self._end(text, block, breaks, inside)
            self.blocks.append(block)
            if parent is not None:
                parent.children.append(block)
            open_blocks.append(block)

    def _end(self, text: str, block: Block, breaks: list[int], inside: set[int]) -> int:
        """The last line of code before a statement that is indented no more than the block is."""
        at = block.header = _header_end(self.lines, block.line)  # over several lines it is no statement of its own
        after = len(breaks) + 1
        for found in _statement(block.indent).finditer(text, breaks[at] if at < len(breaks) else len(text)):
            number = bisect_right(breaks, found.start())
            if number not in inside:
                after = number
                break
        for number in range(after - 1, block.line, -1):
            code = self.lines[number - 1].lstrip(" \t\f")
            if code and (code[0] != "#" or number in inside):
                return number
        return block.line

    def _decorated(self, text: str, breaks: list[int], inside: set[int]) -> dict[int, int]:
        """For headers with decorators, the line of the first one."""
        first: dict[int, int] = {}
        for found in _DECORATOR.finditer(text):
            number = bisect_right(breaks, found.start())
            if number in inside or text[breaks[number - 1] + 1 : found.start()].strip(" \t"):
                continue
            at = _header_end(self.lines, number)
            while at < len(self.lines) and self.lines[at].lstrip(" \t\f")[:1] in ("", "#"):
                at += 1
            first[at + 1] = first.get(number, number)
        return first


@cache
def _statement(indent: int) -> re.Pattern[str]:
    return re.compile(rf"\n[ \t\f]{{0,{indent}}}[^\s#)\]}}]")


def _parse(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(str(error) or type(error).__name__) from error


def _inside_strings(text: str) -> set[int]:
    """The lines that begin inside a string over several lines; a line break stands before the first line."""
    inside: set[int] = set()
    line, at = 0, 0
    for start, end in _over_lines(text):
        line += text.count("\n", at, start)
        at = start
        inside.update(range(line + 1, line + 1 + text.count("\n", start, end)))
    return inside


def _over_lines(text: str) -> Iterator[tuple[int, int]]:
    """Where the strings over several lines begin and end."""
    at = 0
    for mark in sorted(found.start() for each in _GOES_ON for found in each.finditer(text)):
        if mark < at:
            continue
        # Other strings and comments end with their line, so none of them reaches over the beginning of this one.
        start = max(at, text.rfind("\n", 0, mark) + 1)
        span = _plain(text, start, mark)
        if span is None:
            string = _STRINGS.search(text, start)
            while string is not None and string.end() <= mark:
                string = _STRINGS.search(text, string.end())
            if string is None or string.start() > mark:
                continue
            span = string.span()
        at = span[1]
        if "\n" in text[slice(*span)]:
            yield span


def _plain(text: str, start: int, mark: int) -> tuple[int, int] | None:
    """A string in three quotes that begins at the mark, if that is plain: nothing quoted before it, no backslash."""
    before, quotes = text[start:mark], text[mark : mark + 3]
    if quotes[0] == "\\" or '"' in before or "'" in before or "#" in before:
        return None
    end = text.find(quotes, mark + 3)
    return (mark, end + 3) if end >= 0 and text.find("\\", mark, end) < 0 else None


def _header_end(lines: list[str], number: int) -> int:
    """The line on which the parentheses of a header close."""
    depth = 0
    if _SHORT_HEADER.fullmatch(lines[number - 1]):
        return number
    for at in range(number, min(number + 400, len(lines)) + 1):
        code = lines[at - 1]
        if '"' in code or "'" in code or "#" in code:
            code = _STRINGS.sub("", code)
        for bracket in _BRACKETS.findall(code):
            depth += 1 if bracket in "([{" else -1
        if depth <= 0:
            return at
    return number
