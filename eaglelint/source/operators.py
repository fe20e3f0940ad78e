"""Arithmetic and comparisons: exact on Python data, formal sums on tensors."""

from __future__ import annotations

import operator
from typing import Any

from eaglelint.source.machine import Machine, Raised
from eaglelint.source.slices import Site
from eaglelint.source.values import (
    BoundMethod,
    Dim,
    External,
    Input,
    Instance,
    Iteration,
    LayerOutput,
    Norm,
    Opaque,
    Tensor,
    Unknown,
)

__all__ = ["add_tensors", "binary", "compare", "normed", "whole"]

_ARITHMETIC = {
    "Add": operator.add,
    "Subtract": operator.sub,
    "Multiply": operator.mul,
    "Divide": operator.truediv,
    "FloorDivide": operator.floordiv,
    "Modulo": operator.mod,
    "Power": operator.pow,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "BitXor": operator.xor,
    "LeftShift": operator.lshift,
    "RightShift": operator.rshift,
}
_COMPARISONS = {
    "Equal": operator.eq,
    "NotEqual": operator.ne,
    "LessThan": operator.lt,
    "LessThanEqual": operator.le,
    "GreaterThan": operator.gt,
    "GreaterThanEqual": operator.ge,
}
_ORDER = {"LessThan": "__lt__", "LessThanEqual": "__le__", "GreaterThan": "__gt__", "GreaterThanEqual": "__ge__"}
_SET_UPDATES = ("BitAnd", "BitOr", "BitXor", "Subtract")
_DATA = (int, float, str, list, tuple, set, frozenset, dict, bool, bytes, range)
_MAX_REPEAT = 100_000
_MAX_BITS = 4096


def add_tensors(machine: Machine, left: Tensor, right: Tensor, site: Site) -> Tensor:
    """The sum of two tensors; a term that stands on both sides would count twice, so the sum is unknown then."""
    if left.terms & right.terms:
        return machine.opaque("the same term is added twice", site)
    return Tensor(left.terms | right.terms)


def whole(value: Any) -> Any:
    """A layer's output used as one tensor; everything else as it is."""
    return value.whole if isinstance(value, LayerOutput) else value


def normed(machine: Machine, tensor: Tensor) -> Tensor:
    """The norm of a tensor. Outside the layers, the last one is the model's final norm."""
    if machine.in_layer:
        if machine.layer not in machine.read:
            machine.heap.set(machine.read, machine.layer, tensor)
    else:
        machine.heap.touch(machine.final)
        machine.final.append((machine.layer, tensor))
    return Tensor.of(Norm(tensor))


def binary(machine: Machine, name: str, left: Any, right: Any, site: Site, *, in_place: bool = False) -> Any:
    """``left name right`` where ``name`` is libcst's: Add, FloorDivide, ...

    Raises:
        Raised: Python would raise for these values.
    """
    if isinstance(left, Instance) and left.payload is not None:
        left = left.payload
    if isinstance(right, Instance) and right.payload is not None:
        right = right.payload
    left, right = whole(left), whole(right)
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        return _tensor_arithmetic(machine, name, left, right, site)
    if isinstance(left, Dim) or isinstance(right, Dim):
        return _dim_arithmetic(name, left, right)
    if left is None or right is None:
        other = right if left is None else left
        if name != "BitOr" and (other is None or isinstance(other, _DATA)):
            raise Raised("TypeError", f"{name.lower()} with None", site)
        return Unknown("an operand is not known")  # or a type: int | None
    if isinstance(left, _DATA) and isinstance(right, _DATA):
        return _data_arithmetic(machine, name, left, right, site, in_place=in_place)
    return Unknown(left.why if isinstance(left, Unknown) else "an operand is not known")


def _data_arithmetic(machine: Machine, name: str, left: Any, right: Any, site: Site, *, in_place: bool) -> Any:
    if name in ("Multiply", "Power", "LeftShift") and _too_large(name, left, right):
        return Unknown("the result is too large")
    unknown = isinstance(left, set | frozenset) and (holds_unknown(left) or holds_unknown(right))
    if name == "Add" and isinstance(left, list | tuple) and isinstance(right, list | tuple):
        right = _captured(machine, right, site)
    try:
        if in_place and isinstance(left, list) and name == "Add":
            machine.heap.touch(left)
            left += list(right)
            return left
        if in_place and isinstance(left, set) and isinstance(right, set | frozenset) and name in _SET_UPDATES:
            machine.heap.touch(left)
            changed = _ARITHMETIC[name](left, right) if name == "BitOr" or not unknown else {Unknown("a set operation")}
            left.clear()
            left.update(changed)
            return left
        if unknown and name in ("BitAnd", "BitXor", "Subtract"):
            return Unknown("an operation on sets of which items are not known")
        result = _ARITHMETIC[name](left, right)
    except KeyError:
        return Unknown(f"operator {name}")
    except ZeroDivisionError as error:
        raise Raised("ZeroDivisionError", str(error), site) from error
    except (TypeError, ValueError, OverflowError, ArithmeticError) as error:
        if name in ("BitAnd", "BitOr", "BitXor", "Subtract") and isinstance(left, list):
            return Unknown("an operation on a view of a dict")  # which is kept as a list
        raise Raised(type(error).__name__, str(error), site) from error
    return machine.heap.born(result) if isinstance(result, list | set | dict) else result


