"""What a name or an attribute stands for: modules, classes and their bases, objects and what ``__init__`` gave them.

Objects are not constructed. When an attribute is read that nothing has set, the statements of ``__init__`` that lead
to it are cut out and run (prune.py); so a model of a thousand lines costs no more than the attributes it is asked for.
"""

from __future__ import annotations

import builtins
import re
from functools import lru_cache
from typing import Any

from eaglelint.source.index import ClassInfo, FunctionInfo, Import
from eaglelint.source.machine import Machine, Raised, TooLong
from eaglelint.source.slices import Site, Slice
from eaglelint.source.tree import Binding, SourceModule
from eaglelint.source.values import (
    BoundMethod,
    BuiltinMethod,
    ClassValue,
    Collector,
    Dim,
    Env,
    External,
    Frame,
    Function,
    Instance,
    LayerOutput,
    ModuleItems,
    ModuleValue,
    Partial,
    SuperValue,
    Tensor,
    TensorBuffer,
    TensorView,
    Unknown,
    Weight,
)

__all__ = [
    "MISSING",
    "class_attribute",
    "class_mro",
    "find_method",
    "find_setter",
    "get_attribute",
    "global_value",
    "import_value",
    "is_module",
    "is_subclass",
]

MISSING = object()

_INTRINSICS = ("branch", "decoder_layers", "normed", "unread")  # what summaries may call
_MODULE_METHODS = frozenset(
    ["register_buffer", "register_parameter", "register_module", "add_module", "children", "named_children"]
)
# What else torch.nn.Module (torch 2.9) gives to every module: there, and not looked into.
_MODULE_NAMES = frozenset(
    [
        "parameters",
        "named_parameters",
        "buffers",
        "named_buffers",
        "modules",
        "named_modules",
        "state_dict",
        "load_state_dict",
        "train",
        "eval",
        "training",
        "requires_grad_",
        "zero_grad",
        "to",
        "to_empty",
        "cpu",
        "cuda",
        "xpu",
        "half",
        "float",
        "double",
        "bfloat16",
        "type",
        "apply",
        "share_memory",
        "get_submodule",
        "set_submodule",
        "get_parameter",
        "get_buffer",
        "register_forward_hook",
        "register_forward_pre_hook",
        "register_full_backward_hook",
        "register_load_state_dict_post_hook",
        "extra_repr",
        "compile",
        "_parameters",
        "_buffers",
        "_modules",
        "_load_from_state_dict",
        "_get_name",
        "_apply",
    ]
)
_LAYER_LISTS = ("layers", "h", "blocks")
_SEQUENCES = ("list", "List", "ModuleList", "torch.nn.ModuleList", "torch.nn.modules.container.ModuleList")


# --- names ---------------------------------------------------------------------------------------------------------


def global_value(machine: Machine, module: SourceModule, name: str, *, stub: bool = False) -> Any:
    """The value of a global or built-in name as seen from a module."""
    key = (module.name, name)
    known = machine.globals.get(key, MISSING)
    if known is not MISSING:
        return known
    if name in module.index.alternatives:
        from eaglelint.source.alternatives import chosen_import

        found = chosen_import(machine, module, name)
        if found is not None:
            machine.globals[key] = import_value(machine, module, found)
            return machine.globals[key]
    bound = machine.tree.resolve(module, name)
    if bound is None and stub and name in _INTRINSICS:
        return External(f"intrinsic.{name}")
    value = External(f"builtins.{name}") if bound is None else _bound_value(machine, bound, name)
    machine.globals[key] = value
    return value


def import_value(machine: Machine, module: SourceModule, found: Import) -> Any:
    """What an import statement inside a function brings in."""
    source = machine.tree.module(module.absolute(found)) if found.attribute is not None else None
    if source is not None and found.attribute in source.index.alternatives:
        return global_value(machine, source, found.attribute or "")
    bound = machine.tree.resolve_import(module, found)
    return (
        Unknown(f"{found.attribute} cannot be imported")
        if bound is None
        else _bound_value(machine, bound, found.attribute or "")
    )


