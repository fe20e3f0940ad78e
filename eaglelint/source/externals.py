"""Functions from outside the sources: torch's and numpy's that join, keep or save tensors, and Python's helpers."""

from __future__ import annotations

import bisect
import math
from typing import Any

from eaglelint.source.builtins import BUILTINS
from eaglelint.source.expressions import iterate
from eaglelint.source.lookup import opaque_layers
from eaglelint.source.machine import Machine
from eaglelint.source.operators import normed, whole
from eaglelint.source.patterns import call_re
from eaglelint.source.slices import Site
from eaglelint.source.streams import tensors_in, tensors_of
from eaglelint.source.unfollowed import not_followed
from eaglelint.source.values import (
    Cat,
    Dim,
    Frame,
    Instance,
    Iteration,
    ModuleHook,
    ModuleItems,
    Opaque,
    Partial,
    Tensor,
    TensorBuffer,
    Unknown,
    Weight,
)

__all__ = ["call_external"]

_Args = tuple[Any, ...]

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
_ALLOCATE = frozenset(["torch.empty", "torch.zeros", "torch.ones"])
_STACK = frozenset(["torch.stack", "numpy.stack"])
_SAVE = frozenset(
    ["torch.save", "safetensors.torch.save_file", "pickle.dump", "numpy.save", "numpy.savez", "save_file"]
)

_FIELDS = frozenset(["dataclasses.field", "pydantic.Field", "pydantic.fields.Field", "msgspec.field"])
_BISECT = {f"bisect.{find.__name__}": find for find in (bisect.bisect, bisect.bisect_left, bisect.bisect_right)}


def call_external(
    machine: Machine, name: str, args: _Args, kwargs: dict[str, Any], site: Site | None, caller: Frame | None
) -> Any:
    """A function from outside the sources."""
    if name.startswith("builtins."):
        handler = BUILTINS.get(name[9:])
        if handler is not None:
            return handler(machine, args, kwargs, site, caller)
        if name[9:].endswith(("Error", "Exception")):
            return Unknown("an exception")
    if name == "intrinsic.unread":
        return machine.opaque("a stage that updates the stream in a way of its own", site)
    if name == "intrinsic.branch":
        return machine.branch(args[0])
    if name == "intrinsic.given":
        return args[0]
    if name == "intrinsic.decoder_layers":
        return opaque_layers(machine)
    if name == "intrinsic.normed":
        return (
            normed(machine, whole(args[0]))
            if isinstance(whole(args[0]), Tensor)
            else machine.opaque("the norm of an unknown value", site)
        )
    short = name.rsplit(".", 1)[-1]
    if name in _CAT:
        return _cat(machine, args, kwargs, site)
    if name in _ALLOCATE and _width(args, kwargs) is not None:
        buffer = TensorBuffer(site=site)
        machine.heap.born(buffer.writes)
        return buffer
    if name in _STACK:
        return _stack(machine, iterate(machine, args[0], site) if args and site else None, site)
    if name in _SAVE or (short in ("save", "save_file") and tensors_in(args)):
        if site is not None:
            data = [arg for arg in args if not isinstance(arg, str | Unknown)]  # numpy.save takes the path first
            machine.record("save", name, data[0] if data else kwargs, site)
        return None
    if name in ("os.getenv", "os.environ.get"):
        return _environment_variable(machine, args, kwargs)
    if name == "torch.nn.functional.dropout" and args and (kwargs.get("training") is False or args[2:3] == (False,)):
        return args[0]
    if name == "torch.clone" and args and isinstance(whole(args[0]), Tensor):
        return Tensor(whole(args[0]).terms, whole(args[0]).site)
    if name in _KEEPING_FUNCTIONS:
        return whole(args[0]) if args else Unknown(name)
    if name.startswith("re."):
        return call_re(machine, name, args, kwargs, site)
    if short == "partial" and name.startswith("functools"):
        return Partial(args[0], args[1:], kwargs) if args else Unknown(name)
    if short == "islice":
        return _islice(machine, args, site)
    if short == "ModuleList":
        return _module_list(machine, args, site)
    if short == "ModuleDict":
        return _module_dict(BUILTINS["dict"](machine, args, kwargs, site, caller))
    if name in ("copy.copy", "copy.deepcopy"):
        return _copy(machine, args[0], deep=name == "copy.deepcopy") if args else Unknown(name)
    if name in _FIELDS:
        return _default(machine, args, kwargs, site)
    if short in ("nullcontext", "no_grad", "inference_mode"):
        return Unknown(short)
    if short == "register_module_module_registration_hook" and args:
        return ModuleHook(args[0])
    if short in ("WeakKeyDictionary", "WeakValueDictionary", "OrderedDict"):
        return BUILTINS["dict"](machine, args, kwargs, site, caller)
    if short == "cast" and name.startswith("typing") and len(args) == 2:
        return args[1]
    if name in _BISECT and len(args) == 2 and isinstance(args[0], list | tuple):
        try:
            return _BISECT[name](args[0], args[1])
        except TypeError:
            return Unknown(name)
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
    if not tensors_of(args, kwargs) and (short[:1].isupper() or name.startswith("torch.nn.")):
        # An object of an outside class: a module, a config, a lock.
        made = (*machine.calls, *((site,) if site is not None else ()))
        return machine.new_instance(Instance(None, args, kwargs, name=short, made=made))
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