def _captured(machine: Machine, items: Any, site: Site) -> Any:
    """The states in ``states += (hidden,)``, noted as captured here."""
    if not any(isinstance(item, Tensor) and item.site is None for item in items):
        return items
    noted = []
    for item in items:
        fresh = isinstance(item, Tensor) and item.site is None
        noted.append(item.at(site) if fresh else item)
        if fresh:
            machine.record("capture", "", noted[-1], site)
    return type(items)(noted)


def _too_large(name: str, left: Any, right: Any) -> bool:
    for sequence, times in ((left, right), (right, left)):
        if isinstance(sequence, str | list | tuple | bytes) and isinstance(times, int):
            return len(sequence) * max(times, 0) > _MAX_REPEAT
    if not (isinstance(left, int) and isinstance(right, int)):
        return False
    if name == "Power":
        return max(left.bit_length(), 1) * abs(right) > _MAX_BITS
    if name == "LeftShift":
        return left.bit_length() + max(right, 0) > _MAX_BITS
    return left.bit_length() + right.bit_length() > _MAX_BITS


def _tensor_arithmetic(machine: Machine, name: str, left: Any, right: Any, site: Site) -> Any:
    if name == "Add" and isinstance(left, Tensor) and isinstance(right, Tensor):
        return add_tensors(machine, left, right, site)
    if left is None or right is None:
        which = "left" if left is None else "right"
        machine.fault(f"the {which} operand of {site.code} is None", site)
        return Tensor.of(Opaque("None is no tensor", site))
    if name == "Add" and (left == 0 or right == 0):
        return left if isinstance(left, Tensor) else right
    tensor = left if isinstance(left, Tensor) else right
    if any(isinstance(term, Input | Opaque) for term in tensor.terms) and machine.layer != -1:
        return machine.opaque(f"{site.code} is no plain sum", site)
    return machine.branch(f"{name}({_names(tensor)})")


def _names(tensor: Tensor) -> str:
    """A name for what an operation made of a tensor, the same on every path that computes the same."""
    return ",".join(
        sorted(getattr(term, "what", "") or getattr(term, "name", "") or type(term).__name__ for term in tensor.terms)
    )


def _dim_arithmetic(name: str, left: Any, right: Any) -> Any:
    if name == "Multiply":
        for dim, times in ((left, right), (right, left)):
            if isinstance(dim, Dim) and isinstance(times, int):
                return Dim(dim.count * times) if times else 0
    if name in ("Add", "Subtract"):
        sign = 1 if name == "Add" else -1
        if isinstance(left, Dim) and isinstance(right, Dim):
            count = left.count + sign * right.count
            return Dim(count) if count else 0
        if isinstance(left, Dim) and right == 0:
            return left
        if left == 0 and isinstance(right, Dim) and sign == 1:
            return right
    if name == "FloorDivide" and isinstance(left, Dim) and isinstance(right, Dim) and right.count:
        return left.count // right.count
    return Unknown("a width that is not known")


