"""A file's findings of one rule, ignored in the settings: for files that can hold no comment."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array

from eaglelint.exceptions import EaglelintError
from eaglelint.overlay import read_bytes
from eaglelint.project.settings import find_settings

__all__ = ["SettingsEdit", "ignoring"]


@dataclass(frozen=True, slots=True)
class SettingsEdit:
    """A settings file, what it holds (``None``: it is to be made), and what it shall hold."""

    path: Path
    before: str | None
    after: str


def ignoring(code: str, file: Path, workspace: Path) -> SettingsEdit | None:
    """The settings that hold for a file, with one rule ignored in it; None where they cannot be edited.

    Without settings they go where ``eaglelint init`` writes them: to the end of the workspace's pyproject.toml where
    there is one, else into a new eaglelint.toml.
    """
    try:
        settings = find_settings(file.parent).path
    except EaglelintError:
        return None
    if settings is None:
        project = workspace / "pyproject.toml"
        settings = project if project.is_file() else workspace / "eaglelint.toml"
    try:
        before = read_bytes(settings).decode("utf-8") if settings.is_file() else None
        document = tomlkit.parse(before or "")
    except (OSError, UnicodeDecodeError, TOMLKitError):
        return None
    table: dict[str, Any] | None = document
    for key in ("tool", "eaglelint") if settings.name == "pyproject.toml" else ():
        table = _table(table, key)
    ignores = _table(table, "per-file-ignores")
    if ignores is None:
        return None
    # A slash says that the place below the settings is meant, and not the name alone.
    place = Path(os.path.relpath(file, settings.parent)).as_posix()
    pattern = next((old for old in ignores if old.lstrip("/") == place), None) or _pattern(place)
    codes = ignores.setdefault(pattern, tomlkit.array())
    if not isinstance(codes, Array) or code in codes:
        return None
    codes.append(code)
    return SettingsEdit(settings, before, tomlkit.dumps(document))


def _pattern(place: str) -> str:
    escaped = glob.escape(place)
    return escaped if "/" in escaped else f"/{escaped}"


def _table(parent: dict[str, Any] | None, key: str) -> dict[str, Any] | None:
    """The table of that name, made where it is not there; None where something else has the name."""
    if parent is None:
        return None
    if key not in parent:
        parent[key] = tomlkit.table(is_super_table=key == "tool")
    found = parent[key]
    return found if isinstance(found, dict) else None
