"""Calls that are more work to follow than they are worth: given up, and what they may have changed is not known.

A decoder layer's attention, a router, the preparation of a batch: hundreds of unknown conditions about kernels and
devices, and none about what is captured. The state that such a call returns, or writes over, is one certain state all
the same: what the next layer is handed and what is captured are compared, whatever it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eaglelint.source.machine import Machine, TooLong
from eaglelint.source.slices import Site
from eaglelint.source.streams import carries_stream, tensors_of
from eaglelint.source.unfollowed import may_have_collected, may_have_written
from eaglelint.source.values import (
    BoundMethod,
    Closure,
    Function,
    Instance,
    Tensor,
    Unknown,
)

__all__ = ["follow"]


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
    is_layer = machine.in_layer and machine.depth == machine.layer_depth
    key = None if machine.script or machine.initialising or is_layer else _identity(callee)
    if key is None:
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
    why = f"the call of {name} takes too long to follow"
    values = (callee.receiver if isinstance(callee, BoundMethod) else callee, *args, *kwargs.values())
    for value in values:
        may_have_collected(machine, value, name, site)
        if isinstance(value, Instance):
            for key, held in list(value.attrs.items()):
                if isinstance(held, Tensor):
                    machine.heap.set(value.attrs, key, machine.opaque(why, site))
    tensors = tensors_of(args, kwargs)
    streams = [tensor for tensor in tensors if carries_stream(machine, tensor)]
    may_have_written(machine, why, (*args, *kwargs.values()), site)
    if streams and machine.layer != -1:
        return machine.opaque(why, site)
    return machine.branch(name) if tensors else Unknown(why)
