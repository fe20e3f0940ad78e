"""Settings of a project: ``[tool.eaglelint]`` in pyproject.toml, or eaglelint.toml. The only place for pydantic."""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from eaglelint.exceptions import UnreadableInput, WrongUsage
from eaglelint.finding import Confidence, Severity
from eaglelint.overlay import unsaved_text

__all__ = [
    "FILE_NAMES",
    "MAX_BYTES",
    "Pipeline",
    "ProjectSettings",
    "Settings",
    "as_toml",
    "find_settings",
    "load_settings",
    "settings_schema",
]

FILE_NAMES = ("eaglelint.toml", "pyproject.toml")
"""Names of settings files; where one directory has both, the first is taken."""

MAX_BYTES = 4 * 1024 * 1024


def _kebab(name: str) -> str:
    return name.replace("_", "-")


class _Table(BaseModel):
    # Most projects have no settings: their defaults are not worth the time it takes to build validators.
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=_kebab, defer_build=True)


class Pipeline(_Table):
    """Which draft meets which target, training and serving; paths are relative to the settings file."""

    draft: str = Field(description="The draft's config, or a directory that holds its config.json.")
    name: str | None = Field(default=None, description="What reports call it; the draft's path if left out.")
    target: str | None = Field(default=None, description="The target's config, or a directory with its config.json.")
    training: tuple[str, ...] = Field(default=(), description="Training scripts, or directories of them.")
    trained_by: str | None = Field(
        default=None,
        description="Who trained the draft: STACK@PATH, STACK==VERSION or an installed STACK (specforge, speculators, "
        "modelopt, ...); or what its ids mean, layer-output or boundary.",
    )
    captured_by: tuple[str, ...] = Field(
        default=(), description="The engine that captured the states for the training stack: ENGINE@PATH."
    )
    serving: tuple[str, ...] = Field(
        default=(), description="Who serves it: ENGINE==VERSION, ENGINE@PATH, or an installed ENGINE."
    )
    launch: str | None = Field(default=None, description="A script with the command that starts the engine.")
    dump: str | None = Field(
        default=None, description="Hidden states that were dumped for training: a directory of samples, or one."
    )
    fine_tuned_from: str | None = Field(
        default=None, description="The draft that this one was trained further from, a directory with its checkpoint."
    )
    draft_kind: Literal["eagle3", "eagle", "peagle", "dflash", "dspark", "domino", "mtp"] | None = Field(
        default=None, description="The kind of draft, where its config does not tell."
    )


class Settings(_Table):
    """The table ``[tool.eaglelint]``."""

    select: tuple[str, ...] = Field(default=(), description="Rules to run, by code, name or family; all if empty.")
    ignore: tuple[str, ...] = Field(default=(), description="Rules to leave out, by code, name or family.")
    fail_on: Severity = Field(default="error", description="The least severity that makes the exit code 1.")
    min_confidence: Confidence = Field(default="possible", description="The least confidence that is reported.")
    severity: dict[str, Severity] = Field(default_factory=dict, description="Severities by rule, code or family.")
    per_file_ignores: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="Rules to ignore by glob of files, for files that can hold no comment."
    )
    baseline: str | None = Field(default=None, description="A file of findings that are known and left out.")
    cache: bool = Field(default=True, description="Whether results are kept in the user's cache directory.")
    exclude: tuple[str, ...] = Field(default=(), description="Globs of files and directories that are not scanned.")
    force_exclude: bool = Field(default=False, description="Leave out excluded files also where they are named.")
    assume: tuple[str, ...] = Field(default=(), description="Conditions that are taken as given.")
    pipeline: tuple[Pipeline, ...] = Field(default=(), description="Drafts and what they meet.")


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """Settings and the file they were read from; ``path`` is ``None`` where there is no such file."""

    settings: Settings
    path: Path | None = None

    @property
    def root(self) -> Path | None:
        """The directory that paths in the settings are relative to."""
        return None if self.path is None else self.path.parent


def settings_schema() -> dict[str, Any]:
    """The JSON Schema of the table, for editors (schemas/settings.schema.json)."""
    schema = Settings.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "[tool.eaglelint]"}


def as_toml(settings: Settings) -> str:
    """All the settings as they stand, defaults included, in the form of eaglelint.toml."""
    table = settings.model_dump(mode="json", by_alias=True, exclude_none=True)
    pipelines = table.pop("pipeline")
    lines = [f"{key} = {_toml(value)}" for key, value in table.items()]
    for pipeline in pipelines:
        lines += ["", "[[pipeline]]", *(f"{key} = {_toml(value)}" for key, value in pipeline.items())]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, dict):
        rows = ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items())
        return f"{{ {rows} }}" if rows else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    # Of what JSON writes, strings, numbers and booleans are TOML too; only DEL must be escaped in addition.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def find_settings(start: Path) -> ProjectSettings:
    """The settings of the nearest directory that has some, from ``start`` upwards; the defaults where none has.

    Raises:
        UnreadableInput: The file that was found is not TOML or cannot be read.
        WrongUsage: It holds an unknown key or a value of the wrong type.
    """
    start = start.absolute()
    for directory in (start, *start.parents):
        for name in FILE_NAMES:
            path = directory / name
            if path.is_file() and _speaks_of_us(path):
                found = _load(path)
                if found is not None:
                    return found
    return ProjectSettings(Settings.model_construct())


def load_settings(path: Path) -> ProjectSettings:
    """The settings in one named file; the defaults where a pyproject.toml has no ``[tool.eaglelint]``.

    Raises:
        UnreadableInput: The file is missing, not TOML, or cannot be read.
        WrongUsage: It holds an unknown key or a value of the wrong type.
    """
    return _load(path) or ProjectSettings(Settings.model_construct(), path)


