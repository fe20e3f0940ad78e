"""One line for each finding, in the form that editors and ``grep`` know how to follow."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from eaglelint.finding import Finding
from eaglelint.report.full import SEVERITY_STYLES
from eaglelint.report.printable import one_line

__all__ = ["render_concise"]


def render_concise(findings: Iterable[Finding], *, console: Console) -> None:
    """Prints ``path:line:column: error[CAP002] message`` for each finding, never broken over lines."""
    for finding in findings:
        line = Text.assemble(
            f"{one_line(str(finding.span))}: ",
            (f"{finding.severity}[{finding.code}]", SEVERITY_STYLES[finding.severity]),
            f" {one_line(finding.message)}",
        )
        console.print(line, soft_wrap=True)
