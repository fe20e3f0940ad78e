"""What the run of a training stack set and its exporter did not write: a finding for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Edit, Finding, Related, Severity, Span
from eaglelint.rule import Facts, Rule

from .._edits import set_value
from .._messages import key_phrase

if TYPE_CHECKING:
    from eaglelint.exported import Dropped

__all__ = ["not_exported"]


def not_exported(rule: Rule, facts: Facts) -> Iterator[Finding]:
    """Settings of a training run that the draft's config lacks, or says otherwise."""
    draft = facts.draft
    if draft is None:
        return
    for lost in facts.dropped:
        span = draft.span(*lost.place)
        said = "has none" if lost.exported is None else f"says {lost.exported}"
        message = f"{lost.key} was {lost.trained} in training, and {key_phrase(lost.place)} {said}{_exporter(lost)}"
        ids = isinstance(lost.trained, list)
        severity: Severity = "error" if ids else "warning"
        yield rule.finding(
            message,
            span,
            confidence="certain" if ids else "likely",
            severity=severity,
            annotation=f"trained with {lost.trained}",
            related=(Related("trained", f"{lost.key} = {lost.trained}", Span.at(lost.path, lost.line)),),
            help=_help(lost),
            edits=tuple(edit for edit in (_edit(facts, lost),) if edit is not None),
            identity=(lost.key, str(lost.trained)),
        )


def _exporter(lost: Dropped) -> str:
    """What wrote the config, and whether it reads what the run sets."""
    if not lost.exporter:
        return ""
    if lost.read:
        return (
            f": {lost.stack} writes what a run sets ({lost.exporter}), so this config is of another run, or was changed"
        )
    unread = ", where the run's setting is not read" if lost.read is False else ""
    return f": {lost.stack} writes the config in {lost.exporter}{unread}"


def _help(lost: Dropped) -> str:
    place = key_phrase(lost.place)
    if isinstance(lost.trained, list):
        return f"Write what was trained in {place}, counted as the engine counts it there; wiring shows what it means."
    return f"Write {lost.trained!r} in {place}."


def _edit(facts: Facts, lost: Dropped) -> Edit | None:
    """The value where the exporter should have written it: by hand, as its meaning there is the engine's."""
    assert facts.draft is not None
    text = f"{'.'.join(lost.place)} = {lost.trained}"
    return set_value(facts.draft.document, lost.place, lost.trained, "display", text)
