"""torch's modules: their children, and the ways other than assignment in which an attribute is set."""

from __future__ import annotations

import re
from typing import Any

from eaglelint.source.assign import set_attribute
from eaglelint.source.lookup import MISSING, class_mro, get_attribute, is_module
from eaglelint.source.machine import Machine
from eaglelint.source.slices import Site
from eaglelint.source.values import ClassValue, Frame, Instance, Unknown

__all__ = ["assigned_along", "assigned_in_init", "call_module_method"]


def call_module_method(
    machine: Machine,
    module: Instance,
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    site: Site | None,
    caller: Frame | None,
) -> Any:
    """A method that ``torch.nn.Module`` gives to all modules (``MODULE_METHODS``)."""
    if name in ("children", "named_children"):
        found = _children(machine, module)
        return machine.heap.born(list(found.items()) if name == "named_children" else list(found.values()))
    value = (
        args[1]
        if len(args) > 1
        else next((kwargs[key] for key in ("tensor", "param", "module") if key in kwargs), None)
    )
    attribute = args[0] if args else kwargs.get("name")
    if isinstance(attribute, str) and site is not None:
        set_attribute(machine, module, attribute, value, site, caller)
    return None


_ASSIGNED = re.compile(r"\bself\.(\w+)\s*(?::[^=\n]+)?=(?!=)")


def _children(machine: Machine, module: Instance) -> dict[str, Any]:
    """The modules among what ``__init__`` assigns, in order; what is not known may be one."""
    assert module.cls is not None
    values = {name: get_attribute(machine, module, name) for name in assigned_along(machine, module.cls)}
    return {
        name: v for name, v in values.items() if v is not MISSING and (is_module(machine, v) or isinstance(v, Unknown))
    }


def assigned_along(machine: Machine, cls: ClassValue) -> list[str]:
    """The attributes that ``__init__`` assigns along the bases, in order."""
    names: dict[str, None] = {}
    for entry in reversed(class_mro(machine, cls)):
        if isinstance(entry, ClassValue):
            names |= dict.fromkeys(assigned_in_init(entry))
    return list(names)


def assigned_in_init(cls: ClassValue) -> list[str]:
    """The attributes that the text of a class's own ``__init__`` assigns, in order."""
    info = cls.info.methods.get("__init__")
    return [] if info is None else _ASSIGNED.findall(cls.module.text(info.line, info.end_line))