def compare(machine: Machine, name: str, left: Any, right: Any, site: Site) -> Any:
    """One comparison; Unknown where the values do not decide it."""
    if machine.compared is not None and isinstance(left, int) and isinstance(right, int):
        machine.compared |= {(int(left), int(right)), (int(right), int(left))}
    if name in ("Is", "IsNot"):
        return _identity(left, right, name == "Is")
    if name in ("In", "NotIn"):
        if right is None or isinstance(right, int | float):
            raise Raised("TypeError", f"{right!r} is no container", site)
        found = _drawn_until(machine, right, left) if isinstance(right, Iteration) else _contains(right, left)
        return Unknown("membership is not known") if found is None else found == (name == "In")
    if isinstance(left, Instance) and left.payload is not None:
        left = left.payload
    if isinstance(right, Instance) and right.payload is not None:
        right = right.payload
    if isinstance(left, Dim) and isinstance(right, Dim) and name in _COMPARISONS:
        return _COMPARISONS[name](left.count, right.count)
    if isinstance(left, Dim | Unknown | Tensor) or isinstance(right, Dim | Unknown | Tensor):
        return Unknown(left.why if isinstance(left, Unknown) else "an operand is not known")
    if name in ("Equal", "NotEqual"):
        if holds_unknown(left) or holds_unknown(right):
            return Unknown("an operand is not known")
        if isinstance(left, Instance) or isinstance(right, Instance):
            if _is_member(left) and _is_member(right):
                return (left.cls == right.cls and left.name == right.name) == (name == "Equal")
            for member, other in ((left, right), (right, left)):
                # A member of an enum of strings equals its value; of a plain enum no string.
                if _is_member(member) and isinstance(other, str) and isinstance(member.attrs.get("value"), str):
                    known = _is_text(machine, member)
                    if known is not None:
                        return (known and member.attrs["value"] == other) == (name == "Equal")
            return Unknown("objects are compared") if left is not right else name == "Equal"
        return bool(_COMPARISONS[name](left, right))
    if holds_unknown(left) or holds_unknown(right):
        return Unknown("an operand is not known")
    if _is_member(left) and name in _ORDER:
        from eaglelint.source.calls import call_value
        from eaglelint.source.lookup import find_method

        own = find_method(machine, left.cls, _ORDER[name])
        if own is not None:
            return call_value(machine, BoundMethod(own, left), (right,), {}, site)
    left, right = _ordinal(left), _ordinal(right)
    try:
        return bool(_COMPARISONS[name](left, right))
    except (TypeError, KeyError) as error:
        if isinstance(left, (*_DATA, type(None))) and isinstance(right, (*_DATA, type(None))):
            raise Raised("TypeError", str(error), site) from error
        return Unknown("a comparison that is not known")


def _ordinal(value: Any) -> Any:
    """The number that a member of an enum of integers is; everything else as it is."""
    if _is_member(value) and any(base.rsplit(".", 1)[-1] in ("int", "IntEnum") for base in value.cls.info.bases):
        return value.attrs.get("value")
    return value


def _is_text(machine: Machine, member: Instance) -> bool | None:
    from eaglelint.source.lookup import is_subclass

    assert member.cls is not None
    if any(base.rsplit(".", 1)[-1] in ("str", "StrEnum") for base in member.cls.info.bases):
        return True
    return False if is_subclass(machine, member.cls, External("builtins.str")) is False else None


def _is_member(value: Any) -> bool:
    """Whether a value is a member of an enum."""
    return isinstance(value, Instance) and value.closed and value.cls is not None


def _identity(left: Any, right: Any, positive: bool) -> Any:
    for value, other in ((left, right), (right, left)):
        if value is None or isinstance(value, bool):
            if isinstance(other, Unknown):
                return (not positive) if value is None and other.present else Unknown(other.why)
            return (other is value) == positive
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return Unknown("identity is not known")
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return Unknown("identity is not known") if left is not right else positive
    if _is_member(left) and _is_member(right):
        return (left.cls == right.cls and left.name == right.name) == positive
    return (left is right or (not isinstance(left, Instance) and left == right)) == positive


def _contains(container: Any, item: Any) -> bool | None:
    if isinstance(container, Instance) and container.payload is not None:
        container = container.payload
    if isinstance(container, str):
        return item in container if isinstance(item, str) else None
    if not isinstance(container, list | tuple | set | frozenset | dict | range):
        return None
    if isinstance(item, Unknown | Tensor):
        return False if not len(container) else None
    try:
        if item in container:
            return True
    except TypeError:
        return None
    return (
        None if not isinstance(container, range) and any(isinstance(member, Unknown) for member in container) else False
    )


def _drawn_until(machine: Machine, iteration: Iteration, item: Any) -> bool | None:
    """Membership in an iteration, which is used up on the way."""
    machine.heap.touch(iteration)
    while iteration:
        found = _contains(iteration[:1], item)
        iteration.pop(0)
        if found or found is None:
            return found
    return False


_HOLDING: tuple[type[Any], ...] = (
    list,
    tuple,
    set,
    frozenset,
    type({}.keys()),
)  # not KeysView, which is abstract, and slow to ask


def holds_unknown(value: Any) -> bool:
    if isinstance(value, Unknown | Tensor):
        return True
    if isinstance(value, _HOLDING):
        return any(holds_unknown(item) for item in value)
    return False
