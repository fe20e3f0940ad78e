"""What a decoder layer is handed to collect states with: what it does with that is noted, and done for each layer.

While a layer is summarised, a stand-in takes the place of a list, of a method of one, of a function. (An object that
keeps states in its own way may do so on several paths: the layer is run with it.)
A stand-in can be handed on, told from None and called; whatever else would be asked of it, the layer is run as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eaglelint.source.lookup import MISSING, find_method, get_attribute
from eaglelint.source.machine import Machine
from eaglelint.source.slices import Site
from eaglelint.source.values import BoundMethod, BuiltinMethod, Closure, Collector, Instance, NotForeseen, Tensor

__all__ = ["Collecting", "attribute_of", "call_later", "collect", "is_collector", "shape_of", "truth_of"]

_LIST_METHODS = ("append", "extend", "insert")


@dataclass(frozen=True, slots=True)
class Collecting:
    """A call of what the layer was handed, of the object itself or of a method of it; its value is not used."""

    index: int
    method: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    site: Site


def is_collector(value: Any) -> bool:
    """Whether a stand-in can take the place of what a layer is handed."""
    match value:
        case list():
            return all(isinstance(item, Tensor) for item in value)
        case BoundMethod() | BuiltinMethod():
            return not isinstance(value.receiver, Tensor) and is_collector(value.receiver)
        case Instance():
            return value.layer is None and isinstance(value.payload, list)
    return isinstance(value, Closure)


def shape_of(value: Any) -> Any:
    """What matters of a collector to whom it is handed: what it is, not which one."""
    match value:
        case BoundMethod():
            return "method", value.function.info, shape_of(value.receiver)
        case BuiltinMethod():
            return "method", value.name, shape_of(value.receiver)
        case Instance():
            return "collector", value.cls
    return type(value).__name__


def _has_method(machine: Machine, value: Any, name: str) -> bool:
    if isinstance(value, Instance) and value.cls is not None and find_method(machine, value.cls, name) is not None:
        return name not in value.attrs
    return name in _LIST_METHODS and isinstance(value.payload if isinstance(value, Instance) else value, list)


def truth_of(collector: Collector) -> bool:
    """A function is true; whether a collector is depends on what it holds."""
    value = collector.value
    if collector.method or isinstance(value, BoundMethod | BuiltinMethod | Closure):
        return True
    raise NotForeseen


def attribute_of(machine: Machine, collector: Collector, name: str) -> Collector:
    """A method of a collector."""
    if collector.method or not _has_method(machine, collector.value, name):
        raise NotForeseen
    return Collector(collector.index, collector.value, name)


def call_later(
    machine: Machine, collector: Collector, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None
) -> None:
    """Note a call of a collector, or of a method of one, whose value nobody uses."""
    if machine.collected is None or site is None or site.node is not machine.statement:
        raise NotForeseen
    if not all(isinstance(value, Tensor | str | int | float | None) for value in (*args, *kwargs.values())):
        raise NotForeseen
    machine.heap.touch(machine.collected)
    machine.collected.append(Collecting(collector.index, collector.method, args, kwargs, site))


def collect(machine: Machine, calls: Sequence[Collecting], collectors: Sequence[Any]) -> bool:
    """Make the calls of a layer that were noted, with the collectors that it was handed; False where one would fork."""
    from eaglelint.source.calls import call_value

    def run() -> bool:
        for call in calls:
            for tensor in (*call.args, *call.kwargs.values()):
                if isinstance(tensor, Tensor) and machine.current(tensor).terms != tensor.terms:
                    machine.overwrite(tensor, tensor)  # what the layer had made of it by then
            callee = collectors[call.index]
            if call.method:
                callee = get_attribute(machine, callee, call.method)
            if callee is MISSING:
                return False
            machine.statement = call.site.node
            call_value(machine, callee, call.args, call.kwargs, call.site)
        return True

    machine.in_layer, machine.layer_depth = True, machine.depth
    try:
        return bool(machine.without_fork(run))
    finally:
        machine.in_layer = False
