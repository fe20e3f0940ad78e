"""Decoder layers: what one does to the stream is computed once for a class and used again for every k.

The layer runs on placeholders for its inputs. What it returns, written in those placeholders, holds for every layer of
the class as long as it does not depend on the layer's own index, and as long as it leaves nothing else behind; a layer
that captures leaves something behind, and so it is run as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from eaglelint.source.heap import Lazily
from eaglelint.source.machine import LayerPass, Machine
from eaglelint.source.operators import add_tensors, whole
from eaglelint.source.same import same
from eaglelint.source.slices import Site
from eaglelint.source.streams import carries_stream, tensors_in
from eaglelint.source.unfollowed import not_followed
from eaglelint.source.values import (
    BoundMethod,
    Branch,
    Cat,
    Input,
    Instance,
    LayerOutput,
    Norm,
    Opaque,
    Tensor,
    Term,
    Unknown,
)

__all__ = ["adopt_layers", "call_layer", "stream_states"]

_ANY_LAYER = -100


def adopt_layers(items: list[Any]) -> None:
    """Number the objects of a module list."""
    for index, item in enumerate(items):
        if isinstance(item, Instance) and item.layer is None:
            item.layer = index
            item.siblings = items


def stream_states(machine: Machine) -> tuple[Tensor, ...]:
    """h[0] .. h[N] of a model without source: each layer adds one branch."""
    terms: set[Term] = {Input("embedding")}
    states: tuple[Tensor, ...] = (Tensor(frozenset(terms)),)
    for index in range(machine.num_layers or 0):
        terms.add(Branch(index, 0, "layer"))
        states = (*states, Tensor(frozenset(terms)))
        machine.heap.set(machine.passes, index, LayerPass(states[-2:-1], states[-1:]))
    return states


def call_layer(
    machine: Machine, layer: Instance, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None
) -> Any:
    """Pass the stream through one decoder layer."""
    assert layer.layer is not None
    machine.enter_layers()
    machine.layer = layer.layer
    machine.layer_site = site
    cells = _cells(args, kwargs)
    handed = (whole(value) for value in (*args, *kwargs.values()))
    entry = (
        *(machine.current(value) for value in handed if isinstance(value, Tensor)),
        *(machine.current(box[key]) for box, key in cells),
    )
    machine.hand(entry)
    machine.heap.touch(machine.order)
    machine.order.append((len(layer.siblings or ()), layer.layer))
    if layer.cls is None:
        result = _layer_without_source(machine, layer.layer, args, kwargs, site)
    else:
        result = _summarised(machine, layer, args, kwargs, cells, site)
        if result is None:
            result = _run_layer(machine, layer, args, kwargs, site)
    machine.heap.set(machine.passes, layer.layer, LayerPass(entry, tuple(tensors_in(result))))
    return result


def _run_layer(
    machine: Machine, layer: Instance, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None
) -> Any:
    from eaglelint.source.calls import call_value
    from eaglelint.source.lookup import find_method
    from eaglelint.source.values import BoundMethod

    assert layer.cls is not None
    method = find_method(machine, layer.cls, "forward") or find_method(machine, layer.cls, "__call__")
    if method is None:
        return not_followed(machine, layer.cls.info.name, args, kwargs, site)
    machine.in_layer, machine.layer_depth = True, machine.depth
    try:
        return call_value(machine, BoundMethod(method, layer), args, kwargs, site)
    finally:
        machine.in_layer = False


def _layer_without_source(
    machine: Machine, index: int, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None
) -> LayerOutput:
    """A pair goes in and comes out where the call hands over a residual; else the layer adds to its only state."""
    import libcst as cst

    tensors = [value for value in (whole(value) for value in (*args, *kwargs.values())) if isinstance(value, Tensor)]
    if not tensors:
        tensors = [Tensor.of(Input("embedding"))]
    total = tensors[0]
    for tensor in tensors[1:2]:
        total = add_tensors(machine, total, tensor, site) if site else tensor
    hands_residual = len(tensors) > 1 or (
        site is not None
        and isinstance(site.node, cst.Call)
        and any("residual" in site.slice.code(argument.value) for argument in site.node.args)
    )
    hidden = Tensor.of(Branch(index, 0, "mlp"))
    residual = Tensor(total.terms | {Branch(index, 0, "attention")})
    return LayerOutput(hidden, residual if hands_residual else None, Tensor(residual.terms | hidden.terms))


# --- one summary for a class ---------------------------------------------------------------------------------------


def _cells(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """Where stand-ins among the arguments (a batch) hold a tensor: a stream that is not handed over by itself."""
    cells = []
    for value in (*args, *kwargs.values()):
        if isinstance(value, Instance) and value.cls is None:
            cells += [(value.attrs, key) for key, item in value.attrs.items() if isinstance(item, Tensor)]
    return cells


def _summarised(
    machine: Machine,
    layer: Instance,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    cells: list[tuple[dict[str, Any], str]],
    site: Site | None,
) -> Any:
    """The layer's result by the summary of its class; None where there is none that holds."""
    if layer.attrs or layer.siblings is None:
        return None
    assert layer.cls is not None
    actual: list[Tensor] = []
    holders: list[Tensor] = []

    def placeholder(value: Any) -> Any:
        value = machine.current(whole(value))
        if isinstance(value, Tensor):
            actual.append(value)
            holders.append(machine.placeholder(len(holders)))
            return holders[-1]
        return tuple(placeholder(item) for item in value) if type(value) is tuple else value

    given = _Given(
        tuple(placeholder(value) for value in args),
        {name: placeholder(value) for name, value in kwargs.items()},
        cells,
        [placeholder(box[key]) for box, key in cells],
        holders,
    )
    if len({id(tensor.storage) for tensor in actual}) < len(actual):
        return None  # what is done to one in place is done to another
    # A number is often the layer's own, or the next one's: as a rule the layer does the same whichever it is.
    summary = _known_summary(machine, layer, given.whatever_the_numbers(), site)
    if summary is _DEPENDS and given.has_numbers:
        summary = _known_summary(machine, layer, given, site)
    if not isinstance(summary, _Summary):
        return None
    inputs = _Inputs(
        {Input(f"argument {index}"): tensor for index, tensor in enumerate(actual)},
        {id(holder.storage): tensor.storage for holder, tensor in zip(summary.holders, actual, strict=True)},
        layer.layer or 0,
    )
    for name in summary.in_place:
        machine.heap.set(machine.in_place, name, None)
    if summary.read is not None:
        machine.heap.set(machine.read, layer.layer, _substitute_tensor(machine, summary.read, inputs))
    for box, key, changed in summary.changes:
        machine.heap.set(box, key, _substitute(machine, changed, inputs))
    written = [(actual[index], _substitute_tensor(machine, new, inputs)) for index, new in summary.written]
    for tensor, new in written:
        machine.overwrite(tensor, new)
    return _substitute(machine, summary.value, inputs)


