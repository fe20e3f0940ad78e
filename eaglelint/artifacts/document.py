"""A JSON document that remembers where every key and value stands, and survives being half typed."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from eaglelint.artifacts.json_nodes import DuplicateKey, Node, Problem, SourceText
from eaglelint.artifacts.json_tokens import tokenize
from eaglelint.artifacts.json_tree import MAX_DEPTH, TreeBuilder
from eaglelint.exceptions import UnreadableInput
from eaglelint.finding import Position, Span
from eaglelint.overlay import unsaved_text

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_TOKENS",
    "Document",
    "DuplicateKey",
    "Node",
    "Problem",
    "config_path",
    "read_document",
    "read_json",
]

MAX_BYTES = 16 * 1024 * 1024
MAX_TOKENS = 200_000
"""Most tokens that are read; a model config has a few hundred, a quantised one some ten thousand."""

_BOM = b"\xef\xbb\xbf"
# Cuts as finely as the tokenizer or finer, at a fraction of its cost.
_ROUGH_TOKEN = re.compile(rb'"(?:[^"\\\r\n]|\\[^\r\n])*"?|[0-9A-Za-z.]+|\S')


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Document:
    """A JSON text with its values and their places.

    Attributes:
        path: The path to show in messages.
        text: The bytes that were read, as they stand in the file.
        root: The outermost value; ``None`` where there is none.
        errors: What is not JSON, in the order of the text. Values around a mistake are still there.
        duplicate_keys: Keys that stand twice in one object; the later one counts.
    """

    path: str
    text: bytes
    root: Node | None
    errors: tuple[Problem, ...]
    duplicate_keys: tuple[DuplicateKey, ...]

    @classmethod
    def parse(cls, path: str, text: bytes) -> Document:
        """Read ``text``, however broken; never raises for what stands in it."""
        # An editor does not count the byte order mark as a column.
        body = text[len(_BOM) :] if text.startswith(_BOM) else text
        start = Position(1, 1)
        source = SourceText(path, body)
        builder = TreeBuilder(source)
        problems = builder.problems
        try:
            body.decode()
        except UnicodeDecodeError as error:
            message = "a byte that is not UTF-8; save the file as UTF-8"
            problems.append((error.start, Problem(message, source.span(error.start, error.start + 1))))
        refusal = _refusal(body)
        if refusal is not None:
            refused = problems[0][1] if problems else Problem(refusal, Span(path, start, start))
            return cls(path, text, None, (refused,), ())
        builder.read(tokenize(body))
        if builder.root is None and not problems:
            problems.append((0, Problem("the file is empty", Span(path, start, start))))
        errors = tuple(problem for _, problem in sorted(problems, key=lambda item: item[0]))
        return cls(path, text, builder.root, errors, tuple(builder.duplicate_keys))

    def __repr__(self) -> str:
        return f"<Document {self.path}, {len(self.text)} bytes, {len(self.errors)} errors>"

    def __reduce__(self) -> tuple[Callable[[str, bytes], Document], tuple[str, bytes]]:
        # Nodes can be nested deeper than pickle can recurse; the text says it all.
        return Document.parse, (self.path, self.text)

    @property
    def data(self) -> Any:
        """The whole document as plain Python data; ``None`` where it is empty."""
        return None if self.root is None else self.root.value

    def find(self, *key_path: str) -> Node | None:
        """The value at a key path, ``document.find("eagle_config", "use_aux_hidden_state")``."""
        return None if self.root is None else self.root.find(*key_path)

    def key_span(self, *key_path: str) -> Span | None:
        """Where the last key of a key path stands; ``None`` where there is no such key."""
        parent = self.find(*key_path[:-1]) if key_path else None
        return None if parent is None else parent.key_span(key_path[-1])

    def span(self, *key_path: str) -> Span:
        """The place of the value at a key path, else of the nearest value around it, else of the file's start."""
        for length in range(len(key_path), 0, -1):
            node = self.find(*key_path[:length])
            if node is not None:
                return node.span
        return Span.at(self.path, 1) if self.root is None else Span(self.path, self.root.span.start)


def config_path(path: Path, display: str) -> tuple[Path, str]:
    """The config itself where ``path`` is a model directory that holds a ``config.json``."""
    inside = path / "config.json"
    try:
        if path.is_dir() and inside.is_file():
            return inside, f"{display.rstrip('/') or display}/config.json"
    except (OSError, ValueError):
        pass
    return path, display


def read_json(path: Path, display: str) -> Document:
    """Read a file that must hold JSON of whatever shape.

    Args:
        path: The file.
        display: How messages name it.

    Raises:
        UnreadableInput: The file is missing, a directory, too large, or not JSON.
    """
    document = Document.parse(display, _read_bytes(path, display))
    if document.errors:
        first = document.errors[0]
        raise UnreadableInput(f"{first.span}: not valid JSON: {first.message}. Mend it there and run again.")
    return document


def read_document(path: Path, display: str) -> Document:
    """Read a file that must hold one JSON object, as :func:`read_json` reads it.

    Raises:
        UnreadableInput: It cannot be read, or holds something else.
    """
    document = read_json(path, display)
    if document.root is None or document.root.kind != "object":
        found = "nothing" if document.root is None else _describe(document.root)
        place = document.span()
        raise UnreadableInput(
            f"{place}: holds {found} where a config is one JSON object. Name the model's config.json."
        )
    return document


def _read_bytes(path: Path, display: str) -> bytes:
    unsaved = unsaved_text(path)
    if unsaved is not None:
        return unsaved
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise UnreadableInput(f"{display} is a directory without a config.json. Name the config file itself.")
        if not stat.S_ISREG(mode):
            raise UnreadableInput(f"{display} is not a regular file. Name a config.json on disk.")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        from eaglelint.hub import why_not_here

        raise UnreadableInput(why_not_here(display) or f"{display} does not exist. Check the path.") from None
    except NotADirectoryError:
        raise UnreadableInput(f"{display} does not exist: a part of the path is a file. Check the path.") from None
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise UnreadableInput(f"{display} cannot be read: {reason}. Check the path and its permissions.") from None
    if len(data) > MAX_BYTES:
        raise UnreadableInput(
            f"{display} is larger than {MAX_BYTES // 2**20} MiB, too large for a model config. "
            "Name the config.json, not weights or a tokenizer."
        )
    return data


def _refusal(body: bytes) -> str | None:
    if len(body) > MAX_BYTES:
        return f"larger than {MAX_BYTES // 2**20} MiB, too large for a model config"
    if next(islice(_ROUGH_TOKEN.finditer(body), MAX_TOKENS, None), None) is not None:
        return f"more than {MAX_TOKENS:,} values, keys and brackets, too many for a model config"
    return None


def _describe(node: Node) -> str:
    if node.kind == "array":
        return "a list"
    return f"a {node.kind}" if node.kind != "word" else str(node.value).lower().replace("none", "null")
