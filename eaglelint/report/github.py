"""Annotations on a pull request: GitHub's workflow commands, one a finding.

The form and its escapes are those of @actions/core (actions/toolkit, packages/core/src/command.ts).
"""

from __future__ import annotations

from typing import TextIO

from eaglelint.finding import Finding
from eaglelint.links import rule_url
from eaglelint.report.formats import Report

__all__ = ["render"]

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def render(report: Report, stream: TextIO) -> None:
    """Write the commands, and the summary as a line of its own."""
    for finding in report.findings:
        stream.write(_command(finding) + "\n")
    stream.write(f"{report.summary}\n")


def _command(finding: Finding) -> str:
    start, end = finding.span.start, finding.span.end
    properties: dict[str, object] = {
        "title": f"{finding.code} {finding.name}",
        "file": finding.span.path,
        "line": start.line,
        "col": start.column,
    }
    # A column of an end is taken as one of the first line, so several lines are marked without.
    if end is not None and end.line == start.line:
        properties["endColumn"] = end.column
    elif end is not None:
        properties["endLine"] = end.line
        del properties["col"]
    shown = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    lines = [finding.message]
    lines += [f"{row.label}: {row.span.path}:{row.span.start.line} {row.message}".rstrip() for row in finding.related]
    if finding.help:
        lines.append(f"help: {finding.help}")
    lines.append(rule_url(finding.name))
    return f"::{_COMMANDS[finding.severity]} {shown}::{_data(chr(10).join(lines))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
