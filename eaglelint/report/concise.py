"""One line for each finding, in the form that editors and ``grep`` know how to follow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from eaglelint.finding import Finding
from eaglelint.report.formats import Report
from eaglelint.report.full import code_label
from eaglelint.report.printable import one_line
from eaglelint.report.printer import Printer, printer_for

__all__ = ["render", "render_concise"]


def render(report: Report, stream: TextIO) -> None:
    """Write to a stream; a terminal gets colours."""
    render_concise(report.findings, printer=printer_for(stream))


def render_concise(findings: Iterable[Finding], *, printer: Printer) -> None:
    """Prints ``path:line:column: error[CAP002] message`` for each finding, never broken over lines."""
    for finding in findings:
        place, message = one_line(str(finding.span)), one_line(finding.message)
        printer.line(f"{place}: ", code_label(finding), f" {message}", wrap=False)
