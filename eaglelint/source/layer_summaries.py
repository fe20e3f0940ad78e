"""What a decoder layer does, computed once for all layers of a class that are made and called alike, on every path.

The layer runs on placeholders for its inputs and on stand-ins for what it is handed to collect states with. What it
returns and hands over, written in those, holds for every such layer as long as it does not depend on the layer's own
index, and as long as it leaves nothing else behind; a layer that does is run as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from eaglelint.source.collectors import Collecting, collect
from eaglelint.source.heap import Lazily
from eaglelint.source.layer_inputs import Given, Same, Shapes, given_to, is_as_made, twin_of
from eaglelint.source.layers import run_layer
from eaglelint.source.machine import Machine
from eaglelint.source.slices import Site
from eaglelint.source.streams import carries_stream, tensors_in
from eaglelint.source.values import (
    Branch,
    Cat,
    Input,
    Instance,
    Norm,
    NotForeseen,
    Opaque,
    Tensor,
    Term,
    Unknown,
)

__all__ = ["summarised"]

_ANY_LAYER = -100


def summarised(
    machine: Machine,
    layer: Instance,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    cells: list[tuple[dict[str, Any], str]],
    site: Site | None,
) -> Any:
    """The layer's result by the summary of its class; None where there is none that holds.

    ``cells``: where stand-ins among the arguments hold tensors.
    """
    if layer.siblings is None or not is_as_made(machine, layer):
        return None
    twin = twin_of(machine, layer)
    for foreseen in (True, False):
        given = given_to(machine, args, kwargs, cells, stand_ins=foreseen)
        if len({id(tensor.storage) for tensor in given.tensors}) < len(given.tensors):
            return None  # what is done to one in place is done to another
        # A number is often the layer's own, or the next one's: as a rule the layer does the same whichever it is.
        summary = _known_summary(machine, twin, given.whatever_the_numbers(), site)
        if summary is _DEPENDS and given.has_numbers:
            summary = _known_summary(machine, twin, given, site)
        if summary is not _NOT_FORESEEN:
            break
    return _apply(machine, summary, given, layer.layer or 0) if isinstance(summary, _Summary) else None


# --- summaries -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Summary:
    """What any layer of a class does to its inputs: to the boxes that hold them, in place, and what it returns.

    ``calls`` of what it was handed; ``in_place``: the norms it runs that may add in place; ``read``: what its first
    norm was given. ``overwritten`` and ``handed`` are the machine's, for tensors that the layer made; ``serials``: how
    many states of each kind it made. ``bound``: the only boxes that it holds for, if it holds for no others.
    """

    value: Any
    changes: list[tuple[int, str, Any]]
    calls: tuple[Collecting, ...]
    holders: list[Tensor]
    written: list[tuple[int, Tensor]]
    in_place: tuple[str, ...]
    read: Tensor | None
    overwritten: tuple[Tensor, ...]
    handed: tuple[object, ...]
    serials: dict[tuple[int, Any], int]
    bound: list[Instance] | None


_DEPENDS = "it is not known what the layer does"
_NOT_FORESEEN = "it does more with a collector than to call it"


def _known_summary(machine: Machine, twin: Instance, given: Given, site: Site | None) -> _Summary | str | None:
    """The summary of a layer's class for such arguments, made where there is none yet."""
    shapes = Shapes(machine.heap, [(given.boxes[box], name) for box, name, _ in given.cells])
    shape = (
        "layer summary",
        Same(twin),
        tuple([shapes.of(value) for value in given.args]),
        tuple([(name, shapes.of(value)) for name, value in given.kwargs.items()]),
        tuple([(box, name) for box, name, _ in given.cells]),
        machine.heap.world.key,
    )
    known: tuple[_Summary | str | None] | None = machine.recall(shape)
    if known is not None:
        return known[0]
    # Layers of one class that are handed the like leave something behind as a rule: then none is run in vain.
    leaving: dict[Any, str | None] = machine.memo.setdefault("layers that leave something", {})
    kind = (twin.cls, *map(type, given.args), *((name, type(value)) for name, value in given.kwargs.items()))
    if kind in leaving:
        return leaving[kind]
    summary, basis = machine.on_basis(lambda: _summarise(machine, twin, given, site))
    machine.remember(shape, (summary,), basis)
    if summary in (None, _NOT_FORESEEN):
        leaving[kind] = summary
    return summary


def _summarise(machine: Machine, twin: Instance, given: Given, site: Site | None) -> _Summary | str | None:
    index, machine.layer = machine.layer, _ANY_LAYER
    outer, machine.collected = machine.collected, []
    mark = machine.heap.mark()
    events, faults = len(machine.events), len(machine.faults)
    before = set(machine.overwritten), set(machine.handed)
    for box, name, holder in given.cells:
        machine.heap.set(given.boxes[box].attrs, name, holder)
    for norm in list(machine.in_place):
        machine.heap.delete(machine.in_place, norm)
    inner = machine.heap.mark()
    try:
        outcomes = machine.explore(lambda: run_layer(machine, twin, given.args, given.kwargs, site), site)
        if len(machine.events) > events or len(machine.faults) > faults:
            return None
        held = {id(holder.storage) for holder in given.holders}
        found = _Summary(
            outcomes[0].value,
            [],
            tuple(machine.collected),
            given.holders,
            [(i, new) for i, holder in enumerate(given.holders) if (new := machine.current(holder)) is not holder],
            tuple(machine.in_place),
            machine.read.get(_ANY_LAYER),
            tuple(t for place, t in machine.overwritten.items() if place not in before[0] and place not in held),
            tuple(t for place, t in machine.handed.items() if place not in before[1] and place not in held),
            machine.serials(_ANY_LAYER),
            None if _is_plain(outcomes[0].value) else given.boxes,
        )
        redo = machine.heap.rollback(inner)
        changes = _changes(machine, machine.heap.net(redo, inner), given.boxes)
    except NotForeseen:
        return _NOT_FORESEEN
    finally:
        machine.layer, machine.collected = index, outer
        machine.heap.rollback(mark)
    if len(outcomes) != 1 or outcomes[0].raised is not None or changes is None:
        return _DEPENDS
    return replace(found, changes=changes)


