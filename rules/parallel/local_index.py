"""On the second of two pipeline stages, a local layer index is compared with ids that count all layers."""

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

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    for engine in facts.engines:
        pairs = [(place, cls) for cls in engine.classes if (place := _place(cls)) is not None]
        for place, classes in by_place(pairs).items():
            yield _finding(rule, engine.label, place, classes)


def _strangers(cls: ClassFacts) -> tuple[Slot, ...]:
    """States that are captured on two stages and not on one."""
    if cls.staged is None or cls.default is None:
        return ()
    captured = [slot for stage in cls.staged.wiring.stages for slot in stage.captured]
    return tuple(dict.fromkeys(slot for slot in captured if slot.form == "stream" and slot not in cls.default.slots))


def _place(cls: ClassFacts) -> Place | None:
    captures = cls.staged.captures if cls.staged is not None else ()
    return captures[-1] if captures and _strangers(cls) else None


def _finding(rule: Rule, engine: str, place: Place, classes: list[ClassFacts]) -> Finding:
    cls = classes[0]
    assert cls.default is not None
    return rule.finding(
        f"on two pipeline stages {joined_with_and(map(str, _strangers(cls)))} is captured by "
        f"{classes_phrase(classes)} "
        f"instead of {cls.default.wiring}: the index in this loop starts anew on each stage, and the ids count all "
        "layers",
        place.span,
        confidence="likely",
        annotation="a local index",
        related=related("setter", cls.setter),
        help="Count from the stage's first layer: enumerate(..., start=self.start_layer).",
        identity=(engine, cls.name),
    )


RULE = Rule(
    code="PAR001",
    name="local-index",
    summary="A pipeline stage compares its local layer index with ids that count all layers.",
    severity="warning",
    check=_check,
)
