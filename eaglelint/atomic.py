"""Files that are written whole or not at all: the new text is complete on disk before it takes the old one's place."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

__all__ = ["new_beside", "write_whole"]


def write_whole(path: Path, text: bytes) -> None:
    """Replace a file in one step, or make it.

    Raises:
        OSError: It cannot be written; what was there is there still.
    """
    new = new_beside(path, text)
    try:
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def new_beside(path: Path, text: bytes) -> Path:
    """A file in the same directory that holds ``text``, with the permissions of the one it is to replace.

    Raises:
        OSError: It cannot be written; nothing is left behind.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, name)
        else:
            os.chmod(name, 0o644)
    except BaseException:
        os.unlink(name)
        raise
    return Path(name)
