"""The methods of lists, dicts, sets, strings and tensors."""

from __future__ import annotations

from typing import Any

from eaglelint.source.assign import forget, write_view
from eaglelint.source.builtins import pairs_of
from eaglelint.source.expressions import iterate
from eaglelint.source.machine import Machine, Raised
from eaglelint.source.operators import binary, holds_unknown, whole
from eaglelint.source.slices import Site
from eaglelint.source.streams import carries_stream
from eaglelint.source.values import Cat, Dim, ModuleItems, Tensor, TensorBuffer, TensorView, Unknown, Weight

__all__ = ["call_builtin_method"]

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

_NUMBERS = frozenset(["size", "dim", "numel", "item", "tolist", "element_size", "stride", "data_ptr"])


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
    if (name in ("pop", "remove") and holds_unknown(args)) or (name == "remove" and holds_unknown(receiver)):
        forget(machine, receiver, f"{name} of an unknown item")
        return Unknown(f"{name} of an unknown item") if name == "pop" else None
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
            pairs = list(source.items()) if isinstance(source, dict) else pairs_of(machine, source, site)
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
    if name in ("pop", "setdefault") and args and (holds_unknown(args[:1]) or holds_unknown(receiver.keys())):
        if name == "pop":
            forget(machine, receiver, "an unknown item was taken out")
        else:
            why = "a default was set for an unknown key"
            machine.heap.set(receiver, Unknown(why), Unknown(why))
        return Unknown(f"{name} of an unknown item")
    if name in ("pop", "setdefault") and args:
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


def _set_method(machine: Machine, receiver: set[Any], name: str, args: _Args, site: Site | None) -> Any:
    if name in ("add", "update"):
        machine.heap.touch(receiver)
        items = [args] if name == "add" else [iterate(machine, arg, site) if site is not None else None for arg in args]
        for found in items:
            try:
                receiver.update([Unknown("a set was updated by unknown items")] if found is None else found)
            except TypeError as error:
                raise Raised("TypeError", str(error), site) from error
        return None
    if holds_unknown(receiver) or holds_unknown(args):
        if name.endswith("_update") or name in ("discard", "remove", "pop"):
            forget(machine, receiver, f"{name} of unknown items")
        return Unknown(f"{name} of unknown items")
    if name.endswith("_update") or name in ("discard", "remove", "pop", "clear"):
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
    if isinstance(receiver.single(), Weight) and not name.endswith("_") and name not in _NUMBERS:
        return _of_weight(receiver, name, args, kwargs)
    if name in ("split", "chunk", "unbind", "tensor_split"):
        return _parts(machine, receiver, name, args, kwargs)
    if name in ("narrow", "index_select") and (kwargs.get("dim", args[0] if args else None)) != 0:
        return machine.opaque(f"the tensor method {name} may choose features", site)
    if name in _KEEPING:
        return receiver
    if name in _NUMBERS:
        return Unknown(f"{name} of a tensor")
    if name == "copy_" and args and isinstance(whole(args[0]), Tensor):
        return machine.overwrite(receiver, whole(args[0]))
    if name.endswith("_") and not name.endswith("__") and name != "requires_grad_":
        why = f"the tensor method {name} changes it in a way that is not followed"
        return machine.overwrite(receiver, machine.opaque(why, site))
    if carries_stream(machine, receiver) and machine.layer != -1:
        return machine.opaque(f"the tensor method {name} is not followed", site)
    return machine.branch(f"tensor.{name}")


def _of_weight(weight: Tensor, name: str, args: _Args, kwargs: dict[str, Any]) -> Any:
    """What a method makes of a weight: the weight, or as many parts of it as are asked for."""
    if name not in ("split", "chunk", "unbind", "tensor_split", "split_with_sizes"):
        return weight
    size = (
        args[0] if args else next((kwargs[key] for key in ("split_size", "split_sizes", "chunks") if key in kwargs), 0)
    )
    if isinstance(size, list | tuple) and name in ("split", "split_with_sizes"):
        return (weight,) * len(size)
    if name == "chunk" and isinstance(size, int):
        return (weight,) * size
    return Unknown(f"the parts of a weight after {name}")


def _parts(machine: Machine, tensor: Tensor, name: str, args: _Args, kwargs: dict[str, Any]) -> Any:
    """The parts of a tensor: of a concatenation of states, those; of a branch, branches."""
    term = tensor.single()
    size = kwargs.get("split_size", args[0] if args else None)
    axis = kwargs.get("dim", args[1] if len(args) > 1 else 0)
    if name == "split" and isinstance(term, Cat) and size == Dim(1) and axis == -1:
        return term.parts
    if carries_stream(machine, tensor) or isinstance(term, Cat):
        return Unknown(f"the parts of a tensor after {name}")
    return machine.branch(f"tensor.{name}")
