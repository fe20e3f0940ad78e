"""Questions to the interpreter: one target class, a kind of draft, and ids for a depth; answers are kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from eaglelint.artifacts.target import TargetConfig
from eaglelint.derive import Deriver, ServingRequest
from eaglelint.learn.conditions import Comparisons
from eaglelint.serving import EngineHandle
from eaglelint.source.tree import Binding
from eaglelint.wiring import Wiring

__all__ = ["BASE", "DEPTH", "DEPTHS", "Ids", "Observation", "Subject", "questions", "random_questions", "stop_of"]

Ids = tuple[int, ...] | None

DEPTH = 9
"""Layers of the small target that most questions are about: deep enough to tell all places apart."""
BASE = (3, 5, 6)
DEPTHS = (5, 14, 61)
"""Further depths, at which the default list is asked for."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What the source does with these ids at this depth; None stands for the engine's own list."""

    num_layers: int
    ids: Ids
    wiring: Wiring


@dataclass(slots=True)
class Subject:
    """One target class under one kind of draft; every question is interpreted once.

    Without ``config_defaults`` nothing but the depth of the target's config is known.
    """

    handle: EngineHandle
    binding: Binding
    kind: str
    config_defaults: bool = False
    answers: dict[tuple[int, Ids], Observation] = field(default_factory=dict)
    derivers: dict[int, Deriver] = field(default_factory=dict)
    compared: set[tuple[int, int]] = field(default_factory=set)  # numbers that are compared at the usual depth

    @property
    def name(self) -> str:
        return getattr(self.binding.item, "name", "")

    def request(self, num_layers: int, ids: Ids) -> ServingRequest:
        data = TargetConfig.synthetic(num_layers).data
        return ServingRequest(self.binding, num_layers, data, self.kind, None, "default" if ids is None else ids)

    def deriver(self, num_layers: int) -> Deriver:
        if num_layers not in self.derivers:
            self.derivers[num_layers] = Deriver(
                self.handle.engine, self.handle.source, num_layers, config_defaults=self.config_defaults
            )
            if num_layers == DEPTH:
                self.derivers[num_layers].note_comparisons(self.compared)
        return self.derivers[num_layers]

    def ask(self, num_layers: int, ids: Ids) -> Observation:
        key = (num_layers, ids)
        if key not in self.answers:
            wiring = self.deriver(num_layers).derive(self.request(num_layers, ids)).wiring
            self.answers[key] = Observation(num_layers, ids, wiring)
        return self.answers[key]


def questions(numbers: Comparisons) -> Iterator[tuple[int, Ids]]:
    """All that a rule is made from: places, order, repeats, depths, and numbers that ids are compared with."""
    yield DEPTH, BASE
    yield DEPTH, None
    yield from ((DEPTH, (odd, 3, 5)) for odd in (-3, -1, 0, 1))
    yield from ((DEPTH, (3, 5, odd)) for odd in (DEPTH - 2, DEPTH - 1, DEPTH, DEPTH + 1, DEPTH + 3))
    yield DEPTH, (6, 3, 5)
    yield DEPTH, (3, 3, 5)
    yield from ((depth, None) for depth in DEPTHS)
    yield 14, (2, 4, 7, 11)
    yield 14, (11, 1, 4)
    yield 14, (7,)
    yield from ((14, (2, 5, last)) for last in (DEPTH, 13, 14))
    yield 5, (0, 2, 3, 4)
    for number in numbers.ids:
        depth = max(24, number + 4)
        for value in (number - 1, number, number + 1):
            yield depth, (value, 17, 19)
        if number != 17:
            yield depth, (17, number, 19)
            yield depth, (17, 19, number)
    for depth in numbers.depths:
        for near in (depth - 1, depth, depth + 1):
            yield near, None
            yield near, BASE


def random_questions(seed: str, count: int) -> Iterator[tuple[int, Ids]]:
    """Lists and depths that no rule was made from; the same for the same seed."""
    random = Random(seed)
    for _ in range(count):
        depth = random.choice((14, 24))
        ids = [random.randint(-2, depth + 2) for _ in range(random.randint(1, 5))]
        if random.random() < 0.7:  # the ordinary case: ascending, each once, inside the model
            ids = sorted(random.sample(range(depth), min(len(ids), depth)))
        yield depth, tuple(ids)


_STOPPED = re.compile(r"(?:it would stop with|the interpretation ended in) (\w+)(?: at (\S+:\d+))?: (.*)", re.S)


def stop_of(wiring: Wiring) -> tuple[str, str, str | None] | None:
    """The exception that an unknown wiring ends in: its class, message and place."""
    found = _STOPPED.fullmatch(wiring.reason or "") if not wiring.slots else None
    if found is None:
        return None
    kind, place, message = found.groups()
    return kind, message, place
