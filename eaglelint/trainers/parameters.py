"""The tensors of a training stack's module, by the names of its state dict, from what its ``__init__`` builds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from eaglelint.source.construct import function_node
from eaglelint.source.lookup import MISSING, class_mro, find_method, get_attribute
from eaglelint.source.machine import BudgetExceeded, Machine, Raised
from eaglelint.source.modules import assigned_along
from eaglelint.source.slices import Site
from eaglelint.source.statements import run_block
from eaglelint.source.values import ClassValue, Env, External, Frame, Function, Instance, Partial, Unknown

__all__ = ["Named", "build", "state_of"]

_DEEPEST = 6
# torch.nn: the tensors that a module of its own has. A bias may be switched off, by the third argument of a Linear.
_TENSORS: dict[str, tuple[str, ...]] = {
    "Linear": ("weight", "bias"),
    "Embedding": ("weight",),
    "LayerNorm": ("weight", "bias"),
    "GRU": ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"),
}
_WITHOUT = ("Dropout", "Identity", "ReLU", "SiLU", "GELU", "Sigmoid", "Tanh", "Softmax", "LogSoftmax")


@dataclass(frozen=True, slots=True)
class Named:
    """A parameter or a buffer, or all of a module that is not among the sources (``layers.0.*``).

    ``value`` stands for the parameter; None for a buffer, which is not trained.
    """

    name: str
    value: Instance | None
    site: Site | None = None

    @property
    def trained(self) -> bool | None:
        """Whether training changes it, as far as the code that was run says; None where that is not known."""
        if self.value is None:
            return False
        flag = self.value.attrs.get("requires_grad")
        return flag if isinstance(flag, bool) else None


def build(machine: Machine, model: Instance, prefix: str = "") -> tuple[Named, ...]:
    """The tensors of a module and of those in it, which from here on has ``parameters()``, ``state_dict()`` and so on.

    What it holds besides is not told: attributes that another method sets, say.
    """
    machine.intercepts |= _INTERCEPTS
    found = tuple(_below(machine, model, "", _DEEPEST))
    return tuple(Named(prefix + named.name, named.value, named.site) for named in found)


def state_of(machine: Machine, named: Sequence[Named]) -> dict[str, Any]:
    """A state dict of these tensors, each of which can be told whatever becomes of it."""
    from eaglelint.source.values import Tensor, Weight

    state: dict[str, Any] = machine.heap.born({item.name: Tensor.of(Weight(item.name)) for item in named})
    return state


def _give(machine: Machine, model: Instance, found: Sequence[Named]) -> None:
    parameters = [(named.name, named.value) for named in found if named.value is not None]
    state = state_of(machine, found)
    for method, value in (
        ("state_dict", state),
        ("named_parameters", parameters),
        ("parameters", [value for _, value in parameters]),
    ):
        model.attrs.setdefault(method, Partial(External("parameters.copy"), (value,), {}))


def _below(machine: Machine, value: Any, path: str, deepest: int) -> Iterator[Named]:
    items = value.payload if isinstance(value, Instance) and isinstance(value.payload, list | tuple) else value
    if isinstance(items, list | tuple):
        for index, item in enumerate(items):
            yield from _below(machine, item, f"{path}.{index}", deepest - 1)
    elif isinstance(value, Instance) and value.cls is None:
        yield from _of_outside(machine, value, path)
    elif isinstance(value, Instance) and value.cls is not None and deepest > 0 and _may_hold(machine, value.cls):
        found: list[Named] = []
        for name in dict.fromkeys([*_assigned(machine, value.cls), *value.attrs]):
            found += _below(machine, _attribute(machine, value, name), name, deepest - 1)
        for name in _buffers(machine, value.cls):
            if _attribute(machine, value, name) is not None:
                found.append(Named(name, None))
        _give(machine, value, found)
        _freeze(machine, value, value.cls)
        for named in found:
            yield Named(f"{path}.{named.name}" if path else named.name, named.value, named.site)


def _of_outside(machine: Machine, module: Instance, path: str) -> Iterator[Named]:
    """The tensors of a module of torch's; of one of another package, those of a norm, or a name that stands for all."""
    name, site = module.name.rpartition(".")[2], module.made[-1] if module.made else None
    if name == "Parameter":
        yield Named(path, _parameter(machine, module), site)
        return
    if site is None or not path or name.endswith(("Loss", "Config", *_WITHOUT)) or not name[:1].isupper():
        return
    names = _TENSORS.get(name) or (("weight",) if name.endswith("Norm") else ("*",))
    found = []
    for tensor in names:
        bias = module.kwargs.get("bias", module.args[2] if name == "Linear" and len(module.args) > 2 else True)
        if tensor.startswith("bias") and bias is False:
            continue
        value = module.attrs.get(tensor)
        if not isinstance(value, Instance):
            value = _parameter(machine, machine.new_instance(Instance(None, name="Parameter")))
            module.attrs[tensor] = value
        found.append(Named(tensor, value, site))
    _give(machine, module, found)
    for named in found:
        yield Named(f"{path}.{named.name}", named.value, site)


