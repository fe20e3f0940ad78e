"""SARIF 2.1.0 (OASIS), for code scanning: rules with their pages, evidence as code flows, edits as fixes."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any, TextIO
from urllib.parse import quote

from eaglelint.finding import Edit, Finding, Position, Related, Span, unique_fingerprints
from eaglelint.links import DOCUMENTATION, rule_url
from eaglelint.report.formats import Report
from eaglelint.suppress import Suppressed

__all__ = ["render"]

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
# What GitHub calls precision, in the words of its documentation on SARIF support.
_PRECISIONS = {"certain": "very-high", "likely": "high", "possible": "medium"}

# The projects of the other sections are the rule's tests, and long.
_HELP = ("What it does", "Why it is bad", "References")


def render(report: Report, stream: TextIO) -> None:
    """Write one run with the rules that spoke."""
    silenced = {row.finding: row for row in report.suppressed}
    findings = (*report.findings, *silenced)
    codes = sorted({finding.code for finding in findings})
    names = unique_fingerprints(findings)
    run = {
        "tool": {
            "driver": {
                "name": "eaglelint",
                "version": report.version,
                "informationUri": DOCUMENTATION,
                "rules": [_rule(code) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not report.problems,
                "toolExecutionNotifications": [
                    {"level": level, "message": {"text": text}}
                    for level, texts in (("error", report.problems), ("note", report.notes))
                    for text in texts
                ],
            }
        ],
        "results": [
            _result(finding, codes.index(finding.code), name) | _suppressions(silenced.get(finding))
            for finding, name in zip(findings, names, strict=True)
        ],
    }
    json.dump({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, stream, indent=2)
    stream.write("\n")


def _rule(code: str) -> dict[str, Any]:
    from eaglelint.registry import find_rule, module_of, rule_page
    from eaglelint.rule_page import parse_page

    rule = find_rule(code)
    sections = parse_page(rule_page(rule)).sections
    page = "\n\n".join(f"## {part.heading}\n{part.text.strip()}" for part in sections if part.heading in _HELP)
    return {
        "id": code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.summary},
        "helpUri": rule_url(rule.name),
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": rule.severity},
        "properties": {"tags": [module_of(rule).split(".")[-2]]},
    }


def _result(finding: Finding, rule_index: int, fingerprint: str) -> dict[str, Any]:
    text = finding.message if not finding.help else f"{finding.message}\n{finding.help}"
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "level": finding.severity,
        "message": {"text": text},
        "locations": [_location(finding.span, finding.annotation)],
        "partialFingerprints": {"eaglelint/v1": fingerprint},
        "properties": {"confidence": finding.confidence, "precision": _PRECISIONS[finding.confidence]},
    }
    if finding.probe is not None:
        result["properties"]["probe"] = {"verdict": finding.probe.verdict, "detail": finding.probe.detail}
    if finding.related:
        related = [_location(row.span, _said(row)) for row in finding.related]
        result["relatedLocations"] = [{**location, "id": index} for index, location in enumerate(related, 1)]
        steps = [{"location": location} for location in (*related, result["locations"][0])]
        result["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    fixes = [_fix(edit) for edit in finding.edits if edit.safety != "display"]
    if fixes:
        result["fixes"] = fixes
    return result


def _suppressions(row: Suppressed | None) -> dict[str, Any]:
    if row is None:
        return {}
    suppression = {"kind": "inSource" if row.in_source else "external"}
    return {"suppressions": [suppression | ({"justification": row.reason} if row.reason else {})]}


def _said(row: Related) -> str:
    return f"{row.label}: {row.message}" if row.message else row.label


def _fix(edit: Edit) -> dict[str, Any]:
    return {
        "description": {"text": f"{edit.description} ({edit.safety})"},
        "artifactChanges": [
            {
                "artifactLocation": {"uri": _uri(edit.span.path)},
                "replacements": [
                    {
                        "deletedRegion": _region(edit.span, edit.span.end or edit.span.start),
                        "insertedContent": {"text": edit.text},
                    }
                ],
            }
        ],
    }


def _location(span: Span, message: str) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": _uri(span.path)}, "region": _region(span, span.end)}
    location: dict[str, Any] = {"physicalLocation": place}
    if message:
        location["message"] = {"text": message}
    return location


def _region(span: Span, end: Position | None) -> dict[str, int]:
    region = {"startLine": span.start.line, "startColumn": span.start.column}
    if end is not None:
        region |= {"endLine": end.line, "endColumn": end.column}
    return region


def _uri(path: str) -> str:
    """Relative to the root of the repository, where a scan is run; absolute only for files outside of it."""
    pure = PurePosixPath(path)
    return pure.as_uri() if pure.is_absolute() else quote(pure.as_posix())