def _bound_value(machine: Machine, bound: Binding | str, name: str) -> Any:
    if isinstance(bound, str):
        return False if bound.endswith("typing.TYPE_CHECKING") else External(bound)
    match bound.item:
        case None:
            return ModuleValue(bound.module)
        case ClassInfo():
            return ClassValue(bound.module, bound.item)
        case FunctionInfo():
            return Function(bound.module, bound.item)
        case (line, end_line):
            return _module_variable(machine, bound.module, bound.name or name, line, end_line)


def _module_variable(machine: Machine, module: SourceModule, name: str, line: int, end_line: int) -> Any:
    key = (module.name, name)
    machine.globals[key] = Unknown(f"{name} is computed at import time")  # a circle ends here
    if machine.module_variable is not None:
        machine.globals[key] = machine.module_variable(module, name)
        return machine.globals[key]
    try:
        pieces = [module.slice(*lines) for lines in module.index.changes.get(name, [(line, end_line)])]
    except SyntaxError:
        return machine.globals[key]
    mark = machine.heap.mark()
    try:
        outcomes = machine.within(
            machine.budget.attribute_steps,
            lambda: machine.explore(lambda: _variable_after(machine, module, pieces, name), None),
        )
    except TooLong:
        if machine.steps > machine.soft_limit:
            raise
        return machine.globals[key]
    # A module variable that depends on an unknown condition is unknown: platform tests, optional imports.
    value = outcomes[0].value
    if value is None and name in module.rebound:
        value = Unknown(f"{name} is set at run time", present=True)  # None is only its place until then
    if isinstance(value, Instance):
        value.shared = True
    machine.keep((value,), mark, key)
    machine.heap.world.hold(value)
    machine.globals[key] = (
        value if len(outcomes) == 1 and outcomes[0].raised is None else Unknown(f"{name} depends on the platform")
    )
    return machine.globals[key]


def _variable_after(
    machine: Machine, module: SourceModule, pieces: list[Slice], name: str, others: dict[str, Any] | None = None
) -> Any:
    """Run the statements that set and change a variable, from fresh on each path, and give what it is then."""
    from eaglelint.source.statements import run_block

    env = Env(dict(others or {}))
    for piece in pieces:
        run_block(machine, piece.body, Frame(piece, module, env, function=module.name))
    return env.variables.get(name, Unknown(f"{name} is computed at import time"))


# --- classes -------------------------------------------------------------------------------------------------------


class Lineage(list["ClassValue | str"]):
    """A class and its bases in order. ``found`` is what was looked up along them; ``key`` tells them from others.

    ``asked`` are the names that any run has looked up along them.
    """

    __slots__ = ("asked", "found", "key")

    def __init__(self, entries: list[ClassValue | str], asked: set[str]) -> None:
        super().__init__(entries)
        self.asked = asked
        self.key = tuple(entry if isinstance(entry, str) else entry.info for entry in entries)
        self.found: dict[tuple[str, str], Any] = {}


def class_mro(machine: Machine, cls: ClassValue) -> Lineage:
    """The class, its bases, their bases: Python's order, bases outside the sources as dotted names."""
    key = ("mro", cls.info)
    cached = machine.memo.get(key)
    if cached is not None:
        return cached  # type: ignore[no-any-return]
    asked = machine.tree.asked.setdefault(cls.info, set())
    machine.memo[key] = Lineage([cls], asked)  # a circle ends here
    sequences: list[list[ClassValue | str]] = []
    direct: list[ClassValue | str] = []
    for base in cls.info.bases:
        if base == cls.info.name and cls.info.shadowed is not None:
            value = import_value(machine, cls.module, cls.info.shadowed)
        else:
            value = _dotted(machine, cls.module, base)
        entry: ClassValue | str = value if isinstance(value, ClassValue) else getattr(value, "name", base)
        direct.append(entry)
        sequences.append(list(class_mro(machine, entry)) if isinstance(entry, ClassValue) else [entry])
    merged = machine.memo[key] = Lineage([cls, *_merge([*sequences, direct])], asked)
    return merged


