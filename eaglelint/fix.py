"""``--fix``: make the edits of a scan, scan again until there is none left, and write all files or none."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from eaglelint.atomic import new_beside
from eaglelint.edits import applicable_edits, apply_edits
from eaglelint.exceptions import UnreadableInput
from eaglelint.finding import Safety
from eaglelint.overlay import overlaid, read_bytes

if TYPE_CHECKING:
    from eaglelint.scan import ScanResult

__all__ = ["Change", "Fixed", "make_edits", "unified_diff", "write_changes"]

_MAX_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Change:
    """One file before and after its edits; ``count`` is how many edits were made."""

    path: str
    before: bytes
    after: bytes
    count: int


@dataclass(frozen=True, slots=True)
class Fixed:
    """What the edits come to: the files that change, and the scan of what they then hold."""

    changes: tuple[Change, ...]
    result: ScanResult


def make_edits(scan: Callable[[], ScanResult], *, unsafe: bool = False) -> Fixed:
    """Scan, make the edits in memory, and scan what comes out, until no edit is left. Nothing is written.

    Unsafe edits are made in the first round alone: they rest on something that was only declared, and what was
    declared of the old text need not hold for the new one.

    Raises:
        UnreadableInput: The edits do not come to rest, or one does not fit its file.
    """
    changes: dict[Path, Change] = {}
    result = scan()
    problems = set(result.problems)
    safeties: Sequence[Safety] = ("safe", "unsafe") if unsafe else ("safe",)
    for _ in range(_MAX_ROUNDS):
        edits = applicable_edits(result.findings, safeties)
        if not edits:
            return Fixed(tuple(change for change in changes.values() if change.before != change.after), result)
        safeties = ("safe",)
        for name, chosen in edits.items():
            path = Path(os.path.realpath(name))
            change = changes.get(path)
            if change is None:
                text = _read(path, name, unsaved=True)
                change = Change(name, text, text, 0)
            try:
                after = apply_edits(change.after, chosen)
            except ValueError as error:
                raise UnreadableInput(f"{name} changed while it was scanned: {error}. Run again.") from None
            changes[path] = replace(change, after=after, count=change.count + len(chosen))
        with overlaid({path: change.after for path, change in changes.items()}):
            result = scan()
        if broken := [problem for problem in result.problems if problem not in problems]:
            raise UnreadableInput(
                f"An edit would break what it mends, so nothing was written: {broken[0]} "
                "Make it by hand, and report this as a fault of eaglelint."
            )
    raise UnreadableInput(
        f"{' and '.join(sorted(change.path for change in changes.values()))}: the edits undo each other, so nothing "
        "was written. Make one of them by hand, and report this as a fault of eaglelint."
    )


def unified_diff(changes: Sequence[Change]) -> str:
    """The changes as ``patch`` and ``git apply`` take them."""
    return "".join(line for change in changes for line in _diff(change))


def _diff(change: Change) -> Iterator[str]:
    before, after = (
        re.findall(r"[^\n]*\n|[^\n]+$", text.decode(errors="surrogateescape")) for text in (change.before, change.after)
    )
    for line in difflib.unified_diff(before, after, f"a/{change.path}", f"b/{change.path}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def write_changes(changes: Sequence[Change]) -> None:
    """Write all the changes, or none: new files are complete on disk before the first takes its place.

    Raises:
        UnreadableInput: A file changed meanwhile or cannot be written; all hold what they held before.
    """
    ready: list[tuple[Path, Path, Change]] = []
    replaced: list[tuple[Path, Change]] = []
    try:
        for change in changes:
            path = Path(os.path.realpath(change.path))
            ready.append((path, new_beside(path, change.after), change))
        for path, _, change in ready:
            if _read(path, change.path) != change.before:
                raise UnreadableInput(f"{change.path} changed while it was scanned: nothing was written. Run again.")
        for path, new, change in ready:
            os.replace(new, path)
            replaced.append((path, change))
    except OSError as error:
        for path, change in replaced:
            with suppress(OSError):
                os.replace(new_beside(path, change.before), path)
        raise UnreadableInput(
            f"{change.path} cannot be written: {error.strerror or error}. Nothing was changed; check its permissions."
        ) from None
    finally:
        for _, new, _ in ready:
            new.unlink(missing_ok=True)


def _read(path: Path, name: str, *, unsaved: bool = False) -> bytes:
    try:
        return read_bytes(path) if unsaved else path.read_bytes()
    except OSError as error:
        raise UnreadableInput(f"{name} cannot be read: {error.strerror or error}. Run again.") from None
