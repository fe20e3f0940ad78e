"""The format for a person: each finding with its source line, the lines that prove it and the edit that mends it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

from eaglelint.finding import Edit, Finding, Related
from eaglelint.links import rule_url
from eaglelint.report.excerpt import excerpt, read_line
from eaglelint.report.formats import Report
from eaglelint.report.printable import one_line
from eaglelint.report.summary import Summary, summarise

__all__ = ["code_label", "render", "render_full"]

_SEVERITY_STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}

_MARGIN = "   | "
# Where output is no terminal, lines are left whole for the reader's tools; only excerpts are still cut.
_PIPE_WIDTH = 120
_SAFETY = {"safe": "safe", "unsafe": "unsafe", "display": "to be done by hand"}


def code_label(finding: Finding) -> Text:
    """``error[CAP002]``; a terminal that knows links opens the rule's page from it."""
    style = Style.parse(_SEVERITY_STYLES[finding.severity]) + Style(link=rule_url(finding.name))
    return Text(f"{finding.severity}[{finding.code}]", style)


def render(report: Report, stream: TextIO) -> None:
    """Write to a stream; a terminal gets colours."""
    console = Console(file=stream, highlight=False, soft_wrap=True)
    render_full(report.findings, console=console, summary=report.summary)


def render_full(
    findings: Iterable[Finding],
    *,
    console: Console,
    root: Path | None = None,
    summary: Summary | None = None,
) -> None:
    """Prints the findings and, last, the summary.

    Args:
        findings: In the order in which they are printed.
        console: Decides on colour (a terminal, ``NO_COLOR``) and width.
        root: What the findings' paths are relative to; the working directory if left out.
        summary: Counted from the findings if left out.
    """
    findings = tuple(findings)
    width = console.width if console.is_terminal else _PIPE_WIDTH
    for finding in findings:
        for line in _lines(finding, root or Path(), width):
            console.print(line, soft_wrap=not console.is_terminal)
        console.print()
    console.print(Text(str(summary or summarise(findings)), style="bold"))


def _lines(finding: Finding, root: Path, width: int) -> Iterator[Text]:
    yield Text.assemble(code_label(finding), (f" {finding.name}: {one_line(finding.message)}", "bold"))
    yield Text.assemble(("  --> ", "blue"), one_line(str(finding.span)))
    yield from _source(finding, root, width - len(_MARGIN))
    yield from _related(finding.related)
    if finding.help:
        first, *rest = finding.help.splitlines()
        yield Text.assemble(("  help: ", "green"), one_line(first))
        yield from (Text(f"        {one_line(line)}") for line in rest)
    yield from (_edit(edit) for edit in finding.edits)
    if finding.probe:
        yield Text.assemble(("  probe: ", "blue"), one_line(str(finding.probe)))
    if finding.trace:
        yield Text.assemble(("  trace: ", "blue"), (one_line(finding.trace), "dim"))


def _source(finding: Finding, root: Path, width: int) -> Iterator[Text]:
    line = read_line(root / finding.span.path, finding.span.start.line)
    if line is None:
        if finding.annotation:
            yield Text.assemble((_MARGIN, "blue"), one_line(finding.annotation))
        return
    shown = excerpt(line, finding.span, width)
    style = _SEVERITY_STYLES[finding.severity]
    annotation = one_line(finding.annotation)
    underline = " " * shown.indent + "^" * shown.length
    yield Text.assemble((_MARGIN, "blue"), shown.text)
    if shown.indent + shown.length + 1 + cell_len(annotation) <= width:
        yield Text.assemble((_MARGIN, "blue"), (f"{underline} {annotation}".rstrip(), style))
    else:
        indent = max(0, min(shown.indent, width - cell_len(annotation)))
        yield Text.assemble((_MARGIN, "blue"), (underline, style))
        yield Text.assemble((_MARGIN, "blue"), (" " * indent + annotation, style))


def _related(rows: Sequence[Related]) -> Iterator[Text]:
    """One line for each place, the places below each other: ``  trained: dump.py:41  captures before layer 3``."""
    column = max((cell_len(one_line(row.label)) for row in rows), default=0) + 2
    for row in rows:
        label = f"{one_line(row.label)}:"
        place = f"{one_line(row.span.path)}:{row.span.start.line}"
        message = f"  {one_line(row.message)}" if row.message else ""
        yield Text.assemble(("  " + label, "blue"), " " * (column - cell_len(label)), place, message)


def _edit(edit: Edit) -> Text:
    """The new text where it reads well on one line, otherwise the edit's description."""
    short = edit.text.strip() and "\n" not in edit.text.strip() and cell_len(edit.text) <= _PIPE_WIDTH // 2
    what = edit.text.strip() if short else edit.description
    return Text.assemble(("  fix: ", "green"), f"{one_line(what)} ({_SAFETY[edit.safety]})")
