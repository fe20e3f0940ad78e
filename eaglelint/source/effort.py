"""Calls that are more work to follow than they are worth: given up, and what they may have changed is not known.

A decoder layer's attention, a router, the preparation of a batch: hundreds of unknown conditions about kernels and
devices, and none about what is captured. The state that such a call returns, or writes over, is one certain state all
the same: what the next layer is handed and what is captured are compared, whatever it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eaglelint.source.machine import Machine, TooLong
from eaglelint.source.operators import whole
from eaglelint.source.slices import Site
from eaglelint.source.values import (
    BoundMethod,
    BuiltinMethod,
    Closure,
    Function,
    Instance,
    LayerOutput,
    Opaque,
    Tensor,
    TensorBuffer,
    Unknown,
)

__all__ = ["follow", "may_have_collected", "may_have_written"]


def follow(
    machine: Machine,
    callee: Any,
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    site: Site | None,
    run: Callable[[], Any],
) -> Any:
    """Run a call with as much work as a call at its depth is worth; beyond that it is given up, here and elsewhere.

    Outside the layers the bound falls away as soon as a layer runs in it: that call is the model itself.
    """
    key = _identity(callee)
    is_layer = machine.in_layer and machine.depth == machine.layer_depth
    if key is None or machine.script or machine.initialising or is_layer:
        return run()  # an attribute has a bound of its own, and a decoder layer has none
    given_up: set[Any] = machine.memo.setdefault("calls given up", set())
    if key not in given_up:
        try:
            return machine.within(machine.call_steps(), run, call=True)
        except TooLong:
            if machine.steps > machine.soft_limit:
                raise
            given_up.add(key)
    return _give_up(machine, callee, name, args, kwargs, site)


def _identity(callee: Any) -> Any:
    match callee:
        case Function():
            return callee.module.name, callee.info.line
        case BoundMethod():
            return callee.function.module.name, callee.function.info.line
        case Closure():
            return callee.node
        case Instance() if callee.cls is not None and callee.layer is None:
            return callee.cls.module.name, callee.cls.info.line
    return None


def _give_up(
    machine: Machine, callee: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None
) -> Any:
    from eaglelint.source.calls import carries_stream, tensors_in

    why = f"the call of {name} takes too long to follow"
    values = (callee.receiver if isinstance(callee, BoundMethod) else callee, *args, *kwargs.values())
    for value in values:
        may_have_collected(machine, value, name, site)
        if isinstance(value, Instance):
            for key, held in list(value.attrs.items()):
                if isinstance(held, Tensor):
                    machine.heap.set(value.attrs, key, machine.opaque(why, site))
    tensors = tensors_in((args, kwargs))
    streams = [tensor for tensor in tensors if carries_stream(machine, tensor)]
    may_have_written(machine, why, (*args, *kwargs.values()), site)
    if streams and machine.layer != -1:
        return machine.opaque(why, site)
    return machine.branch(name) if tensors else Unknown(why)


def may_have_written(machine: Machine, why: str, values: tuple[Any, ...], site: Site | None) -> None:
    """Code that was not followed, and whose result nobody uses, is there for what it does to its arguments."""
    from eaglelint.source.calls import carries_stream

    if site is None or site.node is not machine.statement:
        return
    for value in map(whole, values):
        if isinstance(value, Tensor) and carries_stream(machine, value):
            machine.overwrite(value, machine.opaque(f"{why}, and may write over it", site))


def may_have_collected(machine: Machine, value: Any, name: str, site: Site | None) -> None:
    """A list of states, or a buffer of them, that was handed to code that was not followed."""
    target = value.receiver if isinstance(value, BuiltinMethod | BoundMethod) else value
    collector = target.payload if isinstance(target, Instance) else target
    state = Opaque(f"{name} may have added to it", site)
    if isinstance(collector, list) and all(isinstance(item, Tensor | LayerOutput) for item in collector):
        machine.heap.touch(collector)
        collector.append(Tensor.of(state))
    elif isinstance(collector, TensorBuffer):
        machine.heap.set(collector.writes, ("?", len(collector.writes)), Tensor.of(state))
