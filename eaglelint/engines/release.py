"""Which release of an engine or a trainer a package directory holds, and which of another one it asks for."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["package_version", "required_version"]


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


def required_version(package: Path, name: str) -> str | None:
    """The one release of another package that a package asks for: in its metadata, else its pyproject.toml."""
    places = [*sorted(package.parent.glob(f"{package.name}-*.dist-info/METADATA"))]
    places += [parent / "pyproject.toml" for parent in package.parents[:2]]
    for place in places:
        if place.is_file():
            text = place.read_text("utf-8", "replace")
            found = re.search(rf"\b{re.escape(name)}(?:\[[^\]]*\])?\s*==\s*([\w.]+)", text)
            if found:
                return found.group(1)
    return None
