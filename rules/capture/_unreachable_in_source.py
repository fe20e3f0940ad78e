"""The output of the last layer, for which a class of an engine has no place of capture: read off its source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eaglelint.finding import Confidence, Finding
from eaglelint.rule import Facts, Rule

from .._messages import confidence_of
from .._source import by_place, classes_phrase, related

if TYPE_CHECKING:
    from eaglelint.survey.facts import ClassFacts, EngineFacts, Place, Run

__all__ = ["unreachable_in_source"]


@dataclass(frozen=True, slots=True)
class _Lost:
    """Where the last state is lost, how surely, and with which exception, if there is one."""

    place: Place
    confidence: Confidence
    error: str | None = None


def unreachable_in_source(rule: Rule, facts: Facts) -> Iterator[Finding]:
    """One finding for each place at which the last layer's output is lost, for all classes that share it."""
    for engine in facts.engines:
        lost = {cls.name: found for cls in engine.classes if (found := _lost(cls)) is not None}
        pairs = ((lost[cls.name].place, cls) for cls in engine.classes if cls.name in lost)
        for place, classes in by_place(pairs).items():
            yield _finding(rule, engine, place, classes, lost[classes[0].name])


def _lost(cls: ClassFacts) -> _Lost | None:
    last = cls.last
    if last is None or not isinstance(last.ids, tuple):
        return None
    if last.slots:
        if all(slot.known for slot in last.slots) and len(last.slots) < len(last.ids) and last.captures:
            return _Lost(last.captures[-1], confidence_of(last.wiring))
        return None
    if last.stopped is None or not (_middle_works(cls.middle) or _setter_works(cls)):
        return None
    # Without the last id all is well: it is this id at which the code stops.
    return _Lost(last.stopped, "likely", (last.error or "").partition(":")[0])


def _middle_works(middle: Run | None) -> bool:
    return middle is not None and bool(middle.slots) and all(slot.known for slot in middle.slots)


def _setter_works(cls: ClassFacts) -> bool:
    """Whether it is the setter that stops, and it takes other lists."""
    assert cls.last is not None
    return bool(cls.last.wiring.faults) and any(counting.offset is not None for counting in cls.counting)


def _finding(rule: Rule, engine: EngineFacts, place: Place, classes: list[ClassFacts], lost: _Lost) -> Finding:
    run = classes[0].last
    assert run is not None and isinstance(run.ids, tuple)
    depth, last = run.wiring.num_layers, run.ids[-1]
    state = "the output of the last layer" + (" (id N)" if last == depth else f" (id N - {(depth or last) - last})")
    names = classes_phrase(classes)
    if lost.error is None:
        message = f"{state} is never captured by {names}: fc gets a state too few"
    else:
        message = f"asking for {state} stops with {lost.error} in {names}"
    return rule.finding(
        message,
        place.span,
        confidence=lost.confidence,
        severity="warning",
        annotation="stops here" if lost.error else "the last capture stands before the last layer",
        related=related("setter", run.stored[-1].place if run.stored else classes[0].setter),
        help="Capture once more after the loop over the layers, or refuse this id in the setter.",
        identity=(engine.label, classes[0].name, lost.error or ""),
    )
