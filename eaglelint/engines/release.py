"""Which release of an engine a package directory holds."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["package_version"]


def package_version(package: Path) -> str | None:
    """The release of a package: from the metadata beside it, else from its version file."""
    for metadata in sorted(package.parent.glob(f"{package.name}-*.dist-info/METADATA")):
        found = re.search(r"^Version:\s*(\S+)", metadata.read_text("utf-8", "replace"), re.M)
        if found:
            return found.group(1)
    for name in ("_version.py", "version.py", "__init__.py"):
        file = package / name
        if file.is_file():
            found = re.search(
                r"""^__version__\s*(?::\s*\w+\s*)?=.*?["']([0-9][^"']*)["']""", file.read_text("utf-8", "replace"), re.M
            )
            if found:
                return found.group(1)
    return None
