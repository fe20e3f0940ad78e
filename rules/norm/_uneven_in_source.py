"""A draft hands itself a state with more or fewer norms than the one that the target hands it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._messages import joined_with_and
from .._source import related

if TYPE_CHECKING:
    from eaglelint.survey.facts import UnlikeStates

__all__ = ["uneven_steps"]


def uneven_steps(rule: Rule, facts: Facts) -> Iterator[Finding]:
    if facts.draft is None:
        found = [(engine.label, case) for engine in facts.engines for case in engine.unlike_states]
    else:
        found = [(cls.engine, case) for cls in facts.draft_classes for case in cls.unlike_states]
    by_place: dict[tuple[object, ...], list[tuple[str, UnlikeStates]]] = {}
    for engine, case in found:
        by_place.setdefault((engine, case.returned, case.norms, case.target_norms), []).append((engine, case))
    for cases in by_place.values():
        yield _finding(rule, cases[0][0], [case for _, case in cases])


def _finding(rule: Rule, engine: str, cases: list[UnlikeStates]) -> Finding:
    case = cases[0]
    names = joined_with_and([case.cls for case in cases])
    verb, whose = ("hands", "its") if len(cases) == 1 else ("hand", "their")
    return rule.finding(
        f"{engine}: {names} {verb} {whose} next step a state that the head reads {_form(case.norms)}; the first step "
        f"has the target's, which the head of {case.target} reads {_form(case.target_norms)}",
        case.returned.span,
        severity="warning",
        confidence="likely",
        annotation=f"the head reads it {_form(case.norms)}",
        related=(
            *related("normed for the head", case.normed),
            *related("hands the first state", case.target_defined),
            *related("normed for its head", case.target_normed),
        ),
        help="Hand both steps the same: the state behind the final norm, if the draft was trained on that. Where the "
        "head norms what it reads, return a pair, one state for the logits and the normed one for the next step.",
        identity=("steps", engine, names, str(case.norms), str(case.target_norms)),
    )


def _form(norms: int) -> str:
    """How the head of a model reads a state."""
    if norms == 0:
        return "as it is"
    if norms == 1:
        return "after a norm"
    return f"after {norms} norms" if norms > 0 else "without the norm that it has"
