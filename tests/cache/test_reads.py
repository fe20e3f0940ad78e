"""What derivations read, they read through the snapshot: a file that is read past it would give stale answers."""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "eaglelint"
_READS = re.compile(
    r"\.(?:read_bytes|read_text|is_file|is_dir|exists|iterdir|r?glob|stat)\(|\b(?:open|os\.scandir|os\.walk)\("
)

# What decides which unit is asked for, before it is asked for; and eaglelint's own files.
_OUTSIDE_OF_UNITS = {
    "engines/profile_file.py": "learned profiles are no source",
    "engines/profile_part.py": "as are parts of one",
    "engines/release.py": "the release is part of every key",
    "source/snapshot.py": "the snapshot itself",
    "source/stubs.py": "eaglelint's own summaries",
    "trainers/public.py": "the directory that it finds is all that the stack's source is read from",
    "trainers/recipe.py": "a run's own config is read anew each time",
    "trainers/trained.py": "what the user named is compared with the stack's own scripts each time",
    "trainers/files.py": "the list of files, and the roots, are part of the key",
}
# The directory that it finds is part of every key.
_FIND_PACKAGE = re.compile(r"    def find_package\(.*?\n\n", re.S)


def test_sources_are_read_through_the_snapshot() -> None:
    """No other file of the interpreter, engines, survey and trainers asks the file system."""
    asking = set()
    for directory in ("source", "engines", "survey", "trainers"):
        for path in sorted((PACKAGE / directory).rglob("*.py")):
            text = _FIND_PACKAGE.sub("", path.read_text("utf-8"))
            lines = [line for line in text.splitlines() if _READS.search(line)]
            if any("tree." not in line and "snapshot." not in line and "def " not in line for line in lines):
                asking.add(path.relative_to(PACKAGE).as_posix())
    assert asking == _OUTSIDE_OF_UNITS.keys()
