"""States of an earlier pipeline stage never reach the last one, where the draft is fed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule
from eaglelint.wiring import Slot

from .._messages import joined_with_and
from .._source import by_place, classes_phrase, related

if TYPE_CHECKING:
    from eaglelint.survey.facts import ClassFacts, Place

__all__ = ["stranded_in_source"]


def stranded_in_source(rule: Rule, facts: Facts) -> Iterator[Finding]:
    """One finding for each place at which states are captured in vain, for all classes that share it."""
    for engine in facts.engines:
        pairs = [(_place(cls), cls) for cls in engine.classes if _stranded(cls)]
        for place, classes in by_place(pairs).items():
            yield _finding(rule, engine.label, place, classes)


def _stranded(cls: ClassFacts) -> tuple[Slot, ...]:
    """The states that are served on one stage and missing on two; none where the engine refuses two stages."""
    run, default = cls.staged, cls.default
    if run is None or default is None or run.stopped is not None or run.cut_short or not run.wiring.stages:
        return ()
    if not run.slots or not all(slot.known for slot in run.slots):
        return ()  # where nothing at all is seen to arrive, the stages were not understood
    captured = {slot for stage in run.wiring.stages for slot in stage.captured}
    if not captured <= set(default.slots) or not set(run.slots) < set(default.slots):
        return ()
    return tuple(slot for slot in default.slots if slot not in run.slots)


def _place(cls: ClassFacts) -> Place:
    """Where the first stage captures what is lost, else the setter, which does nothing there."""
    assert cls.staged is not None
    first = cls.staged.wiring.stages[0].captured
    return cls.staged.captures[0] if first and cls.staged.captures else cls.setter or cls.place


def _finding(rule: Rule, engine: str, place: Place, classes: list[ClassFacts]) -> Finding:
    cls = classes[0]
    assert cls.staged is not None
    first = cls.staged.wiring.stages[0]
    how = (
        "captured on the first of two stages and not handed on" if first.captured else "not captured on the first stage"
    )
    return rule.finding(
        f"on two pipeline stages {joined_with_and(map(str, _stranded(cls)))} never reaches the draft in "
        f"{classes_phrase(classes)}: {how}",
        place.span,
        confidence="likely",
        annotation="what is captured here stays here" if first.captured else "returns early on this stage",
        related=related("setter", cls.setter),
        help="Hand the captured states on to the next stage, or refuse a draft that is fed captured states.",
        identity=(engine, cls.name),
    )
