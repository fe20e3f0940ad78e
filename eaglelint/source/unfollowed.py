"""Calls whose code is not followed: what they give, and what they may have done to what they were handed."""

from __future__ import annotations

import re
from typing import Any

from eaglelint.source.machine import Machine
from eaglelint.source.operators import normed, whole
from eaglelint.source.slices import Site
from eaglelint.source.streams import carries_stream, tensors_of
from eaglelint.source.values import (
    BoundMethod,
    BuiltinMethod,
    Instance,
    LayerOutput,
    Opaque,
    Tensor,
    TensorBuffer,
    Unknown,
)

__all__ = ["may_have_collected", "may_have_written", "model_output", "not_followed"]

_HARMLESS = re.compile(r"(?:^|\.)(?:print|debug|info|warning|error|log|record_stream)\w*$|^torch\.|^F\.|^nn\.")
_CLASS = re.compile(r"(?:^|\.)[A-Z]+[a-z]\w*$")  # a class by its name (PEP 8): calling one never gives None
_METHODS = (BuiltinMethod, BoundMethod)
_STATES = (Tensor, LayerOutput)


def not_followed(machine: Machine, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
    """A call whose code is not among the sources."""
    why = f"the call of {name} could not be followed"
    harmless = _HARMLESS.search(name) is not None
    values = (*args, *kwargs.values())
    for value in values:
        if machine.in_layer or (value and not harmless):
            may_have_collected(machine, value, name, site)
    if not harmless or name.startswith("torch.ops."):
        may_have_written(machine, why, values, site)
    asks_for_states = kwargs.get("output_hidden_states") not in (False, None) and not machine.in_layer
    tensors = tensors_of(args, kwargs)
    if not tensors:
        return model_output(machine) if asks_for_states else Unknown(why, present=_CLASS.search(name) is not None)
    if asks_for_states:
        return model_output(machine)
    if machine.layer != -1 and any(carries_stream(machine, tensor) for tensor in tensors):
        return machine.opaque(why, site)
    return machine.branch(name)


def model_output(machine: Machine) -> Any:
    """What a Hugging Face model returns with ``output_hidden_states``: N+1 states, the last of them normed."""
    from eaglelint.source.layers import stream_states

    if not machine.num_layers:
        return Unknown("the number of layers is not known")
    states = stream_states(machine)
    last = normed(machine, states[-1])
    return Instance(None, name="model output", attrs={"hidden_states": (*states[:-1], last), "last_hidden_state": last})


def may_have_written(machine: Machine, why: str, values: tuple[Any, ...], site: Site | None) -> None:
    """Code that was not followed, and whose result nobody uses, is there for what it does to its arguments."""
    if site is None or site.node is not machine.statement:
        return
    for value in map(whole, values):
        if isinstance(value, Tensor) and carries_stream(machine, value):
            machine.overwrite(value, machine.opaque(f"{why}, and may write over it", site))


def may_have_collected(machine: Machine, value: Any, name: str, site: Site | None) -> None:
    """A list of states, or a buffer of them, that was handed to code that was not followed."""
    target = value.receiver if isinstance(value, _METHODS) else value
    collector = target.payload if isinstance(target, Instance) else target
    if isinstance(collector, list) and all(isinstance(item, _STATES) for item in collector):
        machine.heap.touch(collector)
        collector.append(Tensor.of(Opaque(f"{name} may have added to it", site)))
    elif isinstance(collector, TensorBuffer):
        state = Tensor.of(Opaque(f"{name} may have added to it", site))
        machine.heap.set(collector.writes, ("?", len(collector.writes)), state)