def _merge(sequences: list[list[ClassValue | str]]) -> list[ClassValue | str]:
    """C3 linearisation; where there is none (the sources are taken as they are), first come first."""
    result: list[ClassValue | str] = []
    pending = [list(sequence) for sequence in sequences if sequence]
    while pending:
        head = next(
            (s[0] for s in pending if not any(_same_class(s[0], other) for rest in pending for other in rest[1:])),
            pending[0][0],
        )
        result.append(head)
        pending = [[entry for entry in s if not _same_class(entry, head)] for s in pending]
        pending = [s for s in pending if s]
    return result


def _same_class(left: ClassValue | str, right: ClassValue | str) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        return left == right
    return left.info is right.info


def _dotted(machine: Machine, module: SourceModule, dotted: str) -> Any:
    value = None
    for index, part in enumerate(dotted.split(".")):
        value = global_value(machine, module, part) if index == 0 else get_attribute(machine, value, part)
        if value is MISSING:
            return External(dotted)
    return value


def is_subclass(machine: Machine, cls: ClassValue, other: Any) -> bool | None:
    """Whether a class is another or inherits from it; None where bases outside the sources might decide it."""
    mro = class_mro(machine, cls)
    if isinstance(other, ClassValue):
        return any(isinstance(entry, ClassValue) and entry.info is other.info for entry in mro)
    if isinstance(other, External):
        names = {entry for entry in mro if isinstance(entry, str)}
        if other.name in names or other.name.removeprefix("builtins.") in names:
            return True
        if other.name.startswith("builtins.") or all(map(_is_plain_base, names)):
            return False
    return None


def _is_plain_base(name: str) -> bool:
    """Whether a base outside the sources is known: a built-in type, torch's Module, a protocol; none is a tensor."""
    bare = name.removeprefix("builtins.")
    return bare in ("torch.nn.Module", "typing.Protocol", "Protocol") or isinstance(getattr(builtins, bare, None), type)


def find_method(machine: Machine, cls: ClassValue, name: str, after: ClassValue | None = None) -> Function | None:
    """The method of that name along the bases; with ``after``, the next one behind that class, as ``super()`` does."""
    mro = class_mro(machine, cls)
    if after is not None:
        positions = [i for i, entry in enumerate(mro) if isinstance(entry, ClassValue) and entry.info is after.info]
        return _method(mro[positions[-1] + 1 :] if positions else [], name)  # the last: it may seem to be its own base
    key = ("method", name)
    if key not in mro.found:
        mro.asked.add(name)
        mro.found[key] = _method(mro, name)
    return mro.found[key]  # type: ignore[no-any-return]


def _method(entries: list[ClassValue | str], name: str) -> Function | None:
    for entry in entries:
        if isinstance(entry, ClassValue) and name in entry.info.methods:
            return Function(entry.module, entry.info.methods[name], entry)
    return None


def find_setter(machine: Machine, cls: ClassValue, name: str) -> Function | None:
    """The setter of a property of that name, along the bases."""
    mro = class_mro(machine, cls)
    key = ("setter", name)
    if key not in mro.found:
        mro.asked.add(name)
        owners = [entry for entry in mro if isinstance(entry, ClassValue) and name in entry.info.setters]
        mro.found[key] = Function(owners[0].module, owners[0].info.setters[name], owners[0]) if owners else None
    return mro.found[key]  # type: ignore[no-any-return]


def is_module(machine: Machine, value: Any) -> bool:
    """Whether a value is an object of one of torch's modules, as far as it is known."""
    if isinstance(value, ModuleItems):
        return True
    if not isinstance(value, Instance) or value.cls is None:
        return False
    bases = (entry for entry in class_mro(machine, value.cls) if isinstance(entry, str))
    return any(base.startswith(("torch.nn", "nn.")) for base in bases)


