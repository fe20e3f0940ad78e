"""Python's own functions, as far as models use them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from eaglelint.source.assign import keep_attribute, set_attribute
from eaglelint.source.conditions import with_default
from eaglelint.source.expressions import iterate, truth
from eaglelint.source.lookup import MISSING, get_attribute, is_subclass
from eaglelint.source.machine import Machine, Raised
from eaglelint.source.slices import Site
from eaglelint.source.values import (
    BoundMethod,
    BuiltinMethod,
    ClassValue,
    Closure,
    Dim,
    External,
    Frame,
    Function,
    Instance,
    Iteration,
    Partial,
    Tensor,
    TensorBuffer,
    TensorView,
    Unknown,
)

__all__ = ["BUILTINS", "pairs_of"]

_Args = tuple[Any, ...]


def _len(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    value = args[0] if args else None
    if isinstance(value, Instance):
        if value.payload is not None:
            return len(value.payload)
        method = get_attribute(machine, value, "__len__")
        if method is not MISSING and not isinstance(method, Unknown):
            from eaglelint.source.calls import call_value

            return call_value(machine, method, (), {}, site)
        return Unknown("the length of an object")
    if isinstance(value, dict | set | frozenset) and any(isinstance(item, Unknown) for item in value):
        return Unknown("the number of items of which one is not known")  # it may equal another
    if isinstance(value, list | tuple | dict | set | frozenset | str | range) and not isinstance(value, Iteration):
        return len(value)
    if value is None or isinstance(value, int | float | Iteration):
        raise Raised("TypeError", f"{value!r} has no length", site)
    if _is_depth(machine, value):
        machine.provide(f"when {value.key} has an item for each of the {machine.num_layers} layers")
        return machine.num_layers
    return Unknown("a length that is not known")


_PER_LAYER = re.compile(r"layer|block|pattern")


def _is_depth(machine: Machine, value: Any) -> bool:
    """Whether a key of a target's config that is not given, as its name has it, speaks of the decoder layers.

    Of a target that is given by its depth alone, that is known.
    """
    if not isinstance(value, Unknown) or not machine.num_layers:
        return False
    return _PER_LAYER.search(value.key.rsplit(".", 1)[-1]) is not None


def _getattr(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    if len(args) < 2 or not isinstance(args[1], str):
        return Unknown("an attribute whose name is not known")
    found = get_attribute(machine, args[0], args[1], site)
    if found is not MISSING:
        return with_default(found, args[2]) if len(args) > 2 else found
    if len(args) > 2:
        return args[2]
    raise Raised("AttributeError", args[1], site)


def _object_setattr(
    machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None
) -> Any:
    if len(args) == 3 and isinstance(args[0], Instance) and isinstance(args[1], str) and site is not None:
        keep_attribute(machine, args[0], args[1], args[2], site)
    return None


def _hasattr(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    if len(args) != 2 or not isinstance(args[1], str):
        return Unknown("an attribute whose name is not known")
    try:
        found = get_attribute(machine, args[0], args[1], site)
    except Raised as error:
        if error.kind == "AttributeError":
            return False
        raise
    if isinstance(found, Unknown) or (isinstance(found, External) and not isinstance(args[0], Instance)):
        return Unknown(f"whether it has {args[1]}")
    return found is not MISSING


def _setattr(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    if len(args) == 3 and isinstance(args[1], str) and site is not None:
        set_attribute(machine, args[0], args[1], args[2], site, caller)
    return None


def _isinstance(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    if len(args) != 2:
        return Unknown("isinstance")
    value = args[0]
    kinds = args[1] if isinstance(args[1], tuple) else (args[1],)
    answers = [_is_instance(machine, value, kind) for kind in kinds]
    if True in answers:
        return True
    return False if all(answer is False for answer in answers) else Unknown("isinstance of something unknown")


_ABSTRACT = ("numbers.", "collections.abc.", "typing.")  # what counts as one of these, a plain value may
_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "int": int,
    "str": str,
    "bool": bool,
    "float": float,
    "list": list,
    "tuple": tuple,
    "dict": dict,
    "set": set,
    "Sequence": (list, tuple, str, range),
    "Iterable": (list, tuple, str, range, dict, set),
    "Mapping": dict,
    "Integral": int,
    "Real": (int, float),
    "Number": (int, float, complex),
}


def _is_instance(machine: Machine, value: Any, kind: Any) -> bool | None:
    name = kind.name.rsplit(".", 1)[-1] if isinstance(kind, External) else ""
    if isinstance(value, Unknown):
        return None
    if isinstance(value, Tensor | TensorBuffer | TensorView):
        return name == "Tensor" if name else (False if isinstance(kind, ClassValue) else None)
    if isinstance(value, Instance):
        if value.cls is None:
            return None if not name or name not in _PYTHON_TYPES else False
        if name in _PYTHON_TYPES and value.payload is not None:
            return name in ("list", "Sequence", "Iterable")
        return is_subclass(machine, value.cls, kind)
    if isinstance(value, Iteration):
        return name in ("Iterable", "Iterator") or (None if name == "Generator" else False)
    if name in _PYTHON_TYPES:
        return isinstance(value, _PYTHON_TYPES[name])
    if isinstance(kind, External) and kind.name.startswith(_ABSTRACT):
        return None
    if isinstance(kind, ClassValue) or name:
        return False
    return None


def _range(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    if args and all(isinstance(arg, int) for arg in args):
        try:
            return range(*args)
        except (TypeError, ValueError) as error:
            raise Raised("ValueError", str(error), site) from error
    if len(args) == 1 and _is_depth(machine, args[0]):
        machine.provide(f"when {args[0].key} is {machine.num_layers}")
        return range(machine.num_layers or 0)
    return Unknown("a range with bounds that are not known")


def _sequence(kind: Callable[[Any], Any]) -> Callable[..., Any]:
    def make(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
        if not args:
            return machine.heap.born(kind(()))
        if site is None:
            return Unknown("a sequence")
        items = iterate(machine, args[0], site)
        if items is None:
            return Unknown(args[0].why if isinstance(args[0], Unknown) else "a sequence of unknown items")
        try:
            return machine.heap.born(kind(items))
        except TypeError:
            return Unknown("a sequence of unknown items")

    return make


def _dict(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    result: dict[Any, Any] = {}
    for source in (*args, kwargs):
        pairs = list(source.items()) if isinstance(source, dict) else pairs_of(machine, source, site)
        if pairs is None:
            return Unknown("a dict of unknown items")
        try:
            result.update(pairs)
        except TypeError:
            return Unknown("a dict whose keys are not known")
    return machine.heap.born(result)


def pairs_of(machine: Machine, source: Any, site: Site | None) -> list[tuple[Any, Any]] | None:
    """The items of an iterable of pairs; None where they are not known."""
    items = iterate(machine, source, site) if site is not None else None
    if items is None or not all(isinstance(item, tuple | list) and len(item) == 2 for item in items):
        return None
    return [(item[0], item[1]) for item in items]


def _sorted(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    items = iterate(machine, args[0], site) if args and site else None
    if items is None or kwargs.get("key") is not None or any(isinstance(item, Unknown | Tensor) for item in items):
        return Unknown("a sorted sequence of unknown items")
    try:
        return machine.heap.born(sorted(items, reverse=bool(truth(kwargs.get("reverse", False)))))
    except TypeError as error:
        raise Raised("TypeError", str(error), site) from error


def _enumerate(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    items = iterate(machine, args[0], site) if args and site else None
    start = kwargs.get("start", args[1] if len(args) > 1 else 0)
    if items is None:
        return Unknown("an enumeration of unknown items")
    if not isinstance(start, int):
        return machine.heap.born(Iteration((Unknown("an index that is not known"), item) for item in items))
    return machine.heap.born(Iteration(enumerate(items, start)))


def _zip(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    parts = [iterate(machine, arg, site) if site else None for arg in args]
    return (
        Unknown("a zip of unknown items")
        if None in parts
        else machine.heap.born(Iteration(zip(*[p for p in parts if p is not None], strict=False)))
    )


def _reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
        items = iterate(machine, args[0], site) if len(args) == 1 and site else list(args)
        if items is None or "key" in kwargs or any(not isinstance(item, int | float | str | bool) for item in items):
            return Unknown("a value over unknown items")
        try:
            return function(items)
        except (TypeError, ValueError) as error:
            if "default" in kwargs:
                return kwargs["default"]
            raise Raised(type(error).__name__, str(error), site) from error

    return reduce


def _any_all(positive: bool) -> Callable[..., Any]:
    def decide(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
        items = iterate(machine, args[0], site) if args and site else None
        truths = [truth(item) for item in items] if items is not None else [None]
        if positive in truths:
            return positive
        return Unknown("a condition over unknown items") if None in truths else not positive

    return decide


def _convert(kind: Callable[[Any], Any]) -> Callable[..., Any]:
    def convert(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
        if not args:
            return kind(0)
        if isinstance(args[0], Dim):
            return args[0]
        if not isinstance(args[0], int | float | str | bool):
            return Unknown(args[0].why if isinstance(args[0], Unknown) else "a conversion of an unknown value")
        try:
            return kind(args[0])
        except (ValueError, TypeError, OverflowError) as error:
            raise Raised(type(error).__name__, str(error), site) from error

    return convert


def _bool(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    known = truth(args[0]) if args else False
    return Unknown("a condition that is not known") if known is None else known


def _abs(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    return abs(args[0]) if args and isinstance(args[0], int | float) else Unknown("an absolute value")


def _type(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    value = args[0] if args else None
    return value.cls if isinstance(value, Instance) and value.cls is not None else Unknown("a type")


def _next(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    if not args or not isinstance(args[0], Iteration):
        return Unknown("the next of an unknown iteration")
    if args[0]:
        machine.heap.touch(args[0])
        return args[0].pop(0)
    if len(args) > 1:
        return args[1]
    raise Raised("StopIteration", "", site)


def _iter(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    if len(args) == 1 and isinstance(args[0], Iteration):
        return args[0]
    items = iterate(machine, args[0], site) if len(args) == 1 and site else None
    return Unknown("an iterator") if items is None else machine.heap.born(Iteration(items))


def _filter(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    from eaglelint.source.calls import call_value

    items = iterate(machine, args[1], site) if len(args) == 2 and site else None
    if items is None:
        return Unknown("a choice of unknown items")
    kept = [item if args[0] is None else call_value(machine, args[0], (item,), {}, site, caller) for item in items]
    known = [truth(value) for value in kept]
    if None in known:
        return Unknown("a choice of items by an unknown condition")
    return machine.heap.born(Iteration(item for item, keep in zip(items, known, strict=True) if keep))


def _map(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    from eaglelint.source.calls import call_value

    items = iterate(machine, args[1], site) if len(args) == 2 and site else None
    if items is None:
        return Unknown("a map over unknown items")
    return machine.heap.born(Iteration(call_value(machine, args[0], (item,), {}, site, caller) for item in items))


def _print(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    return None


def _reversed(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    items = iterate(machine, args[0], site) if args and site else None
    return Unknown("a reversed iteration") if items is None else machine.heap.born(Iteration(items[::-1]))


def _slice(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    return slice(*args) if 1 <= len(args) <= 3 else Unknown("a slice")


def _callable(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    value = args[0] if args else None
    if isinstance(value, Function | BoundMethod | Closure | Partial | BuiltinMethod | ClassValue):
        return True
    if value is None or isinstance(value, bool | int | float | str | list | tuple | dict | set):
        return False
    return Unknown("callable")


BUILTINS: dict[str, Callable[..., Any]] = {
    "len": _len,
    "getattr": _getattr,
    "hasattr": _hasattr,
    "setattr": _setattr,
    "object.__setattr__": _object_setattr,
    "isinstance": _isinstance,
    "range": _range,
    "list": _sequence(list),
    "tuple": _sequence(tuple),
    "set": _sequence(set),
    "frozenset": _sequence(frozenset),
    "dict": _dict,
    "sorted": _sorted,
    "enumerate": _enumerate,
    "zip": _zip,
    "sum": _reduced(sum),
    "min": _reduced(min),
    "max": _reduced(max),
    "any": _any_all(True),
    "all": _any_all(False),
    "int": _convert(int),
    "float": _convert(float),
    "str": _convert(str),
    "bool": _bool,
    "abs": _abs,
    "round": lambda machine, args, kwargs, site, caller: (
        round(*args) if args and all(isinstance(arg, int | float) for arg in args) else Unknown("a rounded value")
    ),
    "type": _type,
    "next": _next,
    "iter": _iter,
    "filter": _filter,
    "map": _map,
    "print": _print,
    "reversed": _reversed,
    "slice": _slice,
    "callable": _callable,
    "id": lambda machine, args, kwargs, site, caller: Unknown("an identity"),
    "staticmethod": lambda machine, args, kwargs, site, caller: (
        Partial(args[0], (), {}) if args else Unknown("a static method")  # which no object is bound to
    ),
    "super": lambda machine, args, kwargs, site, caller: Unknown("super"),
}
