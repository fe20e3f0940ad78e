"""The last line counts what is shown and names what is hidden."""

from __future__ import annotations

from dataclasses import replace

from eaglelint.finding import Finding
from eaglelint.report.summary import Summary, summarise


def test_counts(mismatch: Finding) -> None:
    """Findings by severity; only safe edits count as fixes."""
    warning = replace(mismatch, severity="warning", edits=(replace(mismatch.edits[0], safety="unsafe"),))
    assert summarise([mismatch, mismatch, warning]) == Summary(errors=2, warnings=1, fixable=2)


def test_words() -> None:
    """One is singular, nothing is left out in silence."""
    assert str(Summary(errors=2, warnings=1, fixable=1)) == "Found 2 errors, 1 warning (1 with a safe edit)"
    assert str(Summary(notes=3, fixable=2)) == "Found 3 notes (2 with a safe edit)"
    assert str(Summary(suppressed=3, baselined=1)) == "Found no problems; 3 suppressed; 1 in the baseline"