def _speaks_of_us(path: Path) -> bool:
    # A broken pyproject.toml of somebody else's is not our business.
    return path.name != "pyproject.toml" or b"eaglelint" in _read_bytes(path)


def _load(path: Path) -> ProjectSettings | None:
    if sys.version_info >= (3, 11):  # imported here, as most projects have no settings
        import tomllib
    else:
        # mypy checks for 3.10 on whatever Python runs it, and only 3.10 has tomli installed.
        import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]
    try:
        text = _read_bytes(path).decode()
        document = tomllib.loads(text)
    except UnicodeDecodeError:
        raise UnreadableInput(f"{path} is not UTF-8. Save it as UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        # "Expected '=' after a key in a key/value pair (at line 3, column 5)"
        message, _, place = str(error).rpartition(" (at ")
        line = re.match(r"line (\d+), column (\d+)", place)
        where = f"{path}:{line[1]}:{line[2]}" if line else str(path)
        raise UnreadableInput(f"{where}: not valid TOML: {message or error}. Mend it there and run again.") from None
    except RecursionError:
        raise UnreadableInput(f"{path}: nested too deeply. Flatten it and run again.") from None
    if path.name != "pyproject.toml":
        return ProjectSettings(_validate(document, path, text, header=""), path)
    tool = document.get("tool")
    table = tool.get("eaglelint") if isinstance(tool, dict) else None
    return None if table is None else ProjectSettings(_validate(table, path, text, header="tool.eaglelint"), path)


def _read_bytes(path: Path) -> bytes:
    try:
        unsaved = unsaved_text(path)
        if unsaved is not None:
            return unsaved[: MAX_BYTES + 1]
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise UnreadableInput(f"{path} does not exist. Check the path of the settings file.") from None
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise UnreadableInput(f"{path} cannot be read: {reason}. Check the path and its permissions.") from None
    if len(data) > MAX_BYTES:
        raise UnreadableInput(f"{path} is larger than {MAX_BYTES // 2**20} MiB. Name a settings file.")
    return data


def _validate(table: object, path: Path, text: str, *, header: str) -> Settings:
    try:
        return Settings.model_validate(table)
    except ValidationError as error:
        sentences = [_sentence(details, path, text, header) for details in error.errors()]
        raise WrongUsage("\n".join(sentences)) from None


def _sentence(details: ErrorDetails, path: Path, text: str, header: str) -> str:
    location = details["loc"]
    line = _line_of(location, text, header)
    where = f"{path}:{line}" if line else str(path)
    keys = [str(part) for part in location if not isinstance(part, int)]
    if details["type"] == "extra_forbidden":
        if not header and keys == ["tool"]:
            return f"{where}: in {path.name} the settings stand at the top level. Leave out [tool.eaglelint]."
        known = [field.alias or name for name, field in _model(location).model_fields.items()]
        close = difflib.get_close_matches(_kebab(keys[-1]), known, n=1)
        advice = f"Did you mean {close[0]}?" if close else f"Known keys: {', '.join(known)}."
        return f"{where}: unknown key {keys[-1]}. {advice}"
    name = ".".join(keys) or header or "the settings"
    if details["type"] == "missing":
        return f"{where}: a pipeline without {keys[-1]}. Add it."
    return f"{where}: {name} is {_show(details['input'])}. Expected {_expected(details)}."


def _model(location: tuple[int | str, ...]) -> type[_Table]:
    return Pipeline if len(location) > 1 else Settings


def _expected(details: ErrorDetails) -> str:
    if details["type"] == "literal_error":
        return details["ctx"]["expected"] if "ctx" in details else "another value"
    return {"string_type": "a string", "tuple_type": "a list", "model_type": "a table"}.get(
        details["type"], details["msg"]
    )


def _show(value: object) -> str:
    if isinstance(value, Mapping):
        return "a table"
    shown = ascii(value)
    return shown if len(shown) <= 40 else f"{shown[:40]}..."


def _line_of(location: tuple[int | str, ...], text: str, header: str) -> int | None:
    """The line of a key, found in the text, since a TOML reader tells no places; ``None`` where it is not plain."""
    lines = text.splitlines()
    tables = _tables(lines)
    index = next((part for part in location if isinstance(part, int)), None)
    keys = [*header.split("."), *(part for part in location if isinstance(part, str))]
    keys = [key for key in keys if key]
    # The innermost table that stands in the text holds the key, or is what is wrong itself.
    for depth in range(len(keys), -1, -1):
        found = [table for table in tables if table[0] == ".".join(keys[:depth])]
        if index is not None and depth and keys[depth - 1] == "pipeline":
            found = found[index : index + 1]
        for _, first, last in found:
            if depth < len(keys):
                pattern = re.compile(rf"""\s*["']?{re.escape(keys[depth])}["']?\s*[=.]""")
                matches = (number for number in range(first + 1, last + 1) if pattern.match(lines[number - 1]))
                number = next(matches, first)
            else:
                number = first
            if number:
                return number
    return next((first for name, first, _ in tables if keys and name.startswith(f"{keys[-1]}.")), None)


def _tables(lines: list[str]) -> list[tuple[str, int, int]]:
    """Each table's name, the line of its header, and its last line; the text before any header is named ``""``."""
    starts = [("", 0)]
    for number, line in enumerate(lines, 1):
        match = re.match(r"\s*\[{1,2}\s*([^\[\]]+?)\s*\]{1,2}\s*(#.*)?$", line)
        if match:
            starts.append((re.sub(r"[\s\"']", "", match[1]), number))
    ends = [number - 1 for _, number in starts[1:]] + [len(lines)]
    return [(name, number, end) for (name, number), end in zip(starts, ends, strict=True)]
