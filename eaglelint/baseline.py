"""Findings of a day on which a project began to use eaglelint: known, left out, and only ever fewer."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eaglelint.artifacts.document import read_document
from eaglelint.atomic import write_whole
from eaglelint.exceptions import UnreadableInput, WrongUsage
from eaglelint.finding import Finding, unique_fingerprints
from eaglelint.project.discovery import display_path

__all__ = ["FILE_NAME", "Baseline", "read_baseline", "write_baseline"]

FILE_NAME = "eaglelint-baseline.json"
_SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Baseline:
    """Findings by their names, each with what a reader of the file wants to know of it."""

    entries: dict[str, dict[str, Any]]

    def split(self, findings: Sequence[Finding], root: Path) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
        """The findings that are new, and those that are known."""
        names = _names(findings, root)
        new = tuple(finding for finding, name in zip(findings, names, strict=True) if name not in self.entries)
        known = tuple(finding for finding, name in zip(findings, names, strict=True) if name in self.entries)
        return new, known

    def shrunk(self, findings: Sequence[Finding], root: Path) -> Baseline:
        """Without the entries that are not found any more; what is new does not come in."""
        names = set(_names(findings, root))
        return Baseline({name: entry for name, entry in self.entries.items() if name in names})

    @classmethod
    def of(cls, findings: Sequence[Finding], root: Path) -> Baseline:
        """All of these findings."""
        rows = zip(_names(findings, root), findings, strict=True)
        return cls(
            {
                name: {"code": finding.code, "path": _path(finding, root), "message": finding.message}
                for name, finding in rows
            }
        )


def _names(findings: Sequence[Finding], root: Path) -> tuple[str, ...]:
    """Fingerprints that do not depend on the directory in which the command is run."""
    return unique_fingerprints(
        tuple(replace(finding, span=replace(finding.span, path=_path(finding, root))) for finding in findings)
    )


def _path(finding: Finding, root: Path) -> str:
    return display_path(Path(os.path.abspath(finding.span.path)), root)


def read_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises:
        UnreadableInput: It is missing or not a baseline.
    """
    shown = display_path(path)
    data = read_document(path, shown).data
    rows = data.get("findings")
    if data.get("schema_version") != _SCHEMA_VERSION or not isinstance(rows, list):
        raise UnreadableInput(f"{shown} is no baseline. Make one with `eaglelint baseline create`.")
    entries = {}
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("fingerprint"), str):
            raise UnreadableInput(f"{shown} holds a finding without a fingerprint. Make it anew.")
        entries[row["fingerprint"]] = {key: row.get(key) for key in ("code", "path", "message")}
    return Baseline(entries)


def write_baseline(path: Path, baseline: Baseline, *, overwrite: bool) -> None:
    """Write a baseline, whole or not at all; sorted, so that a change of it reads well in a diff.

    Raises:
        UnreadableInput: It cannot be written.
        WrongUsage: There is one already, and ``overwrite`` is false.
    """
    shown = display_path(path)
    if path.exists() and not overwrite:
        raise WrongUsage(
            f"{shown} exists. `eaglelint baseline update` takes out what is mended; remove it to begin anew."
        )
    rows = sorted(baseline.entries.items(), key=lambda item: (item[1]["path"], item[1]["code"], item[0]))
    findings = [{"fingerprint": name, **entry} for name, entry in rows]
    text = json.dumps({"schema_version": _SCHEMA_VERSION, "findings": findings}, indent=2) + "\n"
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise UnreadableInput(f"{shown} cannot be written: {error.strerror or error}. Check its permissions.") from None
