"""Python's own functions and methods, and the few of torch that make, join or keep tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from eaglelint.source.assign import set_attribute, write_view
from eaglelint.source.expressions import iterate, truth
from eaglelint.source.lookup import MISSING, get_attribute, is_subclass
from eaglelint.source.machine import Machine, Raised
from eaglelint.source.operators import binary, normed, whole
from eaglelint.source.slices import Site
from eaglelint.source.values import (
    BuiltinMethod,
    Cat,
    ClassValue,
    Closure,
    Dim,
    External,
    Frame,
    Function,
    Instance,
    Iteration,
    ModuleItems,
    Opaque,
    Partial,
    Tensor,
    TensorBuffer,
    TensorView,
    Unknown,
)

__all__ = ["call_builtin_method", "call_external"]

_Args = tuple[Any, ...]

# Methods after which a tensor is the same state: another type, place, layout or choice of tokens.
_KEEPING = frozenset(
    [
        "clone",
        "detach",
        "contiguous",
        "to",
        "type",
        "type_as",
        "float",
        "half",
        "bfloat16",
        "double",
        "cpu",
        "cuda",
        "npu",
        "view",
        "reshape",
        "squeeze",
        "unsqueeze",
        "flatten",
        "expand",
        "expand_as",
        "requires_grad_",
        "pin_memory",
        "numpy",
        "flatten",
        "narrow",
        "index_select",
        "tensor_split",
        "split",
        "chunk",
        "unbind",
    ]
)
_KEEPING_FUNCTIONS = frozenset(
    [
        "torch.squeeze",
        "torch.unsqueeze",
        "torch.reshape",
        "torch.flatten",
        "torch.as_tensor",
        "torch.tensor",
        "torch.Tensor.contiguous",
    ]
)
_CAT = frozenset(
    ["torch.cat", "torch.concat", "torch.concatenate", "torch.hstack", "numpy.concatenate", "np.concatenate"]
)
_STACK = frozenset(["torch.stack", "numpy.stack"])
_SAVE = frozenset(
    ["torch.save", "safetensors.torch.save_file", "pickle.dump", "numpy.save", "numpy.savez", "save_file"]
)


def call_external(
    machine: Machine, name: str, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None
) -> Any:
    """A function from outside the sources."""
    from eaglelint.source.calls import not_followed, tensors_in

    if name.startswith("builtins."):
        handler = _BUILTINS.get(name[9:])
        if handler is not None:
            return handler(machine, args, kwargs, site, caller)
        if name[9:].endswith(("Error", "Exception")):
            return Unknown("an exception")
    if name == "intrinsic.unread":
        return Tensor.of(Opaque("a stage writes the stream in a way that its summary does not cover", site))
    if name == "intrinsic.given":
        return args[0]
    if name == "intrinsic.normed":
        return (
            normed(machine, args[0])
            if isinstance(args[0], Tensor)
            else Tensor.of(Opaque("the norm of an unknown value", site))
        )
    short = name.rsplit(".", 1)[-1]
    if name in _CAT:
        return _cat(machine, args, kwargs, site)
    if name in _STACK:
        items = iterate(machine, args[0], site) if args and site else None
        return machine.heap.born(items) if items is not None else Tensor.of(Opaque("a stack of unknown tensors", site))
    if name in _SAVE or (short in ("save", "save_file") and any(tensors_in(args))):
        if site is not None:
            data = [arg for arg in args if not isinstance(arg, str | Unknown)]  # numpy.save takes the path first
            machine.record("save", name, data[0] if data else kwargs, site)
        return None
    if name in ("os.getenv", "os.environ.get"):
        machine.used_assumptions.add("no environment variable set")
        return args[1] if len(args) > 1 else kwargs.get("default")
    if name == "torch.clone" and args and isinstance(whole(args[0]), Tensor):
        return Tensor(whole(args[0]).terms, whole(args[0]).site)
    if name in _KEEPING_FUNCTIONS:
        return whole(args[0]) if args else Unknown(name)
    if short == "partial" and name.startswith("functools"):
        return Partial(args[0], args[1:], kwargs) if args else Unknown(name)
    if short == "islice":
        return _islice(machine, args, site)
    if short == "ModuleList":
        return _module_list(machine, args, site)
    if name in ("copy.copy", "copy.deepcopy"):
        return _copy(machine, args[0], deep=name == "copy.deepcopy") if args else Unknown(name)
    if short in ("nullcontext", "no_grad", "inference_mode"):
        return Unknown(short)
    if short == "cast" and name.startswith("typing") and len(args) == 2:
        return args[1]
    if name in ("itertools.chain",):
        parts = [iterate(machine, part, site) for part in args] if site else []
        return (
            machine.heap.born([item for part in parts if part for item in part]) if None not in parts else Unknown(name)
        )
    if name.startswith("math.") and all(isinstance(arg, int | float) for arg in args) and hasattr(math, short):
        try:
            return getattr(math, short)(*args)
        except (TypeError, ValueError, OverflowError):
            return Unknown(name)
    if short in ("SimpleNamespace", "Namespace") or (name.startswith("transformers.") and "Output" in short):
        return machine.new_instance(Instance(None, attrs=dict(kwargs), name=short))
    if name.startswith("dict.") or name.startswith("number."):
        return Unknown(name)
    if not any(tensors_in((args, kwargs))) and (short[:1].isupper() or name.startswith("torch.nn.")):
        # An object of an outside class: a module, a config, a lock.
        return machine.new_instance(Instance(None, args, kwargs, name=short))
    return not_followed(machine, name, args, kwargs, site)


def _copy(machine: Machine, value: Any, *, deep: bool) -> Any:
    """Another container with the same contents; an object stands for its copy as well."""
    if isinstance(value, list | set):
        return machine.heap.born(type(value)(_copy(machine, item, deep=True) if deep else item for item in value))
    if isinstance(value, dict):
        items = {key: _copy(machine, item, deep=True) if deep else item for key, item in value.items()}
        return machine.heap.born(items)
    if isinstance(value, Instance) and value.payload is not None and not value.attrs:
        payload = _copy(machine, value.payload, deep=deep)
        return machine.new_instance(Instance(value.cls, value.args, value.kwargs, name=value.name, payload=payload))
    return value


def _cat(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    source = args[0] if args else kwargs.get("tensors")
    axis = kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else 0))
    if isinstance(source, Instance) and source.payload is not None:
        source = source.payload
    if not isinstance(source, list | tuple):
        return (
            Tensor.of(Opaque("a concatenation of unknown tensors", site))
            if isinstance(source, Tensor)
            else Unknown("a concatenation")
        )
    parts = tuple(
        machine.current(whole(item))
        if isinstance(whole(item), Tensor)
        else Tensor.of(Opaque("a part that is not known", site))
        for item in source
    )
    if not parts:
        return Unknown("a concatenation of nothing")
    if isinstance(axis, int) and axis in (-1, 1, 2):
        result = Tensor.of(Cat(parts))
        if site is not None:
            machine.record("cat", "", result, site)
        return result
    if len(parts) == 1:
        return parts[0]
    return Tensor.of(Opaque("a concatenation along another axis than the features", site))


def _islice(machine: Machine, args: _Args, site: Site | None) -> Any:
    items = iterate(machine, args[0], site) if args and site else None
    bounds = args[1:]
    if items is None or not all(bound is None or isinstance(bound, int) for bound in bounds):
        return Unknown("a slice of an iteration that is not known")
    return machine.heap.born(Iteration(items[slice(*bounds)]))


def _module_list(machine: Machine, args: _Args, site: Site | None) -> Any:
    from eaglelint.source.layers import adopt_layers

    items = iterate(machine, args[0], site) if args and site else ([] if not args else None)
    if items is None:
        return Unknown("a list of modules that is not known")
    modules = machine.heap.born(ModuleItems(items))
    adopt_layers(modules)
    return modules


# --- methods of data and tensors -----------------------------------------------------------------------------------


def call_builtin_method(
    machine: Machine, receiver: Any, name: str, args: _Args, kwargs: dict[str, Any], site: Site | None
) -> Any:
    """A method of a list, dict, set, string or tensor."""
    if isinstance(receiver, list):
        return _list_method(machine, receiver, name, args, kwargs, site)
    if isinstance(receiver, dict):
        return _dict_method(machine, receiver, name, args, kwargs, site)
    if isinstance(receiver, set):
        return _set_method(machine, receiver, name, args, site)
    if isinstance(receiver, Tensor):
        return _tensor_method(machine, receiver, name, args, kwargs, site)
    if isinstance(receiver, TensorView) and name == "copy_" and site is not None:
        write_view(machine, receiver, whole(args[0]) if args else Unknown(), site)
        return receiver
    if isinstance(receiver, TensorBuffer):
        return receiver if name in _KEEPING else Unknown(name)
    if isinstance(receiver, tuple | frozenset | str | range) and all(
        isinstance(a, int | str | tuple | list) for a in args
    ):
        return _pure(receiver, name, args, kwargs, site)
    return Unknown(f"{name} of an unknown value")


def _pure(receiver: Any, name: str, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    if name in ("format", "format_map", "encode", "translate", "center", "ljust", "rjust", "zfill", "expandtabs"):
        return Unknown(name)
    try:
        return getattr(receiver, name)(*args, **kwargs)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise Raised(type(error).__name__, str(error), site) from error


def _list_method(
    machine: Machine, receiver: list[Any], name: str, args: _Args, kwargs: dict[str, Any], site: Site | None
) -> Any:
    if name in ("append", "insert") and args:
        value = whole(args[-1])
        if isinstance(value, Tensor) and site is not None:
            value = value.at(site)
            machine.record("capture", "", value, site)
        machine.heap.touch(receiver)
        if name == "append":
            receiver.append(value)
        elif isinstance(args[0], int):
            receiver.insert(args[0], value)
        else:
            receiver[:] = [Unknown("an item was inserted at an unknown place")] * (len(receiver) + 1)
        _adopt(receiver)
        return None
    if name == "extend" and args and site is not None:
        items = iterate(machine, args[0], site)
        machine.heap.touch(receiver)
        receiver.extend([Unknown("a list was extended by unknown items")] if items is None else items)
        _adopt(receiver)
        return None
    if name in ("pop", "sort", "reverse", "clear", "remove"):
        machine.heap.touch(receiver)
        if name == "sort" and (kwargs.get("key") is not None or any(isinstance(i, Unknown | Tensor) for i in receiver)):
            receiver[:] = [Unknown("a list was sorted in an unknown order")] * len(receiver)
            return None
    if name == "copy":
        return machine.heap.born(list(receiver))
    if name in ("index", "count") and any(isinstance(item, Unknown | Tensor) for item in (*receiver, *args)):
        return Unknown(name)
    kept = {"reverse": kwargs["reverse"]} if name == "sort" and isinstance(kwargs.get("reverse"), bool) else {}
    try:
        return getattr(receiver, name)(*args, **kept)
    except (ValueError, TypeError, IndexError) as error:
        raise Raised(type(error).__name__, str(error), site) from error


def _adopt(receiver: list[Any]) -> None:
    from eaglelint.source.layers import adopt_layers

    if isinstance(receiver, ModuleItems):
        adopt_layers(receiver)


def _dict_method(
    machine: Machine, receiver: dict[Any, Any], name: str, args: _Args, kwargs: dict[str, Any], site: Site | None
) -> Any:
    if name == "get" and args:
        key = args[0]
        if isinstance(key, Unknown | Tensor) or any(isinstance(known, Unknown) for known in receiver):
            return Unknown("an item of a dict")
        try:
            return receiver.get(key, args[1] if len(args) > 1 else None)
        except TypeError:
            return Unknown("an item of a dict")
    if name in ("items", "keys", "values"):
        return machine.heap.born(list(getattr(receiver, name)()))
    if name == "copy":
        return machine.heap.born(dict(receiver))
    if name == "update":
        for source in (*args, kwargs):
            pairs = list(source.items()) if isinstance(source, dict) else _pairs(machine, source, site)
            if pairs is None:
                pairs = [(Unknown("a dict was updated by unknown items"), Unknown("an unknown item"))]
            for key, value in pairs:
                machine.heap.set(receiver, key, value)
        return None
    if name in ("clear", "popitem"):
        if name == "popitem" and not receiver:
            raise Raised("KeyError", "popitem of an empty dict", site)
        taken = list(receiver.items())[-1:] if name == "popitem" else list(receiver.items())
        for key, _ in taken:
            machine.heap.delete(receiver, key)
        return taken[0] if name == "popitem" else None
    if name in ("pop", "setdefault") and args and not isinstance(args[0], Unknown | Tensor):
        if args[0] in receiver:
            found = receiver[args[0]]
            if name == "pop":
                machine.heap.delete(receiver, args[0])
            return found
        if name == "setdefault":
            machine.heap.set(receiver, args[0], args[1] if len(args) > 1 else None)
            return receiver[args[0]]
        if len(args) > 1:
            return args[1]
        raise Raised("KeyError", repr(args[0]), site)
    return Unknown(f"{name} of a dict")


def _pairs(machine: Machine, source: Any, site: Site | None) -> list[tuple[Any, Any]] | None:
    """The items of an iterable of pairs; None where they are not known."""
    items = iterate(machine, source, site) if site is not None else None
    if items is None or not all(isinstance(item, tuple | list) and len(item) == 2 for item in items):
        return None
    return [(item[0], item[1]) for item in items]


def _set_method(machine: Machine, receiver: set[Any], name: str, args: _Args, site: Site | None) -> Any:
    if name in ("add", "update", "discard", "remove"):
        machine.heap.touch(receiver)
    try:
        return getattr(receiver, name)(*args)
    except (KeyError, TypeError) as error:
        raise Raised(type(error).__name__, str(error), site) from error


def _tensor_method(
    machine: Machine, receiver: Tensor, name: str, args: _Args, kwargs: dict[str, Any], site: Site | None
) -> Any:
    if name in ("add", "add_", "__add__", "__iadd__") and len(args) == 1 and site is not None and not kwargs:
        total = binary(machine, "Add", receiver, args[0], site)
        in_place = name in ("add_", "__iadd__") and isinstance(total, Tensor)
        return machine.overwrite(receiver, total) if in_place else total
    if name == "clone":
        return Tensor(receiver.terms, receiver.site)
    if name in ("new_empty", "new_zeros", "new_ones"):
        buffer = TensorBuffer(site=site)
        machine.heap.born(buffer.writes)
        return buffer
    if name in ("split", "chunk", "unbind", "tensor_split"):
        return Unknown(f"the parts of a tensor after {name}")
    if name in ("narrow", "index_select") and (kwargs.get("dim", args[0] if args else None)) != 0:
        return Tensor.of(Opaque(f"the tensor method {name} may choose features", site))
    if name in _KEEPING:
        return receiver
    if name in ("size", "dim", "numel", "item", "tolist", "element_size", "stride", "data_ptr"):
        return Unknown(f"{name} of a tensor")
    if name == "copy_" and args and isinstance(whole(args[0]), Tensor):
        return machine.overwrite(receiver, whole(args[0]))
    if name.endswith("_") and not name.endswith("__") and name != "requires_grad_":
        why = f"the tensor method {name} changes it in a way that is not followed"
        return machine.overwrite(receiver, Tensor.of(Opaque(why, site)))
    from eaglelint.source.calls import carries_stream

    if carries_stream(machine, receiver) and machine.layer >= 0:
        return Tensor.of(Opaque(f"the tensor method {name} is not followed", site))
    return machine.branch(f"tensor.{name}")


# --- built-in functions --------------------------------------------------------------------------------------------


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
    if isinstance(value, list | tuple | dict | set | frozenset | str | range) and not isinstance(value, Iteration):
        return len(value)
    if value is None or isinstance(value, int | float | Iteration):
        raise Raised("TypeError", f"{value!r} has no length", site)
    return Unknown("a length that is not known")


def _getattr(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    if len(args) < 2 or not isinstance(args[1], str):
        return Unknown("an attribute whose name is not known")
    found = get_attribute(machine, args[0], args[1], site)
    if found is not MISSING:
        return found
    if len(args) > 2:
        return args[2]
    raise Raised("AttributeError", args[1], site)


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
        return isinstance(value, _PYTHON_TYPES[name]) and not (name == "int" and isinstance(value, bool))
    if isinstance(kind, ClassValue) or name:
        return False
    return None


def _range(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None) -> Any:
    if args and all(isinstance(arg, int) for arg in args):
        try:
            return range(*args)
        except (TypeError, ValueError) as error:
            raise Raised("ValueError", str(error), site) from error
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
        pairs = list(source.items()) if isinstance(source, dict) else _pairs(machine, source, site)
        if pairs is None:
            return Unknown("a dict of unknown items")
        try:
            result.update(pairs)
        except TypeError:
            return Unknown("a dict whose keys are not known")
    return machine.heap.born(result)


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


_BUILTINS: dict[str, Callable[..., Any]] = {
    "len": _len,
    "getattr": _getattr,
    "hasattr": _hasattr,
    "setattr": _setattr,
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
    "callable": lambda machine, args, kwargs, site, caller: (
        True if args and isinstance(args[0], Function | Closure | Partial | BuiltinMethod) else Unknown("callable")
    ),
    "id": lambda machine, args, kwargs, site, caller: Unknown("an identity"),
    "super": lambda machine, args, kwargs, site, caller: Unknown("super"),
}