@dataclass(frozen=True, slots=True)
class _Summary:
    """What any layer of a class does to its inputs: to the boxes that hold them, in place, and what it returns.

    ``in_place``: the norms it runs that may add in place; ``read``: what its first norm was given.
    """

    value: Any
    changes: list[tuple[Any, Any, Any]]
    holders: list[Tensor]
    written: list[tuple[int, Tensor]]
    in_place: tuple[str, ...]
    read: Tensor | None


_DEPENDS = "it is not known what the layer does"


@dataclass(frozen=True, slots=True)
class _Given:
    """What a layer is called with: arguments and cells, with placeholders, ``holders``, for their tensors."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    cells: list[tuple[dict[str, Any], str]]
    in_cells: list[Any]
    holders: list[Tensor]

    @property
    def has_numbers(self) -> bool:
        return any(type(value) is int for value in (*self.args, *self.kwargs.values()))

    def whatever_the_numbers(self) -> _Given:
        if not self.has_numbers:
            return self
        return replace(
            self,
            args=tuple(_ANY_NUMBER if type(value) is int else value for value in self.args),
            kwargs={name: _ANY_NUMBER if type(value) is int else value for name, value in self.kwargs.items()},
        )


_ANY_NUMBER = Unknown("it differs from layer to layer", present=True)


def _known_summary(machine: Machine, layer: Instance, given: _Given, site: Site | None) -> _Summary | str | None:
    """The summary of a layer's class for such arguments, made where there is none yet."""
    assert layer.cls is not None
    shape = (
        "layer summary",
        layer.cls.module.name,
        layer.cls.info.name,
        id(layer.siblings),
        tuple(_shape(value) for value in given.args),
        tuple((name, _shape(value)) for name, value in given.kwargs.items()),
        tuple((id(box), key) for box, key in given.cells),
        machine.heap.world.key,
    )
    known: tuple[_Summary | str | None] | None = machine.recall(shape)
    if known is not None:
        return known[0]
    # Layers of one class that are handed the like leave something behind as a rule: then none is run in vain.
    leaving: set[Any] = machine.memo.setdefault("layers that leave something", set())
    kind = (layer.cls.info, *map(type, given.args), *((name, type(value)) for name, value in given.kwargs.items()))
    if kind in leaving:
        return None
    summary, basis = machine.on_basis(lambda: _summarise(machine, layer, given, site))
    # A shape names objects by their ids: while it is known, no other object may get them.
    machine.remember(shape, (summary,), basis, holder=(layer.siblings, given))
    if summary is None:
        leaving.add(kind)
    return summary


