"""The machine contract: findings and wirings as the documents that the schemas describe."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

from eaglelint.finding import Edit, Finding, Position, Related, Span
from eaglelint.links import rule_url
from eaglelint.report.formats import Report
from eaglelint.wiring import Wiring

__all__ = ["finding_json", "render", "render_json", "report_document", "wiring_document"]

_SCHEMA_VERSION = 1


def report_document(
    findings: Iterable[Finding],
    wirings: Iterable[Wiring],
    summary: Mapping[str, Any],
    tool_version: str,
) -> dict[str, Any]:
    """What ``scan --output-format json`` prints (schemas/report.schema.json)."""
    return {
        "schema_version": _SCHEMA_VERSION,
        "tool": {"name": "eaglelint", "version": tool_version},
        "findings": [finding_json(finding) for finding in findings],
        "wirings": [wiring.to_json() for wiring in wirings],
        "summary": dict(summary),
    }


def wiring_document(wirings: Iterable[Wiring]) -> dict[str, Any]:
    """What ``wiring`` and ``engines show`` print with ``--format json`` (schemas/wiring.schema.json)."""
    return {"schema_version": _SCHEMA_VERSION, "wirings": [wiring.to_json() for wiring in wirings]}


def render_json(document: Mapping[str, Any]) -> str:
    """The document as text, in ASCII: it prints in every encoding, whatever a scanned file holds."""
    return json.dumps(document, indent=2)


def render(report: Report, stream: TextIO) -> None:
    """Write the whole document."""
    document = report_document(report.findings, report.wirings, report.summary.to_json(), report.version)
    stream.write(render_json(document) + "\n")


def finding_json(finding: Finding) -> dict[str, Any]:
    """A finding as schemas/report.schema.json describes it."""
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "message": finding.message,
        "location": _location(finding.span),
        "related": [_related(related) for related in finding.related],
        "help": finding.help,
        "url": rule_url(finding.name),
        "edits": [_edit(edit) for edit in finding.edits],
        "fingerprint": finding.fingerprint,
        "trace": finding.trace,
        "probe": None if finding.probe is None else {"verdict": finding.probe.verdict, "detail": finding.probe.detail},
    }


def _related(related: Related) -> dict[str, Any]:
    return {"label": related.label, "message": related.message, "location": _location(related.span)}


def _edit(edit: Edit) -> dict[str, Any]:
    return {
        "safety": edit.safety,
        "path": edit.span.path,
        "start": _position(edit.span.start),
        "end": _position(edit.span.end or edit.span.start),
        "text": edit.text,
        "description": edit.description,
    }


def _location(span: Span) -> dict[str, Any]:
    location: dict[str, Any] = {"path": span.path, "start": _position(span.start)}
    if span.end is not None:
        location["end"] = _position(span.end)
    return location


def _position(position: Position) -> dict[str, int]:
    return {"line": position.line, "column": position.column}
