"""What a decoder layer is made of and called with, and what of it matters: what is the same for another layer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from eaglelint.source import construct
from eaglelint.source.collectors import is_collector, shape_of
from eaglelint.source.heap import Heap
from eaglelint.source.machine import Machine
from eaglelint.source.operators import whole
from eaglelint.source.same import same, set_since
from eaglelint.source.values import BoundMethod, ClassValue, Collector, External, Function, Instance, Tensor, Unknown

__all__ = ["PLAIN", "Given", "Same", "Shapes", "given_to", "is_as_made", "twin_of"]

PLAIN = (bool, int, float, str, type(None))


class Same:
    """An object in a key, by its identity; while the key is there, the object is."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclass(frozen=True, slots=True)
class Given:
    """What a layer is called with: arguments, with placeholders and stand-ins for tensors and collectors.

    ``boxes`` are the objects without source among them; ``cells`` which of them hold a tensor, under which name.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    boxes: list[Instance]
    cells: list[tuple[int, str, Tensor]]
    holders: list[Tensor]
    tensors: list[Tensor]
    collectors: list[Any]

    @property
    def has_numbers(self) -> bool:
        return any(type(value) is int for value in (*self.args, *self.kwargs.values()))

    def whatever_the_numbers(self) -> Given:
        if not self.has_numbers:
            return self
        return replace(
            self,
            args=tuple(_ANY_NUMBER if type(value) is int else value for value in self.args),
            kwargs={name: _ANY_NUMBER if type(value) is int else value for name, value in self.kwargs.items()},
        )


_ANY_NUMBER = Unknown("it differs from layer to layer", present=True)


def given_to(
    machine: Machine,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    cells: list[tuple[dict[str, Any], str]],
    *,
    stand_ins: bool,
) -> Given:
    tensors: list[Tensor] = []
    holders: list[Tensor] = []
    collectors: list[Any] = []

    def placeholder(value: Any) -> Any:
        value = machine.current(whole(value))
        if isinstance(value, Tensor):
            tensors.append(value)
            holders.append(machine.placeholder(len(holders)))
            return holders[-1]
        if type(value) is tuple:
            return tuple(placeholder(item) for item in value)
        if stand_ins and is_collector(value):
            collectors.append(value)
            return Collector(len(collectors) - 1, value)
        return value

    boxes = [value for value in (*args, *kwargs.values()) if isinstance(value, Instance) and value.cls is None]
    places = {id(box.attrs): index for index, box in enumerate(boxes)}
    return Given(
        tuple(placeholder(value) for value in args),
        {name: placeholder(value) for name, value in kwargs.items()},
        boxes,
        [(places[id(box)], name, placeholder(box[name])) for box, name in cells],
        holders,
        tensors,
        collectors,
    )


class Shapes:
    """What matters of values to a layer: what objects that are made for a run hold, which ones all others are."""

    def __init__(self, heap: Heap, cells: Iterable[tuple[Instance, str]] = ()) -> None:
        self.heap = heap
        self.cells = {(id(box), name) for box, name in cells}
        self.seen: dict[int, int] = {}

    def of(self, value: Any) -> Any:
        match value:
            case Collector():
                return "collector", value.index, shape_of(value.value)
            case Tensor() | None | bool() | int() | str() | float():
                return type(value), value
            case Unknown():
                return "unknown", value.of, value.present, value.choice, value.key, value.text
            case tuple():
                return tuple(self.of(item) for item in value)
            case BoundMethod():  # which is made anew each time that it is asked for
                return "method", value.function.info, self.of(value.receiver)
            case Instance() if value.cls is None and value.layer is None and not isinstance(value.payload, list):
                return self._of_contents(value)
            case Instance() if self._is_made_on_this_path(value):
                return self._of_contents(value)
            case Instance() if not value.closed:
                return Same(value), tuple((name, _token(held)) for name, held in value.attrs.items())
            case ClassValue() | External() | Function():
                return value
        return Same(value)

    def _is_made_on_this_path(self, value: Instance) -> bool:
        """Whether an object, but no part of it, was made by the code that runs: on another path it makes its like."""
        parts = (*value.lazy.values(), *value.attrs.values())
        plain = value.payload is None and not any(isinstance(part, Instance | list | dict | set) for part in parts)
        return plain and value.layer is None and not value.closed and self.heap.is_new(value.attrs)

    def _of_contents(self, value: Instance) -> Any:
        known = self.seen.get(id(value))
        if known is not None:
            return "the same", known
        self.seen[id(value)] = len(self.seen)
        attrs = tuple(
            (name, self.of(value.attrs[name])) for name in sorted(value.attrs) if (id(value), name) not in self.cells
        )
        made = (
            tuple(self.of(item) for item in value.args),
            tuple((name, self.of(i)) for name, i in value.kwargs.items()),
        )
        return "contents", value.cls, value.name, value.closed, value.is_config, made, self.of(value.payload), attrs


def _token(value: Any) -> Any:
    return (type(value), value) if isinstance(value, PLAIN) else Same(value)


def is_as_made(machine: Machine, layer: Instance) -> bool:
    """Whether nothing but plain values of its own was set on a layer, and nothing on the parts that it made."""
    if not all(isinstance(value, PLAIN) for value in layer.attrs.values()):
        return False
    seen = {id(value) for value in (layer, *layer.args, *layer.kwargs.values())}  # a twin is made with the same ones
    pending = list(layer.lazy.values())
    while pending:
        part = pending.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, list | dict | set) and not construct.is_as_made(machine, part):
            return False
        if isinstance(part, Instance) and not (part.closed or part.shared or part.is_config):
            if set_since(part):
                return False
            pending += part.lazy.values()
    return True


def twin_of(machine: Machine, layer: Instance) -> Instance:
    """A layer that stands for all of its class that are made alike: what differs between them is unknown in it."""
    assert layer.siblings is not None and layer.cls is not None
    arguments: dict[Any, tuple[Any, tuple[Any, ...], dict[str, Any]]] = machine.memo.setdefault("arguments alike", {})
    siblings = id(layer.siblings), layer.cls, len(layer.siblings)
    if siblings not in arguments:
        peers = [item for item in layer.siblings if isinstance(item, Instance) and item.cls == layer.cls]
        varying = Unknown("it differs from layer to layer")
        args = tuple(
            value if all(len(p.args) > i and same(p.args[i], value) for p in peers) else varying
            for i, value in enumerate(layer.args)
        )
        kwargs = {
            name: value if all(name in p.kwargs and same(p.kwargs[name], value) for p in peers) else varying
            for name, value in layer.kwargs.items()
        }
        arguments[siblings] = layer.siblings, args, kwargs
    _, args, kwargs = arguments[siblings]
    shapes = Shapes(machine.heap)
    made = (layer.cls, *map(shapes.of, args), *((name, shapes.of(value)) for name, value in kwargs.items()))
    since = tuple((name, type(value), value) for name, value in layer.attrs.items())
    twins: dict[Any, Instance] = machine.memo.setdefault("twins", {})
    if (made, since) not in twins:
        twins[made, since] = Instance(layer.cls, args, kwargs, attrs=dict(layer.attrs), name=layer.name)
    return twins[made, since]