@dataclass(frozen=True, slots=True)
class _Inputs:
    """One layer's inputs in place of the placeholders, and its number."""

    terms: dict[Term, Tensor]
    storages: dict[int, object]
    layer: int


def _summarise(machine: Machine, layer: Instance, given: _Given, site: Site | None) -> _Summary | str | None:
    twin = _twin(machine, layer)
    index, machine.layer = machine.layer, _ANY_LAYER
    mark = machine.heap.mark()
    events, faults = len(machine.events), len(machine.faults)
    args, kwargs, holders = given.args, given.kwargs, given.holders
    for (box, key), tensor in zip(given.cells, given.in_cells, strict=True):
        machine.heap.set(box, key, tensor)
    inner = machine.heap.mark()
    try:
        outcomes = machine.explore(lambda: _run_layer(machine, twin, args, kwargs, site), site)
        left_something = len(machine.events) > events or len(machine.faults) > faults
        written = [(i, new) for i, holder in enumerate(holders) if (new := machine.current(holder)) is not holder]
        in_place = tuple(machine.in_place)
        read = machine.read.get(_ANY_LAYER)
        redo = machine.heap.rollback(inner)
        changes = _changes(machine, machine.heap.net(redo, inner), args, kwargs)
    finally:
        machine.layer = index
        machine.heap.rollback(mark)
    if left_something:
        return None
    if len(outcomes) != 1 or outcomes[0].raised is not None or changes is None:
        return _DEPENDS
    return _Summary(outcomes[0].value, changes, holders, written, in_place, read)


def _changes(
    machine: Machine, net: dict[tuple[Any, Any], Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[Any, Any, Any]] | None:
    """What the layer left in the stand-ins it was handed; None where it left the stream, or a list, anywhere else."""
    stand_ins = [
        value.attrs for value in (*args, *kwargs.values()) if isinstance(value, Instance) and value.cls is None
    ]
    changes = []
    for place, value in net.items():
        if isinstance(place[1], Lazily):
            continue
        box = next((attrs for attrs in stand_ins if id(attrs) == place[0]), None)
        if box is not None and isinstance(value, Tensor | None | Unknown):
            changes.append((box, place[1], value))
        elif isinstance(place[1], int) or place[1] == "" or _holds_stream(machine, value):
            return None
    return changes


def _holds_stream(machine: Machine, value: Any) -> bool:
    inner = (value, value.args, value.kwargs, value.attrs) if isinstance(value, Instance) else value
    return any(carries_stream(machine, tensor) for tensor in tensors_in(inner))


def _twin(machine: Machine, layer: Instance) -> Instance:
    """A layer that stands for all of its class in the list: what differs between them is unknown in it."""
    assert layer.siblings is not None
    cache = machine.memo.setdefault("twins", {})
    key = (id(layer.siblings), layer.cls)
    if key not in cache:
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
        cache[key] = Instance(layer.cls, args, kwargs, name=layer.name)
    return cache[key]  # type: ignore[no-any-return]


def _shape(value: Any) -> Any:
    if isinstance(value, Tensor | None | bool | int | str | float | Unknown):
        return value if not isinstance(value, Unknown) else ("unknown", value.of)
    if isinstance(value, tuple):
        return tuple(_shape(item) for item in value)
    if isinstance(value, BoundMethod):  # which is made anew each time that it is asked for
        return ("method", id(value.function.info), id(value.receiver))
    return (type(value).__name__, id(value))


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
    storage = inputs.storages.get(id(tensor.storage))
    return Tensor(frozenset(terms)) if storage is None else Tensor(frozenset(terms), storage=storage)