def list_payload(machine: Machine, cls: ClassValue) -> bool:
    mro = class_mro(machine, cls)
    key = ("list", "")
    if key not in mro.found:
        outside = (entry.removeprefix("builtins.").split("[")[0] for entry in mro if isinstance(entry, str))
        mro.found[key] = any(name in _SEQUENCES for name in outside)
    return bool(mro.found[key])


# --- attributes ----------------------------------------------------------------------------------------------------


def get_attribute(machine: Machine, receiver: Any, name: str, site: Site | None = None) -> Any:
    """``receiver.name``; MISSING where Python would raise AttributeError."""
    kind = type(receiver)
    if kind is Instance:
        return _instance_attribute(machine, receiver, name)
    if kind is Unknown:
        return _unknown_attribute(machine, receiver, name)
    if kind is Collector:
        from eaglelint.source.collectors import attribute_of

        return attribute_of(machine, receiver, name)
    match receiver:
        case External():
            return External(f"{receiver.name}.{name}") if receiver.name != "builtins" else External(name)
        case ModuleValue():
            bound = machine.tree.resolve(receiver.module, name)
            if bound is None:
                submodule = machine.tree.module(f"{receiver.module.name}.{name}")
                if submodule is not None:
                    return ModuleValue(submodule)
                known = machine.assumed(name)
                return _assume(machine, known) if known else _made_by_module(machine, receiver.module, name)
            return global_value(machine, receiver.module, name)
        case ClassValue():
            if name in ("__name__", "__qualname__"):
                return receiver.info.name
            found = class_attribute(machine, receiver, name, None)
            return _outside(machine, receiver, name, MISSING) if found is MISSING else found
        case SuperValue():
            method = (
                find_method(machine, _class_of(receiver.receiver), name, receiver.after) if receiver.receiver else None
            )
            if method is None and name == "__setattr__":
                return Partial(External("builtins.object.__setattr__"), (receiver.receiver,), {})
            return BoundMethod(method, receiver.receiver) if method else External(f"super.{name}")
        case Tensor() if name == "dtype":
            machine.used_assumptions.add("bfloat16 weights")
            return External("torch.bfloat16")
        case Tensor() | TensorBuffer() | TensorView():
            return _tensor_attribute(machine, receiver, name)
        case LayerOutput():  # who asks a layer's result for a tensor's attribute uses it whole
            return _tensor_attribute(machine, receiver.whole, name)
        case list() | tuple() | dict() | set() | frozenset() | str() | range():
            return BuiltinMethod(receiver, name) if hasattr(receiver, name) else MISSING
        case BoundMethod() | Function() | Partial():
            return Unknown(f"an attribute of a function, {name}")
        case None:
            return MISSING
        case bool() | int() | float():
            return External(f"number.{name}") if hasattr(receiver, name) else MISSING
    return _unknown_attribute(machine, receiver, name)


def _unknown_attribute(machine: Machine, receiver: Any, name: str) -> Any:
    known = machine.assumed(name)
    if known is not None and not callable(known.value):
        return _assume(machine, known)
    if name in _LAYER_LISTS and machine.num_layers:
        return opaque_layers(machine)
    key = f"{receiver.key}.{name}" if isinstance(receiver, Unknown) and receiver.key else ""
    of = key if isinstance(receiver, Unknown) and receiver.of == receiver.key else ""
    return _outside(machine, receiver, name, Unknown(f"{name} of something that is not known", key=key, of=of))


def _made_by_module(machine: Machine, module: SourceModule, name: str) -> Any:
    """What a module's own ``__getattr__`` gives for a name that it does not define (PEP 562)."""
    from eaglelint.source.calls import call_value

    maker = module.index.functions.get("__getattr__")
    if maker is None or name.startswith("__"):
        return Unknown(f"{module.name}.{name}")
    try:
        return call_value(machine, Function(module, maker), (name,), {}, None)
    except Raised:
        return Unknown(f"{module.name}.{name}")


def _outside(machine: Machine, receiver: Any, name: str, default: Any) -> Any:
    """An attribute that nothing among the sources sets: what the caller of this run knows of it."""
    found = machine.outside(receiver, name) if machine.outside is not None else MISSING
    return default if found is MISSING else found


