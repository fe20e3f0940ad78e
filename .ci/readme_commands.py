"""Prints the commands of a block of the README, so that they are run as they stand there.

A block is marked by a comment on a line of its own, `<!-- readme:tests -->`, before its ```console fence.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def commands(text: str, mark: str) -> list[str]:
    """The lines after ``$`` of the marked block, continued lines with them.

    Raises:
        LookupError: The block is missing, twice there, or holds no command.
    """
    block = re.compile(rf"^<!-- readme:{re.escape(mark)} -->\s*^```console\n(.*?)^```\s*$", re.DOTALL | re.MULTILINE)
    found = block.findall(text)
    if len(found) != 1:
        raise LookupError(f"README.md has {len(found)} console blocks marked <!-- readme:{mark} -->, not one.")
    lines = re.findall(r"^\$ ((?:.*\\\n)*.*)$", found[0], re.MULTILINE)
    if not lines:
        raise LookupError(f"The block <!-- readme:{mark} --> of README.md has no line that begins with '$ '.")
    return lines


if __name__ == "__main__":
    try:
        print("\n".join(commands(README.read_text(encoding="utf-8"), sys.argv[1])))
    except LookupError as error:
        sys.exit(str(error))
