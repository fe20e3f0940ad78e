"""All of the target's states are put side by side, not those that were asked for."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding
from eaglelint.rule import ClassFacts, Facts, Place, Rule, Run
from eaglelint.wiring import Wiring

from .._messages import confidence_of
from .._source import by_place, classes_phrase, related

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    for engine in facts.engines:
        pairs = [(run.captures[0], cls) for cls in engine.classes for run in cls.runs if _is_unselected(run)]
        for place, classes in by_place(pairs).items():
            yield _finding(rule, engine.label, place, classes)


def _is_unselected(run: Run) -> bool:
    """Whether a few states were asked for, and one came out for each layer."""
    depth, asked = run.wiring.num_layers, _asked(run)
    return (
        depth is not None
        and 0 < asked < depth <= len(run.slots)
        and bool(run.captures)
        and all(slot.known for slot in run.slots)
    )


def _asked(run: Run) -> int:
    """How many states were asked for: by ids, else by the list that the setter stored."""
    ids = run.ids if run.ids is not None else run.wiring.layer_ids
    if isinstance(ids, tuple):
        return len(ids)
    return len(run.stored[-1].values) if run.stored else 0


def _finding(rule: Rule, engine: str, place: Place, classes: list[ClassFacts]) -> Finding:
    run = next(run for cls in classes for run in cls.runs if _is_unselected(run))
    return rule.finding(
        f"{len(run.slots)} states are captured for {_asked(run)} ids in {classes_phrase(classes)}, "
        f"{_ends(run.wiring)}: fc is fed the states of all layers",
        place.span,
        confidence=confidence_of(run.wiring),
        annotation="captured for every layer",
        related=related("setter", run.stored[-1].place if run.stored else classes[0].setter),
        help="Capture, or concatenate, those whose ids were asked for.",
        identity=(engine, classes[0].name),
    )


def _ends(wiring: Wiring) -> str:
    return f"{wiring.slots[0]} … {wiring.slots[-1]}"


RULE = Rule(
    code="CAT003",
    name="unselected-states",
    summary="The states of all layers are concatenated, not those that were asked for.",
    severity="error",
    check=_check,
)
