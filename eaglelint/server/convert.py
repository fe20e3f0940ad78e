"""Findings as the protocol's diagnostics and code actions, with columns in the units that the client chose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from lsprotocol import types as lsp
from lsprotocol.converters import get_converter

from eaglelint.edits import applicable_edits
from eaglelint.finding import Edit, Finding, Position, Span
from eaglelint.project.ignoring import SettingsEdit
from eaglelint.report.lsp import diagnostic
from eaglelint.server.check import Checked

__all__ = ["Columns", "actions", "diagnostics", "fix_all", "overlaps", "to_range"]

Columns = Callable[[str, Position], int]

_CONVERTER = get_converter()
# Files whose comments begin with "#"; JSON has none.
_COMMENTED = frozenset({".py", ".toml", ".yaml", ".yml"})


def diagnostics(checked: Checked, columns: Columns) -> list[lsp.Diagnostic]:
    """All that is wrong in a document."""
    found = [
        lsp.Diagnostic(
            range=to_range(problem.span, columns),
            message=f"not valid JSON: {problem.message}",
            severity=lsp.DiagnosticSeverity.Error,
            source="eaglelint",
        )
        for problem in checked.syntax
    ]
    return found + [_diagnostic(finding, columns) for finding in checked.findings]


def _diagnostic(finding: Finding, columns: Columns) -> lsp.Diagnostic:
    """What ``scan --output-format lsp`` prints, as the protocol's own type."""
    return _CONVERTER.structure(diagnostic(finding, columns), lsp.Diagnostic)


def actions(
    checked: Checked, within: lsp.Range, text: str, columns: Columns, ignored: Callable[[Finding], SettingsEdit | None]
) -> Iterator[lsp.CodeAction]:
    """What can be done about the findings that a range touches.

    Args:
        ignored: The edit of the settings that silences a finding where no comment can.
    """
    for finding in checked.findings:
        if not overlaps(to_range(finding.span, columns), within):
            continue
        shown = [_diagnostic(finding, columns)]
        for edit in finding.edits:
            if edit.safety != "display":
                yield lsp.CodeAction(
                    title=f"{_title(edit)}{'' if edit.safety == 'safe' else ' (unsafe)'}",
                    kind=lsp.CodeActionKind.QuickFix,
                    diagnostics=shown,
                    is_preferred=edit.safety == "safe",
                    edit=_workspace_edit([edit], columns),
                )
        if Path(finding.span.path).suffix in _COMMENTED:
            yield lsp.CodeAction(
                title=f"Ignore {finding.code} here",
                kind=lsp.CodeActionKind.QuickFix,
                diagnostics=shown,
                edit=_workspace_edit([_ignore(finding, text)], columns),
            )
        elif (settings := ignored(finding)) is not None:
            yield lsp.CodeAction(
                title=f"Ignore {finding.code} in this file ({settings.path.name})",
                kind=lsp.CodeActionKind.QuickFix,
                diagnostics=shown,
                edit=_settings_edit(settings),
            )


def fix_all(checked: Checked, columns: Columns) -> lsp.CodeAction | None:
    """All safe edits of a document at once; ``None`` where there is none."""
    edits = [edit for chosen in applicable_edits(checked.findings, ["safe"]).values() for edit in chosen]
    if not edits:
        return None
    return lsp.CodeAction(
        title="Make all safe edits of eaglelint",
        kind=lsp.CodeActionKind("source.fixAll"),
        edit=_workspace_edit(edits, columns),
    )


def _title(edit: Edit) -> str:
    text = edit.text.strip()
    return f"Write {text}" if text and "\n" not in text and len(text) <= 60 else edit.description


def _ignore(finding: Finding, text: str) -> Edit:
    line = text.split("\n")[finding.span.start.line - 1].rstrip("\r")
    end = Position(finding.span.start.line, len(line) + 1)
    return Edit("safe", Span(finding.span.path, end, end), f"  # eaglelint: ignore[{finding.code}]", "")


def _workspace_edit(edits: Iterable[Edit], columns: Columns) -> lsp.WorkspaceEdit:
    changes: dict[str, list[lsp.TextEdit]] = {}
    for edit in edits:
        new = lsp.TextEdit(range=to_range(edit.span, columns), new_text=edit.text)
        changes.setdefault(_uri(edit.span.path), []).append(new)
    return lsp.WorkspaceEdit(changes=dict(changes))


def _settings_edit(change: SettingsEdit) -> lsp.WorkspaceEdit:
    """The settings as a whole: they are short, and a client shows what differs."""
    uri = change.path.as_uri()
    start = lsp.Position(0, 0)
    if change.before is not None:
        end = lsp.Position(change.before.count("\n") + 1, 0)
        return lsp.WorkspaceEdit(changes={uri: [lsp.TextEdit(lsp.Range(start, end), change.after)]})
    return lsp.WorkspaceEdit(
        document_changes=[
            lsp.CreateFile(uri=uri, options=lsp.CreateFileOptions(ignore_if_exists=True)),
            lsp.TextDocumentEdit(
                text_document=lsp.OptionalVersionedTextDocumentIdentifier(uri=uri),
                edits=[lsp.TextEdit(lsp.Range(start, start), change.after)],
            ),
        ]
    )


def to_range(span: Span, columns: Columns) -> lsp.Range:
    """A span in the protocol's numbers."""
    start, end = span.start, span.end or span.start
    return lsp.Range(
        lsp.Position(start.line - 1, columns(span.path, start)), lsp.Position(end.line - 1, columns(span.path, end))
    )


def overlaps(left: lsp.Range, right: lsp.Range) -> bool:
    """Whether two ranges share a place; a cursor at either end of a range is in it."""
    return not (_before(left.end, right.start) or _before(right.end, left.start))


def _before(left: lsp.Position, right: lsp.Position) -> bool:
    return (left.line, left.character) < (right.line, right.character)


def _uri(path: str) -> str:
    return Path(path).absolute().as_uri()
