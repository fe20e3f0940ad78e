"""GitLab's Code Quality report (docs.gitlab.com/ci/testing/code_quality, "Code Quality report format")."""

from __future__ import annotations

import json
from typing import TextIO

from eaglelint.finding import unique_fingerprints
from eaglelint.links import rule_url
from eaglelint.report.formats import Report

__all__ = ["render"]

_SEVERITIES = {"error": "major", "warning": "minor", "note": "info"}


def render(report: Report, stream: TextIO) -> None:
    """Write the array; empty where nothing was found, as GitLab then shows what has been mended."""
    names = unique_fingerprints(report.findings)
    issues = []
    for finding, fingerprint in zip(report.findings, names, strict=True):
        lines = {"begin": finding.span.start.line}
        if finding.span.end is not None:
            lines["end"] = finding.span.end.line
        issues.append(
            {
                "description": f"{finding.code} {finding.name}: {finding.message} ({rule_url(finding.name)})",
                "check_name": finding.code,
                "fingerprint": fingerprint,
                "severity": _SEVERITIES[finding.severity],
                "location": {"path": finding.span.path.removeprefix("./"), "lines": lines},
            }
        )
    stream.write(json.dumps(issues, indent=2) + "\n")
