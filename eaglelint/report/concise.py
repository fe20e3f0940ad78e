"""One line for each finding, in the form that editors and ``grep`` know how to follow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.text import Text

from eaglelint.finding import Finding
from eaglelint.report.formats import Report
from eaglelint.report.full import code_label
from eaglelint.report.printable import one_line

__all__ = ["render", "render_concise"]


def render(report: Report, stream: TextIO) -> None:
    """Write to a stream; a terminal gets colours."""
    console = Console(file=stream, highlight=False, soft_wrap=True)
    render_concise(report.findings, console=console)


def render_concise(findings: Iterable[Finding], *, console: Console) -> None:
    """Prints ``path:line:column: error[CAP002] message`` for each finding, never broken over lines."""
    for finding in findings:
        line = Text.assemble(
            f"{one_line(str(finding.span))}: ",
            code_label(finding),
            f" {one_line(finding.message)}",
        )
        console.print(line, soft_wrap=True)
