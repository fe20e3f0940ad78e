"""Decoder layers: which index one has, what it is handed, and how the stream passes through it."""

from __future__ import annotations

from typing import Any

from eaglelint.source.lookup import find_method
from eaglelint.source.machine import LayerPass, Machine
from eaglelint.source.operators import add_tensors, whole
from eaglelint.source.slices import Site
from eaglelint.source.streams import tensors_in
from eaglelint.source.unfollowed import not_followed
from eaglelint.source.values import (
    BoundMethod,
    Branch,
    Input,
    Instance,
    LayerOutput,
    Tensor,
    Term,
)

__all__ = ["adopt_layers", "call_layer", "run_layer", "runs_layer", "stream_states"]


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


def runs_layer(machine: Machine, method: BoundMethod) -> bool:
    """Whether a method is what runs a decoder layer: as it is written, ``layer.forward(...)`` is ``layer(...)``."""
    layer = method.receiver
    return (
        not machine.in_layer
        and isinstance(layer, Instance)
        and layer.layer is not None
        and layer.cls is not None
        and method.function.info.name == "forward"
        and find_method(machine, layer.cls, "forward") == method.function
    )


def call_layer(
    machine: Machine, layer: Instance, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None
) -> Any:
    """Pass the stream through one decoder layer; what it does is computed once for all that are made alike."""
    from eaglelint.source.layer_summaries import summarised

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
        result = summarised(machine, layer, args, kwargs, cells, site)
        if result is None:
            result = run_layer(machine, layer, args, kwargs, site)
    machine.heap.set(machine.passes, layer.layer, LayerPass(entry, tuple(tensors_in(result))))
    return result


def run_layer(
    machine: Machine, layer: Instance, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None
) -> Any:
    from eaglelint.source.calls import call_value

    assert layer.cls is not None
    method = find_method(machine, layer.cls, "forward") or find_method(machine, layer.cls, "__call__")
    if method is None:
        return not_followed(machine, layer.cls.info.name, args, kwargs, site)
    machine.in_layer, machine.layer_depth = True, machine.depth
    try:
        return call_value(machine, BoundMethod(method, layer), args, kwargs, site)
    finally:
        machine.in_layer = False


def _cells(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """Where stand-ins among the arguments (a batch) hold a tensor: a stream that is not handed over by itself."""
    cells = []
    for value in (*args, *kwargs.values()):
        if isinstance(value, Instance) and value.cls is None:
            cells += [(value.attrs, key) for key, item in value.attrs.items() if isinstance(item, Tensor)]
    return cells


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
