"""Items: what ``receiver[key]`` gives."""

from __future__ import annotations

from typing import Any

import libcst as cst

from eaglelint.source.expressions import evaluate
from eaglelint.source.lookup import MISSING, get_attribute
from eaglelint.source.machine import Machine, Raised
from eaglelint.source.same import NotJoinable, join
from eaglelint.source.slices import Site
from eaglelint.source.values import (
    Branch,
    Cat,
    ClassValue,
    External,
    Frame,
    Instance,
    LayerOutput,
    Norm,
    Opaque,
    Tensor,
    TensorBuffer,
    Unknown,
    Weight,
)

__all__ = ["as_used", "get_item"]

_INDEXABLE = (list, tuple, str, range)


def get_item(machine: Machine, receiver: Any, key: Any, site: Site) -> Any:
    """``receiver[key]``.

    Raises:
        Raised: Python would raise for these values.
    """
    if isinstance(receiver, Instance):
        if receiver.payload is None or "__getitem__" in receiver.attrs:
            found = get_attribute(machine, receiver, "__getitem__", site)
            if found is MISSING or isinstance(found, Unknown):
                return Unknown(f"an item of {receiver.name or 'an object'}")
            from eaglelint.source.calls import call_value

            return call_value(machine, found, (key,), {}, site)
        receiver = receiver.payload
    if isinstance(receiver, LayerOutput):
        if key == 0:
            return receiver.hidden if receiver.residual is not None else receiver.whole
        if key == 1 and receiver.residual is not None:
            return receiver.residual
        return Unknown("a further result of a layer") if isinstance(key, int) else receiver.whole
    if isinstance(receiver, Tensor):
        if machine.script and isinstance(key, tuple) and len(key) == 2:
            first, second = key
            if (first is None or isinstance(first, int)) and isinstance(second, slice):
                return receiver  # of the one batch, or of a new one, some tokens
        return _tensor_item(machine, receiver, key, site)
    if isinstance(receiver, TensorBuffer):
        from eaglelint.source.assign import view_of

        return view_of(receiver, key)
    if receiver is None:
        raise Raised("TypeError", "None has no items", site)
    if isinstance(receiver, dict):
        return _dict_item(machine, receiver, key, site)
    if isinstance(receiver, _INDEXABLE):
        if isinstance(key, slice) and _plain_slice(key):
            found = receiver[key]
            return machine.heap.born(found) if isinstance(found, list) else found
        if isinstance(key, int):
            if not -len(receiver) <= key < len(receiver):
                raise Raised("IndexError", f"index {key} of {len(receiver)} items", site)
            return receiver[key]
        if isinstance(key, Unknown) and isinstance(receiver, list | tuple) and receiver:
            return _any_of(machine, list(receiver), site)
        if isinstance(key, slice):
            return Unknown("a slice with bounds that are not known")
        if isinstance(key, Unknown):
            return Unknown(key.why)
        if isinstance(key, str | float | type(None)):
            raise Raised("TypeError", f"{key!r} is no index", site)
    if isinstance(receiver, External):
        return receiver  # a generic type: list[int]
    return Unknown(receiver.why if isinstance(receiver, Unknown) else "an item of something unknown")


def _dict_item(machine: Machine, receiver: dict[Any, Any], key: Any, site: Site) -> Any:
    if isinstance(key, Unknown | Tensor):
        return _any_of(machine, list(receiver.values()), site) if receiver else Unknown("an item of an empty dict")
    try:
        if key in receiver:
            # What was stored under an unknown key may have been stored under this one.
            unsure = (value for known, value in receiver.items() if isinstance(known, Unknown))
            return _any_of(machine, [receiver[key], *unsure], site)
    except TypeError:
        return Unknown("a key that cannot be looked up")
    if any(isinstance(known, Unknown) for known in receiver):
        return Unknown("a dict whose keys are not known")
    raise Raised("KeyError", repr(key), site)


def _any_of(machine: Machine, values: list[Any], site: Site) -> Any:
    """An unknown one of several values: known where they agree; each class of a table in its turn."""
    if len(values) == 1:
        return values[0]
    classes = {id(value.info): value for value in values if isinstance(value, ClassValue)}
    if len(classes) > 1 and all(isinstance(value, ClassValue) for value in values):
        names = tuple(f"when {site.code} is {cls.info.name}" for cls in classes.values())
        return list(classes.values())[machine.decide((site.path, site.code), names, site)]
    first = values[0]
    for other in values[1:]:
        try:
            first = join(first, other)
        except NotJoinable:
            return Unknown("one of several items, which one is not known")
    return first


def _plain_slice(key: slice) -> bool:
    return all(
        part is None or (isinstance(part, int) and not isinstance(part, bool))
        for part in (key.start, key.stop, key.step)
    )


def _tensor_item(machine: Machine, tensor: Tensor, key: Any, site: Site) -> Any:
    """Choosing tokens keeps a state what it is; choosing features, or one of several results, does not."""
    from eaglelint.source.assign import part_of

    term = tensor.single()
    if isinstance(term, Weight):
        return tensor
    if isinstance(term, Cat) and isinstance(key, tuple):
        if all(part is None or part == slice(None) for part in key) or key[-1:] == (slice(None),):
            return tensor
        return machine.opaque("a part of a concatenation", site)
    if isinstance(key, tuple):
        kept = all(isinstance(part, slice) and part == slice(None) for part in key[1:]) or key[-1:] == (slice(None),)
        return tensor if kept else machine.opaque(f"{site.code} chooses features", site)
    if isinstance(key, str):
        return Unknown(f"the item {key!r} of a result that was not followed")
    if isinstance(term, Branch | Opaque) and isinstance(key, int):
        return part_of(term, key) if isinstance(term, Branch) or term.serial is not None else tensor
    if isinstance(term, Norm) or key is not None:
        return tensor
    return tensor


def as_used(machine: Machine, node: cst.BaseExpression, frame: Frame) -> Any:
    """What is None and used as a container: where the target's config lacks that key and its class leaves it at None.

    A model would not start with that; a config that is served says something else.
    """
    holder = evaluate(machine, node.value, frame) if isinstance(node, cst.Attribute) else None
    if not isinstance(node, cst.Attribute) or not isinstance(holder, Instance):
        return None
    name = node.attr.value
    if not holder.is_config or holder.cls is None or name in holder.kwargs or name in holder.attrs:
        return None
    machine.used_assumptions.add(f"{holder.name}.{name} is given")
    return Unknown(f"{name} of {holder.name}", present=True, key=f"{holder.name}.{name}")
