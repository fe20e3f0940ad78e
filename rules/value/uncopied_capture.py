"""A captured tensor shares its memory with the running stream, to which the layers that follow add in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._source import by_place, classes_phrase, related

if TYPE_CHECKING:
    from eaglelint.survey.facts import ClassFacts, Place, Run

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    for engine in facts.engines:
        pairs = [(place, cls) for cls in engine.classes for run in cls.runs for place in _uncopied(run)]
        for place, classes in by_place(pairs).items():
            yield _finding(rule, engine.label, place, classes)


def _uncopied(run: Run) -> tuple[Place, ...]:
    if len(run.captures) != len(run.slots):
        return ()
    return tuple(run.captures[index] for index in run.uncopied if run.slots[index].known)


def _finding(rule: Rule, engine: str, place: Place, classes: list[ClassFacts]) -> Finding:
    run = next(run for cls in classes for run in cls.runs if place in _uncopied(run))
    slot = run.slots[run.captures.index(place)]
    return rule.finding(
        f"{slot} is kept without a copy in {classes_phrase(classes)}, and the layers go on with the same memory: "
        "where "
        "their norm adds in place, the draft is fed a later state",
        place.span,
        confidence="possible",
        annotation="stored without a copy",
        related=related("setter", run.stored[-1].place if run.stored else classes[0].setter),
        help="Store a copy: hidden_states.clone().",
        identity=(engine, classes[0].name),
    )


RULE = Rule(
    code="VAL002",
    name="uncopied-capture",
    summary="A captured state is stored without a copy and may be added to in place afterwards.",
    severity="warning",
    check=_check,
)