def _default(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    """What a field of a class holds that was given no value."""
    from eaglelint.source.calls import call_value

    if "default_factory" in kwargs:
        return call_value(machine, kwargs["default_factory"], (), {}, site)
    return kwargs.get("default", args[0] if args else Unknown("a field without a default"))


def _stack(machine: Machine, items: list[Any] | None, site: Site | None) -> Any:
    """States in a row, as a list; inside a layer, a tensor that is some function of them."""
    if items is None:
        return Tensor.of(Opaque("a stack of unknown tensors", site))
    return machine.branch("torch.stack") if machine.in_layer else machine.heap.born(items)


def _environment_variable(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A variable that was assumed to be set, or the default of one that was not."""
    default = args[1] if len(args) > 1 else kwargs.get("default")
    environment = machine.deployment.environment
    if not environment:
        machine.used_assumptions.add("no environment variable set (env:NAME=VALUE)")
        return default
    name = args[0] if args else kwargs.get("key")
    if not isinstance(name, str):
        return Unknown("an environment variable whose name is not known")
    machine.used_assumptions.add("no other environment variable set")
    return environment.get(name, default)


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
    if (isinstance(axis, int) and axis in (-1, 1, 2)) or all(isinstance(part.single(), Weight) for part in parts):
        result = Tensor.of(Cat(parts))
        if site is not None:
            machine.record("cat", "", result, site)
        return result
    if len(parts) == 1:
        return parts[0]
    return Tensor.of(Opaque("a concatenation along another axis than the features", site))


def _width(args: _Args, kwargs: dict[str, Any]) -> Dim | None:
    """The width of a tensor that is allocated, where it is one of hidden states: the last number of its shape."""
    shape = kwargs.get("size", args[0] if len(args) == 1 else args)
    last = shape[-1] if isinstance(shape, list | tuple) and shape else None
    return last if isinstance(last, Dim) else None


def _islice(machine: Machine, args: _Args, site: Site | None) -> Any:
    items = iterate(machine, args[0], site) if args and site else None
    bounds = args[1:]
    if items is None or not all(bound is None or isinstance(bound, int) for bound in bounds):
        return Unknown("a slice of an iteration that is not known")
    return machine.heap.born(Iteration(items[slice(*bounds)]))


def _module_dict(modules: Any) -> Any:
    """Modules by name, in order."""
    from eaglelint.source.layers import adopt_layers

    if isinstance(modules, dict):
        adopt_layers(list(modules.values()))
    return modules


def _module_list(machine: Machine, args: _Args, site: Site | None) -> Any:
    from eaglelint.source.layers import adopt_layers

    items = iterate(machine, args[0], site) if args and site else ([] if not args else None)
    if items is None:
        return Unknown("a list of modules that is not known")
    modules = machine.heap.born(ModuleItems(items))
    adopt_layers(modules)
    return modules
