"""Which numbers an engine compares ids and depths with: what a rule must be tested around.

The ids are handed to the interpreter as integers that note what they and what is computed from them is compared with.
So a setter that asks ``layer_ids[0] == 1`` tells that lists with a 1 have to be tried. Of the depth any number is noted
that the run compares with one of its value: code that asks for 40 layers tells that depths about 40 have to be tried.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from eaglelint.derive import ServingRequest, definition
from eaglelint.engines.base import config_object
from eaglelint.recursion import deep_recursion
from eaglelint.serving import EngineHandle
from eaglelint.source.machine import BudgetExceeded, Machine
from eaglelint.source.stubs import load_stubs

__all__ = ["Comparisons", "comparisons"]

_MOST = 4
_FARTHEST = 4  # a number this near to the depth is a layer's index or the depth itself, which is tried anyway


@dataclass(slots=True)
class Comparisons:
    """Numbers that ids, and numbers that the depth, was compared with."""

    ids: tuple[int, ...] = ()
    depths: tuple[int, ...] = ()


@dataclass(slots=True)
class _Log:
    seen: list[int] = field(default_factory=list)


class _Noted(int):
    """An integer that notes what it, or what was computed from it, is compared with."""

    log: _Log

    @classmethod
    def of(cls, value: int, log: _Log) -> _Noted:
        noted = cls(value)
        noted.log = log
        return noted

    __hash__ = int.__hash__

    def __bool__(self) -> bool:
        self.log.seen.append(0)
        return int(self) != 0


def _arithmetic(name: str, function: Callable[[int, int], Any], *, reflected: bool = False) -> None:
    def compute(self: _Noted, other: Any) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        value = function(int(other), int(self)) if reflected else function(int(self), int(other))
        return _Noted.of(value, self.log) if type(value) is int else value

    setattr(_Noted, name, compute)


def _comparison(name: str, function: Callable[[int, int], bool]) -> None:
    def compare(self: _Noted, other: Any) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        if not isinstance(other, _Noted) and not isinstance(other, bool):
            self.log.seen.append(int(other))
        return function(int(self), int(other))

    setattr(_Noted, name, compare)


for _name in ("add", "sub", "mul", "floordiv", "mod"):
    _arithmetic(f"__{_name}__", getattr(operator, _name))
    _arithmetic(f"__r{_name}__", getattr(operator, _name), reflected=True)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _comparison(f"__{_name}__", getattr(operator, _name))


def comparisons(
    handle: EngineHandle, request: ServingRequest, compared: Collection[tuple[int, int]] = ()
) -> Comparisons:
    """The numbers that the setter compares the request's ids with, and those that a run compared its depth with."""
    log = _Log()
    ids = [_Noted.of(value, log) for value in request.layer_ids] if isinstance(request.layer_ids, tuple) else None
    _set(handle, request, ids)
    far = sorted(bound for value, bound in compared if value == request.num_layers and bound > value + _FARTHEST)
    return Comparisons(tuple(dict.fromkeys(log.seen))[:_MOST], tuple(far[:_MOST]))


def _set(handle: EngineHandle, request: ServingRequest, ids: list[_Noted] | None) -> None:
    """Hand the ids to the model, and do no more."""
    engine, source = handle.engine, handle.source
    machine = Machine(source.tree, stubs=load_stubs(engine.name), num_layers=request.num_layers)

    def run() -> None:
        engine.prepare(machine, source, request.kind)
        target = config_object(machine, request.target_data, name="the target's config")
        model = engine.build_model(machine, definition(request), target)
        engine.configure(machine, source, model, request.kind, None, ids)

    try:
        with deep_recursion():
            machine.explore(run, None)
    except (BudgetExceeded, RecursionError):
        return
