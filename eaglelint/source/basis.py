"""What is remembered of a computation, and on which paths it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from eaglelint.source.heap import Redo, is_held
from eaglelint.source.values import Instance, Unknown

__all__ = ["Basis", "Fact", "Known"]

Fact = tuple[tuple[str, str], tuple[str, ...]]


class Basis:
    """What a computation rests on: choices that had been taken before it and that it asked for; those that it left open
    or took itself; and whether it read or noted something of one request's own."""

    __slots__ = ("_before", "_coming", "asked", "open", "own")

    def __init__(self, before: Mapping[Fact, int], coming: Mapping[Fact, int]) -> None:
        self._before = before
        self._coming = coming
        self.asked: dict[Fact, int] = {}
        self.open: set[Fact] = set()
        self.own = False

    def ask(self, fact: Fact, choice: int | None) -> None:
        if choice is not None and (fact in self._before or fact in self._coming):
            self.asked[fact] = choice
        else:
            self.open.add(fact)

    def take_up(self, inner: Basis) -> None:
        """What is computed from something else rests on its basis as well."""
        for fact, choice in inner.asked.items():
            self.ask(fact, choice)
        for fact in inner.open:
            self.open.add(fact)
        self.own = self.own or inner.own

    def holds(self, facts: Mapping[Fact, int], coming: Mapping[Fact, int]) -> bool:
        """Whether the same would be computed where these choices have been taken, and those are to come.

        What left a choice open that is to come serves as well: it is taken between the outcomes then.
        """
        if self.open and not facts.keys().isdisjoint(self.open):
            return False
        return all(facts.get(fact, coming.get(fact)) == choice for fact, choice in self.asked.items())


@dataclass(frozen=True, slots=True)
class Known:
    """A value that was computed, and where it holds: ``request`` is the only one, 0 for all.

    ``before`` is what the places held that the computation changed.
    """

    value: Any
    basis: Basis
    request: int
    before: Redo = field(default_factory=list)
    holder: Any = None

    def applies(self) -> bool:
        """Whether the changes of the computation would be made from the same beginning, or have been made.

        The latter of objects alone, which are made once and then found: a counter counts each time.
        """
        if all(is_held(container, key, old) for container, key, old in self.before):
            return True
        after = self.value[0].redo if len(self.value) == 1 else ()
        return bool(after) and all(isinstance(new, Instance | Unknown) and is_held(c, k, new) for c, k, new in after)
