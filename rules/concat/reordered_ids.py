"""A setter turns the list of ids into a set, or sorts it: order and duplicates are lost."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding
from eaglelint.rule import ClassFacts, Facts, Place, Rule, Stored

from .._source import by_place, classes_phrase, related

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    if facts.draft is not None:
        return  # what becomes of one list is CAP004's to say
    for engine in facts.engines:
        pairs = [(stored.place, cls) for cls in engine.classes if (stored := _reordered(cls)) is not None]
        for place, classes in by_place(pairs).items():
            yield _finding(rule, engine.label, place, classes)


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
    summary="A setter turns the list of ids into a set or sorts it.",
    severity="note",
    check=_check,
)
