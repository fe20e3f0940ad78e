"""A setter or a trainer turns the list of ids into a set, or sorts it: order and duplicates are lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._messages import trained_row
from .._source import by_place, classes_phrase, related

if TYPE_CHECKING:
    from eaglelint.survey.facts import ClassFacts, Place, Stored

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    if facts.draft is not None:
        yield from _in_training(rule, facts)
        return  # what an engine makes of the config's list is CAP004's to say
    for engine in facts.engines:
        pairs = [(stored.place, cls) for cls in engine.classes if (stored := _reordered(cls)) is not None]
        for place, classes in by_place(pairs).items():
            yield _finding(rule, engine.label, place, classes)


def _in_training(rule: Rule, facts: Facts) -> Iterator[Finding]:
    """Lists of ids in the training code that are not ascending, where the states they bring are."""
    training = facts.training
    # With an engine at hand, what is trained is compared with what is served, and its order with the list (CAP004).
    if training is None or training.declared or facts.practice is None or facts.servings:
        return
    order = [slot.boundary for slot in training.slots if slot.boundary is not None]
    if len(order) < 2 or len(order) != len(training.slots) or order != sorted(order):
        return
    for ids in facts.practice.ids:
        moved = {new - old for new, old in zip(order, sorted(set(ids.values)), strict=False)}
        if list(ids.values) == sorted(ids.values) or len(set(ids.values)) != len(order) or len(moved) != 1:
            continue
        yield rule.finding(
            f"{ids.name} lists {list(ids.values)}, and fc was trained on {training}: the states come in the order of "
            "the layers, whatever the order of the list",
            ids.place.span,
            confidence="certain" if training.status == "exact" else "likely",
            severity="warning",
            annotation="this order is lost",
            related=trained_row(training),
            help="Write the list in ascending order, here and in the draft's config, so that it says what is fed.",
            identity=("training", ids.name, str(list(ids.values))),
        )


def _reordered(cls: ClassFacts) -> Stored | None:
    """What was stored for a descending list, if it is a set or not descending any more."""
    for counting in cls.counting:
        stored = counting.stored
        if stored is None or list(counting.ids) != sorted(counting.ids, reverse=True):
            continue
        if not stored.ordered or list(stored.values) == sorted(stored.values):
            return stored
    return None


def _finding(rule: Rule, engine: str, place: Place, classes: list[ClassFacts]) -> Finding:
    stored = _reordered(classes[0])
    assert stored is not None
    return rule.finding(
        f"the ids are stored as {'a sorted list' if stored.ordered else 'a set'} in {classes_phrase(classes)}: a "
        "draft "
        "whose ids are not ascending is fed its states in another order, and one with an id twice a state too few",
        place.span,
        confidence="certain",
        annotation="the order of the config's list is lost here",
        related=related("setter", classes[0].setter),
        help="Keep the list, or refuse one that is not strictly ascending.",
        identity=(engine, classes[0].name),
    )


RULE = Rule(
    code="CAT001",
    name="reordered-ids",
    summary="A setter or a trainer turns the list of ids into a set or sorts it.",
    severity="note",
    check=_check,
)