def _parameter(machine: Machine, value: Instance) -> Instance:
    value.attrs.setdefault("requires_grad", True)
    value.attrs.setdefault("requires_grad_", Partial(External("parameters.require"), (value,), {}))
    return value


def _attribute(machine: Machine, module: Instance, name: str) -> Any:
    try:
        found = get_attribute(machine, module, name)
    except (BudgetExceeded, Raised) as error:
        return Unknown(str(error))
    return None if found is MISSING else found


def _may_hold(machine: Machine, cls: ClassValue) -> bool:
    """Whether a class may be a module: torch's, or one of a base outside of the sources."""
    return any(isinstance(entry, str) and entry.rpartition(".")[2] not in _PLAIN for entry in class_mro(machine, cls))


_PLAIN = ("object", "ABC", "Generic", "Protocol", "dict", "list", "str", "Enum")


_CALLED = re.compile(r"\bself\.(\w+)\(")
_SET = re.compile(r"^\s+self\.(\w+)\s*(?::[^=\n]+)?=(?!=)", re.M)


def _assigned(machine: Machine, cls: ClassValue) -> list[str]:
    """The attributes that ``__init__``, and the methods that it calls, assign along the bases."""
    texts = (text for _, text in _building(machine, cls))
    return list(
        dict.fromkeys([*assigned_along(machine, cls), *(name for text in texts for name in _SET.findall(text))])
    )


def _building(machine: Machine, cls: ClassValue) -> list[tuple[Function, str]]:
    """``__init__`` along the bases, the first one first, and the methods that each calls, with their text."""
    found: dict[tuple[str, int], tuple[Function, str]] = {}
    for entry in reversed(class_mro(machine, cls)):
        start = entry.info.methods.get("__init__") if isinstance(entry, ClassValue) else None
        if start is None or not isinstance(entry, ClassValue):
            continue
        text = entry.module.text(start.line, start.end_line)
        methods = (find_method(machine, cls, called) for called in dict.fromkeys(_CALLED.findall(text)))
        for method in (*methods, Function(entry.module, start, entry)):
            if method is not None:
                place = (method.module.display, method.info.line)
                found[place] = (method, method.module.text(method.info.line, method.info.end_line))
    return list(found.values())


def _freeze(machine: Machine, model: Instance, cls: ClassValue) -> None:
    """Run the statements of the methods that build a module, as far as they say what is trained."""
    for method, text in _building(machine, cls):
        if "requires_grad" not in text:
            continue
        piece, node = function_node(method)
        frame = Frame(piece, method.module, Env({"self": model}), method.info.name, method.owner, model)
        for statement in node.body.body:
            if isinstance(statement, cst.BaseStatement) and "requires_grad" in piece.code(statement):
                run_block(machine, (statement,), frame)


def _buffers(machine: Machine, cls: ClassValue) -> list[str]:
    """The buffers that the methods along the bases register by a literal name, and that a state dict has."""
    names: dict[str, None] = {}
    for entry in reversed(class_mro(machine, cls)):
        for info in entry.info.methods.values() if isinstance(entry, ClassValue) else ():
            if isinstance(entry, ClassValue) and "register_buffer" in entry.module.text(info.line, info.end_line):
                finder = _Registered()
                for statement in entry.module.slice(info.line, info.end_line).body:
                    statement.visit(finder)
                names |= dict.fromkeys(finder.found)
    return list(names)


class _Registered(cst.CSTVisitor):
    def __init__(self) -> None:
        self.found: list[str] = []

    def visit_Call(self, node: cst.Call) -> None:
        if not isinstance(node.func, cst.Attribute) or node.func.attr.value != "register_buffer" or not node.args:
            return
        keywords = {arg.keyword.value: arg.value for arg in node.args if arg.keyword is not None}
        name, persistent = keywords.get("name", node.args[0].value), keywords.get("persistent")
        if len(node.args) > 2 and node.args[2].keyword is None:
            persistent = node.args[2].value
        kept = not (isinstance(persistent, cst.Name) and persistent.value == "False")
        if kept and isinstance(name, cst.SimpleString) and isinstance(name.evaluated_value, str):
            self.found.append(name.evaluated_value)


def _copy(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
    return machine.heap.born(type(args[0])(args[0]))


def _require(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
    machine.heap.set(args[0].attrs, "requires_grad", args[1] if len(args) > 1 else kwargs.get("requires_grad", True))
    return args[0]


_INTERCEPTS = {"parameters.copy": _copy, "parameters.require": _require}