def opaque_layers(machine: Machine) -> list[Any]:
    """The decoder layers of a model whose source is not among the files: N of them, each adding to the stream."""
    if "opaque layers" not in machine.memo:
        layers: list[Any] = []
        for index in range(machine.num_layers or 0):
            layers.append(Instance(None, name="decoder layer", layer=index, siblings=layers))
        machine.memo["opaque layers"] = layers
    return machine.memo["opaque layers"]  # type: ignore[no-any-return]


def _assume(machine: Machine, assumption: Any) -> Any:
    machine.used_assumptions.add(assumption.text)
    return assumption.value


def _class_of(receiver: Any) -> ClassValue:
    return receiver.cls if isinstance(receiver, Instance) and receiver.cls is not None else receiver


def _tensor_attribute(machine: Machine, receiver: Any, name: str) -> Any:
    if name == "shape" and isinstance(receiver, Tensor) and isinstance(receiver.single(), Weight):
        return Unknown("the shape of a weight")
    if name in ("shape",) and isinstance(receiver, Tensor):
        return Instance(None, name="shape", attrs={"of": receiver}, payload=(*machine.leading, Dim(1)))
    if name in ("T", "mT", "data") and isinstance(receiver, Tensor):
        return receiver
    if name.startswith("_") and isinstance(receiver, Tensor):
        return MISSING
    if name in ("device", "dtype", "ndim", "is_cuda", "grad", "itemsize", "layout"):
        return Unknown(f"the {name} of a tensor")
    return BuiltinMethod(receiver, name)


def _instance_attribute(machine: Machine, instance: Instance, name: str) -> Any:
    if instance.building:
        for built in reversed(instance.building):
            if name in built:
                return built[name]
        if instance.cls is not None:
            found = _value_in_init(machine, instance, name)
            if found is not MISSING:
                return found
    if name in machine.unasked and not machine.initialising:
        return Unknown(f"{name} of {instance.name}", present=True)
    if name in instance.attrs:
        if machine.lists and instance.cls is not None and (instance.cls.info.name, name) in machine.lists:
            machine.lists[instance.cls.info.name, name] = True
        return machine.read_attribute(instance.attrs, name)
    if name in instance.lazy:
        return instance.lazy[name]
    if instance.cls is not None:
        method = None if machine.patches else _plain_method(machine, instance.cls, name)
        if method is not None:
            return BoundMethod(method, instance)
        found = construct.initial_attribute(machine, instance, name)
        if found is MISSING:
            found = class_attribute(machine, instance.cls, name, instance)
        if found is not MISSING:
            return _held_by_module(machine, found, name) if instance.shared else found
    if name in _MODULE_METHODS and is_module(machine, instance):
        return BuiltinMethod(instance, name)
    known = machine.assumed(name)
    if name in _MODULE_NAMES and known is None and is_module(machine, instance):
        return Unknown(f"{name} of a module", present=True)
    if instance.payload is not None and hasattr(instance.payload, name):
        return BuiltinMethod(instance.payload, name)
    if name == "__class__" and instance.cls is not None:
        return instance.cls
    if known is not None:
        return _assume(machine, known)
    if instance.closed:
        return MISSING
    if instance.cls is not None:
        default = (
            MISSING if _fully_known(machine, instance.cls, name) else Unknown(f"{name} of {instance.cls.info.name}")
        )
        return _outside(machine, instance, name, default)
    if name in _LAYER_LISTS and machine.num_layers and instance.layer is None and instance.name == "model":
        return opaque_layers(machine)
    key = f"{instance.name}.{name}" if instance.is_config else ""
    unknown = Unknown(f"{name} of {instance.name or 'something that is not known'}", key=key, of=key)
    return _outside(machine, instance, name, unknown)


