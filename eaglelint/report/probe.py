"""What a probe saw, for a person and as JSON: each run, then the findings that it speaks of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.text import Text

from eaglelint import __version__
from eaglelint.finding import Finding
from eaglelint.report.json import finding_json
from eaglelint.report.json import render_json as document_text
from eaglelint.report.printable import one_line

if TYPE_CHECKING:
    from eaglelint.probe.outcome import Outcome

__all__ = ["render_json", "render_text"]

_SCHEMA_VERSION = 1
_STYLES = {"passed": "bold green", "failed": "bold red", "inconclusive": "bold yellow"}
_VERDICTS = {"confirmed": "bold red", "refuted": "bold green", "inconclusive": "bold yellow"}


def render_json(findings: Iterable[Finding], outcomes: Iterable[Outcome]) -> str:
    """What ``probe --format json`` prints (schemas/probe.schema.json)."""
    return document_text(
        {
            "schema_version": _SCHEMA_VERSION,
            "tool": {"name": "eaglelint", "version": __version__},
            "outcomes": [outcome.to_json() for outcome in outcomes],
            "findings": [finding_json(finding) for finding in findings],
        }
    )


def render_text(findings: Iterable[Finding], outcomes: Iterable[Outcome], stream: TextIO) -> None:
    """Each run with what it measured, then the findings with a verdict, then which were not tried."""
    console = Console(file=stream, highlight=False, soft_wrap=True)
    findings = tuple(findings)
    for outcome in outcomes:
        head = (f"{outcome.result}[{outcome.probe}]", _STYLES[outcome.result])
        console.print(Text.assemble(head, (f" {one_line(outcome.subject)}: {one_line(outcome.summary)}", "bold")))
        for row in outcome.rows:
            console.print(Text(f"   | {one_line(row)}"))
    for finding in findings:
        if finding.probe is not None:
            console.print(
                Text.assemble(
                    (f"{finding.probe.verdict}", _VERDICTS[finding.probe.verdict]),
                    f" {finding.severity}[{finding.code}] {finding.name}: {one_line(finding.message)}",
                )
            )
            console.print(Text.assemble(("  --> ", "blue"), one_line(str(finding.span))))
            console.print(Text.assemble(("  probe: ", "blue"), one_line(finding.probe.detail)))
    untried = sorted({finding.code for finding in findings if finding.probe is None})
    if untried:
        console.print(Text(f"No run spoke of the findings of {', '.join(untried)}.", style="dim"))
