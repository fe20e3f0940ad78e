"""The format for a person: each finding with its source line, the lines that prove it and the edit that mends it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from rich.cells import cell_len

from eaglelint.finding import Edit, Finding, Related
from eaglelint.links import rule_url
from eaglelint.report.excerpt import excerpt, read_line
from eaglelint.report.formats import Report
from eaglelint.report.printable import one_line
from eaglelint.report.printer import Piece, Printer, printer_for
from eaglelint.report.summary import Summary, summarise

__all__ = ["code_label", "render", "render_full"]

_SEVERITY_STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}

_MARGIN = "   | "
# Where output is no terminal, lines are left whole for the reader's tools; only excerpts are still cut.
_PIPE_WIDTH = 120
_SAFETY = {"safe": "safe", "unsafe": "unsafe", "display": "to be done by hand"}


_Line = tuple[Piece, ...]


def code_label(finding: Finding) -> Piece:
    """``error[CAP002]``; a terminal that knows links opens the rule's page from it."""
    style = f"{_SEVERITY_STYLES[finding.severity]} link {rule_url(finding.name)}"
    return f"{finding.severity}[{finding.code}]", style


def render(report: Report, stream: TextIO) -> None:
    """Write to a stream; a terminal gets colours."""
    render_full(report.findings, printer=printer_for(stream), summary=report.summary)


def render_full(
    findings: Iterable[Finding],
    *,
    printer: Printer,
    root: Path | None = None,
    summary: Summary | None = None,
) -> None:
    """Prints the findings and, last, the summary.

    Args:
        findings: In the order in which they are printed.
        printer: Decides on colour (a terminal, ``NO_COLOR``) and width.
        root: What the findings' paths are relative to; the working directory if left out.
        summary: Counted from the findings if left out.
    """
    findings = tuple(findings)
    for finding in findings:
        for line in _lines(finding, root or Path(), printer.width or _PIPE_WIDTH):
            printer.line(*line)
        printer.line()
    printer.line((str(summary or summarise(findings)), "bold"))


def _lines(finding: Finding, root: Path, width: int) -> Iterator[_Line]:
    yield (code_label(finding), (f" {finding.name}: {one_line(finding.message)}", "bold"))
    yield (("  --> ", "blue"), one_line(str(finding.span)))
    yield from _source(finding, root, width - len(_MARGIN))
    yield from _related(finding.related)
    if finding.help:
        first, *rest = finding.help.splitlines()
        yield (("  help: ", "green"), one_line(first))
        yield from ((f"        {one_line(line)}",) for line in rest)
    yield from (_edit(edit) for edit in finding.edits)
    if finding.probe:
        yield (("  probe: ", "blue"), one_line(str(finding.probe)))
    if finding.trace:
        yield (("  trace: ", "blue"), (one_line(finding.trace), "dim"))


def _source(finding: Finding, root: Path, width: int) -> Iterator[_Line]:
    line = read_line(root / finding.span.path, finding.span.start.line)
    if line is None:
        if finding.annotation:
            yield ((_MARGIN, "blue"), one_line(finding.annotation))
        return
    shown = excerpt(line, finding.span, width)
    style = _SEVERITY_STYLES[finding.severity]
    annotation = one_line(finding.annotation)
    underline = " " * shown.indent + "^" * shown.length
    yield ((_MARGIN, "blue"), shown.text)
    if shown.indent + shown.length + 1 + cell_len(annotation) <= width:
        yield ((_MARGIN, "blue"), (f"{underline} {annotation}".rstrip(), style))
    else:
        indent = max(0, min(shown.indent, width - cell_len(annotation)))
        yield ((_MARGIN, "blue"), (underline, style))
        yield ((_MARGIN, "blue"), (" " * indent + annotation, style))


def _related(rows: Sequence[Related]) -> Iterator[_Line]:
    """One line for each place, the places below each other: ``  trained: dump.py:41  captures before layer 3``."""
    column = max((cell_len(one_line(row.label)) for row in rows), default=0) + 2
    for row in rows:
        label = f"{one_line(row.label)}:"
        place = f"{one_line(row.span.path)}:{row.span.start.line}"
        message = f"  {one_line(row.message)}" if row.message else ""
        yield (("  " + label, "blue"), " " * (column - cell_len(label)), place, message)


def _edit(edit: Edit) -> _Line:
    """The new text where it reads well on one line, otherwise the edit's description."""
    short = edit.text.strip() and "\n" not in edit.text.strip() and cell_len(edit.text) <= _PIPE_WIDTH // 2
    what = edit.text.strip() if short else edit.description
    return (("  fix: ", "green"), f"{one_line(what)} ({_SAFETY[edit.safety]})")
