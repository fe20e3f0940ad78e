"""Texts in memory that stand in for files on disk: edits that are not written yet, an editor's unsaved buffers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

__all__ = ["overlaid", "read_bytes", "unsaved_text", "unsaved_texts"]

_TEXTS: ContextVar[Mapping[str, bytes] | None] = ContextVar("eaglelint overlay", default=None)


@contextmanager
def overlaid(texts: Mapping[Path, bytes]) -> Iterator[None]:
    """While this lasts, readers of these files get these bytes; one inside another adds to it."""
    token = _TEXTS.set({**(_TEXTS.get() or {}), **{_key(path): text for path, text in texts.items()}})
    try:
        yield
    finally:
        _TEXTS.reset(token)


def unsaved_text(path: Path | str) -> bytes | None:
    """The bytes that stand in for a file; ``None`` where the file itself counts."""
    texts = _TEXTS.get()
    return texts.get(_key(path)) if texts else None  # the real path of each file of a tree costs more than its stat


def unsaved_texts() -> Mapping[str, bytes]:
    """All bytes that stand in for files, by the real path of each."""
    return _TEXTS.get() or {}


def read_bytes(path: Path) -> bytes:
    """The bytes of a file, or those that stand in for it.

    Raises:
        OSError: The file cannot be read.
    """
    unsaved = unsaved_text(path)
    return path.read_bytes() if unsaved is None else unsaved


def _key(path: Path | str) -> str:
    return os.path.realpath(path)
