"""A target class takes a draft's layer ids, and its forward pass captures nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._messages import joined_with_and
from .._source import by_place, classes_phrase, related

if TYPE_CHECKING:
    from eaglelint.survey.facts import ClassFacts, EngineFacts, Place, Run

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    for engine in facts.engines:
        pairs = [(cls.setter or cls.place, cls) for cls in engine.classes if _never_captures(cls)]
        for classes in by_place(pairs).values():
            yield _never(rule, engine, classes)
        skipped = [(case[1], cls) for cls in engine.classes for case in _skips(cls)]
        for place, classes in by_place(skipped).items():
            yield _skipped(rule, engine, place, classes)


def _never_captures(cls: ClassFacts) -> bool:
    """Whether all layers were seen to run and none of them, nor the loop around them, took a state."""
    runs = [run for run in cls.runs if not run.cut_short and run.stopped is None]
    return bool(runs) and all(map(_in_vain, runs)) and not _stored_in_vain(cls)


def _in_vain(run: Run) -> bool:
    return run.complete and not run.slots and not run.captures and run.wiring.reason == "no captured state was found"


def _stored_in_vain(cls: ClassFacts) -> bool:
    """Whether the setter's list is read by nobody, which is SRV002's to say."""
    names = {attribute for _, attribute in cls.unread}
    return any(stored.name in names for run in cls.runs for stored in run.stored[-1:])


def _never(rule: Rule, engine: EngineFacts, classes: list[ClassFacts]) -> Finding:
    cls = classes[0]
    return rule.finding(
        f"layer ids are taken by {engine.setter} and nothing is captured in the forward pass of "
        f"{classes_phrase(classes)}: the draft is fed no state",
        cls.place.span,
        confidence="likely",
        annotation="never captured",
        related=related("setter", cls.setter),
        help="Capture in the loop over the layers and return the states beside the last one, or have no setter.",
        identity=(engine.label, cls.name),
    )


# --- a path that runs layers by another function, which is not handed the captures ---------------------------------


def _skips(cls: ClassFacts) -> tuple[tuple[str, Place, tuple[str, ...]], ...]:
    """The function that runs layers, its call, and the states that are lost with it."""
    run, default = cls.overlapped, cls.default
    if run is None or default is None or run.stopped is not None or run.cut_short:
        return ()
    return tuple(
        (name, place, lost)
        for name, first, place in run.handed_over
        if (lost := tuple(str(slot) for slot in default.slots if (slot.boundary or 0) > first))
        and len(run.captures) <= len(default.slots) - len(lost)
    )


def _skipped(rule: Rule, engine: EngineFacts, place: Place, classes: list[ClassFacts]) -> Finding:
    name, _, lost = next(case for cls in classes for case in _skips(cls) if case[1] == place)
    return rule.finding(
        f"{name} runs the layers here where two batches overlap, and is not handed the captures of "
        f"{classes_phrase(classes)}: {joined_with_and(lost)} of the default list are lost",
        place.span,
        confidence="likely",
        severity="warning",
        annotation="captures nothing",
        related=related("captured otherwise", classes[0].default.captures[-1] if classes[0].default else None),
        help="Take this path only where nothing is to be captured, or serve without two-batch overlap.",
        identity=(engine.label, classes[0].name, name),
    )


RULE = Rule(
    code="SRV003",
    name="missing-capture",
    summary="A target class takes layer ids and captures nothing.",
    severity="error",
    check=_check,
)