def _plain_method(machine: Machine, cls: ClassValue, name: str) -> Function | None:
    """The method that an object of a class has under a name whatever its ``__init__`` does, if there is one."""
    mro = class_mro(machine, cls)
    key = ("plain method", name)
    if key not in mro.found:
        method = find_method(machine, cls, name)
        first = next((entry for entry in mro if isinstance(entry, ClassValue) and _has_member(entry, name)), None)
        plain = (
            method is not None
            and method.owner is first
            and not _kind_of_method(method.info.decorators)
            and construct.is_never_set(machine, cls, name)
        )
        mro.found[key] = method if plain else None
    return mro.found[key]  # type: ignore[no-any-return]


def _value_in_init(machine: Machine, instance: Instance, name: str) -> Any:
    """What ``__init__`` itself sees in an attribute, whatever was set since; the same object, so that it is shared."""
    found = instance.lazy.get(name, MISSING)
    if found is MISSING and name not in instance.attrs:
        return MISSING
    if found is MISSING:
        found = construct.initial_attribute(machine, instance, name)
    if found is not MISSING and not construct.is_as_made(machine, found):
        return Unknown(f"{name} was changed since __init__")
    return found


def _held_by_module(machine: Machine, found: Any, name: str) -> Any:
    """An attribute of an object that a module holds: None is only its place until it is set at run time."""
    if isinstance(found, Instance):
        found.shared = True
    machine.heap.world.hold(found)
    return Unknown(f"{name} is set at run time", present=True) if found is None else found


_HARMLESS = re.compile(
    r"(?:builtins\.)?(?:object|list|dict|ABC)|(?:torch\.)?nn\.Module|torch\.nn\.modules\.module\.Module"
    r"|abc\.ABC|(?:typing(?:_extensions)?\.)?(?:Protocol|Generic)"
)
_DYNAMIC = re.compile(r"__getattr__|__dict__|__set_name__")
# A buffer, a parameter or a module that is registered is an attribute from then on.
_REGISTERED = re.compile(r"\b(?:register_(?:buffer|parameter|module)|add_module)\(\s*[\"'](\w+)[\"']")
# An attribute that is set by name, but not on a plain variable: that is another object.
_SET_BY_NAME = re.compile(r"\bsetattr\((?!\s*(?!self\b|cls\b)\w+\s*,)\s*(?:[\w.\[\]]+\s*,\s*[\"'](\w+)[\"'])?")


def _fully_known(machine: Machine, cls: ClassValue, name: str) -> bool:
    """Whether every base that could hold an attribute is among the sources, and none may set that one by name."""
    key = ("set by name", cls.module.name, cls.info.name)
    if key not in machine.memo:
        sets: set[str] | None = set()
        for entry in class_mro(machine, cls):
            found = None
            if isinstance(entry, str):
                found = frozenset[str]() if _HARMLESS.fullmatch(entry) else None
            else:
                found = _set_by_name(entry.module.text(entry.info.line, entry.info.end_line))
            sets = None if sets is None or found is None else sets | found
        machine.memo[key] = (sets,)
    names = machine.memo[key][0]
    return names is not None and name not in names


@lru_cache(maxsize=4096)
def _set_by_name(text: str) -> frozenset[str] | None:
    """The attributes that a class sets by a literal name; None where it may set any."""
    names = _SET_BY_NAME.findall(text) + _REGISTERED.findall(text)
    return None if "" in names or _DYNAMIC.search(text) else frozenset(names)


def class_attribute(machine: Machine, cls: ClassValue, name: str, receiver: Instance | None) -> Any:
    """What a class or one of its bases defines under a name, as its instance gets it; MISSING where none does."""
    mro = class_mro(machine, cls)
    key = ("member", name)
    if key not in mro.found:
        mro.asked.add(name)
        owners = [entry for entry in mro if isinstance(entry, ClassValue) and _has_member(entry, name)]
        mro.found[key] = owners[0] if owners else None
    owner: ClassValue | None = mro.found[key]
    if machine.patches:
        patched = _patched(machine, mro, name, owner)
        if patched is not MISSING:
            bound = receiver is not None and isinstance(patched, Function)
            return BoundMethod(patched, receiver) if bound else patched
    if owner is None:
        return MISSING
    method = find_method(machine, cls, name)
    if method is not None and method.owner is owner:
        return _bind(machine, method, cls, receiver)
    line, end_line = owner.info.assignments[name]
    value = _class_variable(machine, owner, name, line, end_line)
    return BoundMethod(value, receiver) if receiver is not None and isinstance(value, Function) else value


