"""How the paths through a call end, and which of them agree."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from eaglelint.source.heap import Heap, Lazily, Redo
from eaglelint.source.same import Meeting, NotJoinable, inessential, join, same, same_effects
from eaglelint.source.slices import Site
from eaglelint.source.values import Choice, Unknown

__all__ = [
    "UNCLEAR",
    "Decision",
    "Outcome",
    "Raised",
    "changes",
    "condition",
    "deciding",
    "deciding_site",
    "merge",
    "next_path",
    "same_net",
]


class Raised(Exception):
    """The interpreted code raises an exception of that type; ``kinds`` are the names under which it is caught.

    ``explicit`` where the code says so itself, by ``raise`` or ``assert``.
    """

    def __init__(
        self, kind: str, message: str, site: Site | None, parents: Iterable[str] = (), *, explicit: bool = False
    ) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        known = getattr(builtins, kind, None)
        mro = [entry.__name__ for entry in known.__mro__] if isinstance(known, type) else []
        self.kinds = frozenset((kind, "Exception", "BaseException", *mro, *parents))
        self.message = message
        self.site = site
        self.explicit = explicit


@dataclass(frozen=True, slots=True)
class Decision:
    """One choice taken at an unknown condition."""

    key: tuple[str, str]
    texts: tuple[str, ...]
    choice: int
    site: Site | None

    @property
    def text(self) -> str:
        return self.texts[self.choice]


@dataclass(slots=True)
class Outcome:
    """How one path through a call ended: its value or its exception, its changes, and the choices that led there."""

    value: Any
    raised: Raised | None
    redo: Redo
    net: dict[tuple[Any, Any], Any]
    decisions: tuple[Decision, ...]
    values: tuple[Any, ...] = ()


def merge(heap: Heap, new: Outcome, known: Outcome, meeting: Meeting | None) -> bool:
    """Merge an outcome into a known one where they agree, or differ in nothing that matters."""
    if (new.raised is None) != (known.raised is None):
        return False
    if new.raised is not None and known.raised is not None:
        return new.raised.kind == known.raised.kind
    unclear = same_net(heap, new.net, known.net)
    if unclear is None:
        return False
    try:
        known.value = _depending(known, new) or join(known.value, new.value, meeting)
    except NotJoinable:
        return False
    for place in unclear:
        known.net[place] = UNCLEAR
        known.redo.append((heap.container(place), place[1], UNCLEAR))
    return True


def _depending(known: Outcome, new: Outcome) -> Unknown | None:
    """A truth value that one choice decides, with that choice: what tests it later is the same condition."""
    theirs = {decision.key: decision for decision in new.decisions}
    if isinstance(known.value, Unknown):
        choice = known.value.choice
        decision = theirs.get(choice.key) if choice is not None else None
        if choice is None or decision is None or decision.texts != choice.texts:
            return None
        return known.value if choice.values[decision.choice] is new.value else None
    if not (isinstance(known.value, bool) and isinstance(new.value, bool)) or known.value is new.value:
        return None
    differing = [d for d in known.decisions if d.key in theirs and theirs[d.key].choice != d.choice]
    if len(differing) != 1 or len(differing[0].texts) != 2:
        return None
    first = differing[0]
    values = (known.value, new.value) if first.choice == 0 else (new.value, known.value)
    return Unknown("it depends on a condition that is not known", choice=Choice(first.key, first.texts, values))


def changes(net: dict[tuple[Any, Any], Any]) -> bool:
    """Whether anything that had been there before was changed."""
    return any(not isinstance(key, Lazily) for _, key in net)


UNCLEAR = Unknown("it depends on a condition that is not known")


def same_net(
    heap: Heap, left: dict[tuple[Any, Any], Any], right: dict[tuple[Any, Any], Any]
) -> list[tuple[Any, Any]] | None:
    """Whether two paths leave the same behind; None where they do not.

    Returns:
        The attributes and items that they do not leave alike, where that does not steer the stream (a flag, a helper
        made lazily): these are unknown from there on. An object that only one came to ask for counts for nothing.
    """
    unclear = []
    for place in {**left, **right}:
        if isinstance(place[1], Lazily):
            if not same_effects(left.get(place), right.get(place)):
                return None
        elif place in left and place in right and same(left[place], right[place]):
            continue
        elif _may_be_unclear(heap, place) and all(inessential(net[place]) for net in (left, right) if place in net):
            unclear.append(place)
        else:
            return None
    return unclear


def _may_be_unclear(heap: Heap, place: tuple[Any, Any]) -> bool:
    """An attribute; or an item that may be any, of a dict of which nothing is known as soon as it has one."""
    return heap.is_attribute(place) or isinstance(place[1], Unknown)


def next_path(taken: list[Decision]) -> list[Decision] | None:
    """The choices with which the next path begins, where another one had these; None where that was the last one."""
    for index in range(len(taken) - 1, -1, -1):
        if taken[index].choice + 1 < len(taken[index].texts):
            return [*taken[:index], replace(taken[index], choice=taken[index].choice + 1)]
    return None


def condition(outcome: Outcome, others: list[Outcome]) -> str:
    """The choice that tells this outcome from the first of the others, in words."""
    for other in others:
        if other is outcome:
            continue
        theirs = {decision.key: decision.text for decision in other.decisions}
        for decision in outcome.decisions:
            if theirs.get(decision.key, decision.text) != decision.text:
                return decision.text
    return outcome.decisions[-1].text if outcome.decisions else "otherwise"


def deciding(outcomes: list[Outcome]) -> list[Decision] | None:
    """The decision on one condition that tells all outcomes apart, for each of them; None where there is none."""
    for first in outcomes[0].decisions:
        found = [d for outcome in outcomes for d in outcome.decisions if (d.key, d.texts) == (first.key, first.texts)]
        if len(outcomes) == len(first.texts) == len(found) == len({d.choice for d in found}):
            return found
    return None


def deciding_site(outcome: Outcome, site: Site | None) -> Site | None:
    return next((decision.site for decision in outcome.decisions if decision.site is not None), site)
