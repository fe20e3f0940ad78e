"""All of the target's states are put side by side, not those that were asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding, Span
from eaglelint.rule import Facts, Rule
from eaglelint.wiring import Wiring

from .._header import config_row, target_width, tensor_row
from .._messages import confidence_of, takes_auxiliary_states
from .._source import by_place, classes_phrase, related

if TYPE_CHECKING:
    from eaglelint.survey.facts import ClassFacts, Place, Run

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    for engine in facts.engines:
        pairs = [(run.captures[0], cls) for cls in engine.classes for run in cls.runs if _is_unselected(run)]
        for place, classes in by_place(pairs).items():
            yield _finding(rule, engine.label, place, classes)
    yield from _joined(rule, facts)


def _joined(rule: Rule, facts: Facts) -> Iterator[Finding]:
    """The training code joins more states than the checkpoint takes."""
    draft, training = facts.draft, facts.training
    fc = None if facts.checkpoint is None else facts.checkpoint.find("fc.weight")
    if draft is None or fc is None or not fc.is_plain or len(fc.shape) != 2 or not takes_auxiliary_states(draft):
        return
    width = target_width(draft, facts.target)
    if training is None or training.declared or training.status != "exact" or width is None or width.value <= 0:
        return
    states, rest = divmod(fc.shape[1], width.value)
    count = len(training.slots)
    joins = [item for item in training.evidence if item.slot is None]
    # One more than the draft takes is the state that it is to predict, saved beside the others.
    if rest or count <= states + 1 or not joins:
        return
    yield rule.finding(
        f"{count} states of {width.value} are joined here, {count * width.value} features, and fc.weight takes "
        f"{fc.shape[1]}, {states} states",
        Span.at(joins[-1].path, joins[-1].line),
        confidence="likely",
        related=(tensor_row(fc), config_row("width", width)),
        help="Join the states of the draft's layers alone, in their order.",
        identity=("joined", str(count), str(states)),
    )


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
