"""The Python sources of a wheel, unpacked into a directory that is gone afterwards; the archive is not trusted."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from eaglelint.exceptions import UnreadableInput

__all__ = ["unpacked"]

MOST_FILES = 50_000
MOST_BYTES = 512 * 1024 * 1024
MOST_BYTES_OF_ONE = 16 * 1024 * 1024


@contextmanager
def unpacked(wheel: Path, display: str) -> Iterator[Path]:
    """A directory with the wheel's .py files and its metadata.

    Raises:
        UnreadableInput: It is no zip archive, or holds more than an engine's sources do.
    """
    with tempfile.TemporaryDirectory(prefix="eaglelint-") as name:
        directory = Path(name)
        try:
            with zipfile.ZipFile(wheel) as archive:
                _unpack(archive, directory, display)
        except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
            raise UnreadableInput(f"{display} cannot be read as a wheel: {error}. Name a .whl file.") from error
        yield directory


def _unpack(archive: zipfile.ZipFile, directory: Path, display: str) -> None:
    wanted = [entry for entry in archive.infolist() if _is_wanted(entry.filename)]
    if len(wanted) > MOST_FILES:
        raise UnreadableInput(f"{display} holds {len(wanted):,} Python files, more than {MOST_FILES:,}.")
    left = MOST_BYTES
    for entry in wanted:
        target = directory.joinpath(*PurePosixPath(entry.filename).parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(entry) as source:
            content = source.read(min(left, MOST_BYTES_OF_ONE) + 1)  # a size in the archive's index may be a lie
        left -= len(content)
        if len(content) > MOST_BYTES_OF_ONE or left < 0:
            raise UnreadableInput(f"{display}: {entry.filename} is larger than a source file can be.")
        target.write_bytes(content)


def _is_wanted(name: str) -> bool:
    parts = PurePosixPath(name).parts
    inside = bool(parts) and not name.startswith(("/", "\\")) and not any(part in ("..", ".") for part in parts)
    return inside and "\\" not in name and ":" not in name and name.endswith((".py", ".dist-info/METADATA"))
