"""``torch.stack`` of states: a tensor with a layer axis, which is indexed, permuted and flattened back into states."""

from __future__ import annotations

from typing import Any

from eaglelint.source.lookup import MISSING
from eaglelint.source.machine import Machine
from eaglelint.source.operators import whole
from eaglelint.source.slices import Site
from eaglelint.source.values import Cat, External, Instance, Opaque, Partial, Tensor

__all__ = ["STACK_INTERCEPTS", "make_stack", "stack_attribute", "stacked_parts"]

_NAME = "stack of states"
_KEEPING = frozenset(
    ["bfloat16", "clone", "contiguous", "cpu", "cuda", "detach", "float", "half", "numpy", "pin_memory", "to", "type"]
)
_FOLLOWED = frozenset(["flatten", "permute", "reshape", "squeeze", "transpose", "unbind", "view"])


def make_stack(parts: list[Any], axis: int | None) -> Instance:
    """A stack of tensors along a new axis; None where the axis is not known."""
    stack = Instance(None, name=_NAME, attrs={"parts": list(parts), "axis": axis})
    stack.attrs["__getitem__"] = Partial(External("stack.item"), (stack,), {})
    if axis == 0:
        stack.payload = list(parts)
    return stack


def stacked_parts(value: Any) -> tuple[list[Any], int | None] | None:
    """The states of a stack and their axis; None for anything else."""
    if isinstance(value, Instance) and value.name == _NAME:
        return value.attrs["parts"], value.attrs["axis"]
    return None


def stack_attribute(stack: Any, name: str) -> Any:
    """A method of a stack."""
    if stacked_parts(stack) is None:
        return MISSING
    if name in _KEEPING:
        return Partial(External("stack.same"), (stack,), {})
    if name in _FOLLOWED:
        return Partial(External("stack.method"), (stack, name), {})
    return MISSING


def _stack(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
    from eaglelint.source.expressions import iterate

    source = args[0] if args else kwargs.get("tensors", kwargs.get("arrays"))
    axis = kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else 0))
    items = iterate(machine, source, site) if site is not None and source is not None else None
    if items is None or not all(isinstance(whole(item), Tensor) for item in items):
        return Tensor.of(Opaque("a stack of unknown tensors", site))
    return make_stack([whole(item) for item in items], axis if isinstance(axis, int) else None)


def _item(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
    """``stack[key]``: the part of the key that stands at the layer axis chooses states, the others tokens."""
    stack, key = args[0], args[1]
    parts, axis = stack.attrs["parts"], stack.attrs["axis"]
    keys = list(key) if isinstance(key, tuple) else [key]
    unknown = Tensor.of(Opaque("an item of a stack along an axis that is not known", site))
    if axis is None or None in keys:
        return unknown
    position = _position(keys, axis)
    if position is None:
        return unknown
    before = sum(not isinstance(item, slice) for item in keys[:position] if item is not ...)
    after = sum(not isinstance(item, slice) for item in keys[position + 1 :] if item is not ...)
    moved = axis - before if axis >= 0 else axis + after
    if position >= len(keys):
        return make_stack(parts, moved)
    chosen = keys[position]
    if isinstance(chosen, slice):
        known = all(bound is None or isinstance(bound, int) for bound in (chosen.start, chosen.stop, chosen.step))
        return make_stack(parts[chosen], moved) if known else unknown
    if isinstance(chosen, int) and -len(parts) <= chosen < len(parts):
        return parts[chosen]
    if isinstance(chosen, list | tuple) and all(isinstance(i, int) and -len(parts) <= i < len(parts) for i in chosen):
        return make_stack([parts[i] for i in chosen], moved)
    return unknown


def _position(keys: list[Any], axis: int) -> int | None:
    """Where the layer axis stands in a key; ``len(keys)`` where the key does not reach it, None where it is unknown."""
    dots = next((i for i, item in enumerate(keys) if item is ...), None)
    if axis >= 0:
        if dots is None or axis < dots:
            return min(axis, len(keys))
        return None if dots != len(keys) - 1 else len(keys)
    from_back = len(keys) + axis
    if dots is not None:
        return from_back if from_back > dots else len(keys)
    return len(keys) if len(keys) == 1 and isinstance(keys[0], int) else None


def _same(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
    return args[0]


def _method(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
    stack, name = args[0], args[1]
    rest: tuple[Any, ...] = args[2:]
    parts, axis = stack.attrs["parts"], stack.attrs["axis"]
    unknown = Tensor.of(Opaque(f"{name} of a stack along an axis that is not known", site))
    if axis is None:
        return unknown
    if len(rest) == 1 and isinstance(rest[0], list | tuple):
        rest = tuple(rest[0])
    if name == "unbind":
        along = kwargs.get("dim", rest[0] if rest else 0)
        return list(parts) if along == axis else unknown
    if name in ("permute", "transpose"):
        moved = _moved(name, rest, axis)
        return unknown if moved is None else make_stack(parts, moved)
    if name == "squeeze":
        return stack if axis == -2 else unknown
    if name == "flatten":
        start = kwargs.get("start_dim", rest[0] if rest else 0)
        end = kwargs.get("end_dim", rest[1] if len(rest) > 1 else -1)
        # From the layer axis to the features: the states side by side. Along axis 0 it would mix in the tokens.
        return _joined(machine, parts, site) if start == axis and axis != 0 and end == -1 else unknown
    if rest[-1:] == (-1,) and len(parts) not in rest and (axis == -2 or (axis > 0 and len(rest) == axis + 1)):
        return _joined(machine, parts, site)
    return unknown


def _moved(name: str, rest: tuple[Any, ...], axis: int) -> int | None:
    """The layer axis after a permutation of the axes."""
    if not all(isinstance(item, int) for item in rest):
        return None
    if name == "permute":
        rank = len(rest)
        order = [item % rank for item in rest]
        return order.index(axis % rank) if axis % rank in order and rank > 1 else None
    if len(rest) != 2:
        return None
    first, second = rest
    if axis == first:
        return int(second)
    if axis == second:
        return int(first)
    return axis if (first >= 0) == (second >= 0) == (axis >= 0) else None


def _joined(machine: Machine, parts: list[Any], site: Site | None) -> Tensor:
    result = Tensor.of(Cat(tuple(parts)))
    if site is not None:
        machine.record("cat", "", result, site)
    return result


STACK_INTERCEPTS = {
    "torch.stack": _stack,
    "numpy.stack": _stack,
    "stack.item": _item,
    "stack.same": _same,
    "stack.method": _method,
}
"""The calls that this module answers, by name, for ``Machine(intercepts=...)``."""
