"""Sentences for standard error; what is said of many files alike is said once."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["gathered"]

_MOST_ALIKE = 3


def gathered(notes: Iterable[str]) -> tuple[str, ...]:
    """The notes in their order; more than three that say the same of different files become one.

    A note begins with its file, ``path: ``; whatever names the files of a directory in a list counts as the same.
    """
    groups: dict[str, list[str]] = {}
    for note in dict.fromkeys(notes):
        _, colon, rest = note.partition(": ")
        groups.setdefault(re.sub(r"\([^()]*\)", "", rest) if colon else note, []).append(note)
    lines = []
    for alike in groups.values():
        if len(alike) <= _MOST_ALIKE:
            lines += alike
            continue
        paths = [note.partition(": ")[0] for note in alike]
        rest = alike[0].partition(": ")[2]
        lines.append(f"{paths[0]}, {paths[1]} and {len(paths) - 2} more: {rest}")
    return tuple(lines)
