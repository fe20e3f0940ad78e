"""Diagnostics as the Language Server Protocol (3.17) publishes them, for editors that run a command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from eaglelint.finding import Finding, Position, Span
from eaglelint.links import rule_url
from eaglelint.report.excerpt import read_line
from eaglelint.report.formats import Report

__all__ = ["diagnostic", "render", "utf16_column"]

_SEVERITIES = {"error": 1, "warning": 2, "note": 3}

ColumnOf = Callable[[str, Position], int]


def render(report: Report, stream: TextIO) -> None:
    """Write one object for each file that has findings, in an array."""
    by_path: dict[str, list[Finding]] = {}
    for finding in report.findings:
        by_path.setdefault(finding.span.path, []).append(finding)
    documents = [
        {"uri": _uri(path), "diagnostics": [diagnostic(finding) for finding in findings]}
        for path, findings in by_path.items()
    ]
    json.dump(documents, stream, indent=2)
    stream.write("\n")


def utf16_column(path: str, position: Position) -> int:
    """The 0-based column in UTF-16 code units, the protocol's default; the file is read for it."""
    before = (read_line(Path(path), position.line) or "")[: position.column - 1]
    return position.column - 1 + sum(character > "\uffff" for character in before)


def diagnostic(finding: Finding, column_of: ColumnOf = utf16_column) -> dict[str, Any]:
    """A finding as a Diagnostic; ``column_of`` counts columns in the units that the client asked for."""
    life = None if finding.trace is None else f"trace: {finding.trace}"
    message = "\n".join(line for line in (finding.message, finding.help, life) if line)
    return {
        "range": _range(finding.span, column_of),
        "severity": _SEVERITIES[finding.severity],
        "code": finding.code,
        "codeDescription": {"href": rule_url(finding.name)},
        "source": "eaglelint",
        "message": message,
        "relatedInformation": [
            {
                "location": {"uri": _uri(row.span.path), "range": _range(row.span, column_of)},
                "message": f"{row.label}: {row.message}" if row.message else row.label,
            }
            for row in finding.related
        ],
        "data": {
            "name": finding.name,
            "confidence": finding.confidence,
            "fingerprint": finding.fingerprint,
            "trace": finding.trace,
            "edits": [
                {
                    "safety": edit.safety,
                    "title": edit.description,
                    "uri": _uri(edit.span.path),
                    "range": _range(edit.span, column_of),
                    "newText": edit.text,
                }
                for edit in finding.edits
            ],
        },
    }


def _range(span: Span, column_of: ColumnOf) -> dict[str, dict[str, int]]:
    return {
        side: {"line": position.line - 1, "character": column_of(span.path, position)}
        for side, position in (("start", span.start), ("end", span.end or span.start))
    }


def _uri(path: str) -> str:
    return Path(path).absolute().as_uri()
