"""A capture takes what a layer's last branch computed, and leaves out the residual stream that it is added to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._messages import confidence_of
from .._source import by_place, classes_phrase, related

if TYPE_CHECKING:
    from eaglelint.survey.facts import ClassFacts, EngineFacts, Place, Run

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    for engine in facts.engines:
        pairs = [(place, cls) for cls in engine.classes for run in cls.runs for place in _partial(run)]
        for place, classes in by_place(pairs).items():
            yield _finding(rule, engine, place, classes)


def _partial(run: Run) -> tuple[Place, ...]:
    """The lines that captured a branch alone; a class's definition where a line cannot be told."""
    if len(run.captures) != len(run.slots):
        return ()
    return tuple(place for place, slot in zip(run.captures, run.slots, strict=True) if slot.form == "partial")


def _finding(rule: Rule, engine: EngineFacts, place: Place, classes: list[ClassFacts]) -> Finding:
    run = next(run for cls in classes for run in cls.runs if place in _partial(run))
    slot = run.slots[run.captures.index(place)]
    return rule.finding(
        f"{slot} is captured in {classes_phrase(classes)}: what the layer's last branch computed, without the "
        "residual "
        "that the next layer adds to it",
        place.span,
        confidence=confidence_of(run.wiring),
        annotation=f"{slot}, not h[{slot.boundary}]",
        related=related("setter", run.stored[-1].place if run.stored else classes[0].setter),
        help="Capture hidden_states + residual, as long as there is a residual.",
        identity=(engine.label, classes[0].name),
    )


RULE = Rule(
    code="VAL001",
    name="branch-without-residual",
    summary="A capture takes a layer's last branch without the residual stream.",
    severity="error",
    check=_check,
)