def _patched(machine: Machine, mro: Lineage, name: str, owner: ClassValue | None) -> Any:
    """What was set on a class or one of its bases from outside, as far as the one that defines the name."""
    for entry in mro:
        if isinstance(entry, ClassValue) and (entry.info.name, name) in machine.patches:
            return machine.patches[entry.info.name, name]
        if entry is owner:
            break
    return MISSING


def _has_member(cls: ClassValue, name: str) -> bool:
    return name in cls.info.methods or name in cls.info.assignments


def _bind(machine: Machine, method: Function, cls: ClassValue, receiver: Instance | None) -> Any:
    kind = _kind_of_method(method.info.decorators)
    if kind == "static":
        return method
    if kind == "class":
        return BoundMethod(method, cls)
    if receiver is None:
        return method
    if kind == "property":
        from eaglelint.source.calls import call_value

        return call_value(machine, BoundMethod(method, receiver), (), {}, None)
    return BoundMethod(method, receiver)


@lru_cache(maxsize=1024)
def _kind_of_method(decorators: tuple[str, ...]) -> str:
    names = {decorator.rsplit(".", 1)[-1] for decorator in decorators}
    if "staticmethod" in names:
        return "static"
    if "classmethod" in names:
        return "class"
    return "property" if names & {"property", "cached_property"} else ""


def _class_variable(machine: Machine, cls: ClassValue, name: str, line: int, end_line: int) -> Any:
    key = (f"{cls.module.name}:{cls.info.name}", name)
    if key not in machine.globals:
        machine.globals[key] = Unknown(f"{cls.info.name}.{name} is computed when the class is made")
        if _is_enum(machine, cls):
            return _enum_member(machine, cls, name, line, end_line)
        try:
            pieces = [cls.module.slice(*lines) for lines in cls.info.changes.get(name, [(line, end_line)])]
        except SyntaxError:
            return machine.globals[key]
        mark = machine.heap.mark()
        text = "".join(cls.module.text(*lines) for lines in cls.info.changes.get(name, [(line, end_line)]))
        read = [
            other
            for other in dict.fromkeys(re.findall(r"\w+", text))
            if other in cls.info.assignments and other != name
        ]
        others = {other: _class_variable(machine, cls, other, *cls.info.assignments[other]) for other in read}
        outcomes = machine.explore(lambda: _variable_after(machine, cls.module, pieces, name, others), None)
        if len(outcomes) == 1 and outcomes[0].raised is None:
            machine.keep((outcomes[0].value,), mark, key)
            machine.heap.world.hold(outcomes[0].value)
            machine.globals[key] = outcomes[0].value
    return machine.globals[key]


def _enum_member(machine: Machine, cls: ClassValue, name: str, line: int, end_line: int) -> Instance:
    member = Instance(cls, attrs={"name": name}, name=f"{cls.info.name}.{name}", closed=True)
    machine.globals[f"{cls.module.name}:{cls.info.name}", name] = member
    try:
        piece = cls.module.slice(line, end_line)
        outcomes = machine.explore(lambda: _variable_after(machine, cls.module, [piece], name), None)
    except SyntaxError:
        outcomes = []
    known = len(outcomes) == 1 and isinstance(outcomes[0].value, str | int | float)
    member.attrs["value"] = outcomes[0].value if known else Unknown(f"the value of {member.name}")
    return member


def _is_enum(machine: Machine, cls: ClassValue) -> bool:
    return any(
        isinstance(entry, str) and entry.rsplit(".", 1)[-1] in ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag")
        for entry in class_mro(machine, cls)
    )


from eaglelint.source import construct  # noqa: E402 - it imports this file: so it comes last