def _is_plain(value: Any) -> bool:
    """Whether a value holds no object, which would be that of one call of a layer."""
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return isinstance(value, Tensor | Unknown | bool | int | float | str | None)


def _changes(
    machine: Machine, net: dict[tuple[Any, Any], Any], boxes: list[Instance]
) -> list[tuple[int, str, Any]] | None:
    """What the layer left in the boxes it was handed; None where it left the stream, or a list, anywhere else."""
    places = {id(box.attrs): index for index, box in enumerate(boxes)}
    changes = []
    for place, value in net.items():
        container = None if isinstance(place[1], Lazily) else machine.heap.container(place)
        if container is None or container is machine.collected:
            continue
        box = places.get(id(container))
        if box is not None and isinstance(value, Tensor | Unknown | bool | int | float | str | None):
            changes.append((box, place[1], value))
        elif isinstance(place[1], int) or place[1] == "" or _holds_stream(machine, value):
            return None
    return changes


def _holds_stream(machine: Machine, value: Any) -> bool:
    inner = (value, value.args, value.kwargs, value.attrs) if isinstance(value, Instance) else value
    return any(carries_stream(machine, tensor) for tensor in tensors_in(inner))


# --- one layer by its summary --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Inputs:
    """One layer's inputs in place of the placeholders, and its number; the memory of its other tensors is its own."""

    terms: dict[Term, Tensor]
    storages: dict[int, object]
    layer: int


def _apply(machine: Machine, summary: _Summary, given: Given, layer: int) -> Any:
    """What the layer does and returns; None where it cannot be told."""
    if summary.bound is not None and not all(a is b for a, b in zip(summary.bound, given.boxes, strict=True)):
        return None
    inputs = _Inputs(
        {Input(f"argument {index}"): tensor for index, tensor in enumerate(given.tensors)},
        {id(holder.storage): tensor.storage for holder, tensor in zip(summary.holders, given.tensors, strict=True)},
        layer,
    )
    if summary.calls:
        mark = machine.heap.mark()
        machine.count(layer, summary.serials)
        if not collect(machine, [_substituted_call(machine, call, inputs) for call in summary.calls], given.collectors):
            machine.heap.rollback(mark)
            return None
    for name in summary.in_place:
        machine.heap.set(machine.in_place, name, None)
    if summary.read is not None:
        machine.heap.set(machine.read, layer, _substitute_tensor(machine, summary.read, inputs))
    for box, name, changed in summary.changes:
        machine.heap.set(given.boxes[box].attrs, name, _substitute(machine, changed, inputs))
    value = _substitute(machine, summary.value, inputs)
    written = [(given.tensors[index], _substitute_tensor(machine, new, inputs)) for index, new in summary.written]
    for tensor, new in written:
        machine.overwrite(tensor, new)
    if summary.calls:  # what was collected shares its memory with what the layer went on with
        for tensor in summary.overwritten:
            new = _substitute_tensor(machine, tensor, inputs)
            machine.overwrite(new, new)
        machine.hand(
            Tensor(frozenset(), storage=inputs.storages[id(s)]) for s in summary.handed if id(s) in inputs.storages
        )
    return value


def _substituted_call(machine: Machine, call: Collecting, inputs: _Inputs) -> Collecting:
    kwargs = {name: _substitute(machine, value, inputs) for name, value in call.kwargs.items()}
    return replace(call, args=_substitute(machine, call.args, inputs), kwargs=kwargs)


def _substitute(machine: Machine, value: Any, inputs: _Inputs) -> Any:
    if isinstance(value, Tensor):
        return _substitute_tensor(machine, value, inputs)
    if isinstance(value, tuple):
        return tuple(_substitute(machine, item, inputs) for item in value)
    if isinstance(value, list):
        return [_substitute(machine, item, inputs) for item in value]
    return value


def _substitute_tensor(machine: Machine, tensor: Tensor, inputs: _Inputs) -> Tensor:
    terms: set[Term] = set()
    for term in tensor.terms:
        match term:
            case Input() if term in inputs.terms:
                new: frozenset[Term] = inputs.terms[term].terms
            case Branch() | Opaque() if term.layer == _ANY_LAYER:
                new = frozenset((replace(term, layer=inputs.layer),))
            case Norm():
                new = frozenset((Norm(_substitute_tensor(machine, term.of, inputs)),))
            case Cat():
                new = frozenset((Cat(tuple(_substitute_tensor(machine, part, inputs) for part in term.parts)),))
            case _:
                new = frozenset((term,))
        if terms & new:
            return machine.opaque("the same term is added twice", None)
        terms |= new
    return Tensor(frozenset(terms), storage=inputs.storages.setdefault(id(tensor.storage), object()))
