"""Objects: binding a call's arguments, and the attributes that ``__init__`` would have set."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import libcst as cst

from eaglelint.source.index import FunctionInfo
from eaglelint.source.lookup import MISSING, class_attribute, class_mro, find_method, global_value
from eaglelint.source.machine import Machine, TooLong
from eaglelint.source.prune import INITIALISERS, assigned_attributes, assigns_attribute, prune
from eaglelint.source.slices import Slice
from eaglelint.source.values import ClassValue, Env, Frame, Function, Instance, Unknown

__all__ = [
    "REST",
    "bind_arguments",
    "default_values",
    "function_node",
    "initial_attribute",
    "is_as_made",
    "is_never_set",
    "run_initialiser",
    "sets_attribute",
]


def function_node(function: Function) -> tuple[Slice, cst.FunctionDef]:
    """A function's own slice and its definition in it."""
    module, info = function.module, function.info
    key = ("function", info.line, info.end_line)
    if key not in module.told:
        piece = module.slice(info.line, info.end_line)
        module.told[key] = piece, next(part for part in piece.body if isinstance(part, cst.FunctionDef))
    return module.told[key]  # type: ignore[no-any-return]


REST = "**"  # in a call's keywords: there may be more arguments, which are not known


def default_values(machine: Machine, parameters: cst.Parameters, frame: Frame) -> dict[str, Any]:
    """The defaults of parameters, evaluated here and now."""
    return {
        parameter.name.value: expressions.evaluate(machine, parameter.default, frame)
        for parameter in (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params)
        if parameter.default is not None
    }


_LITERALS = (cst.Integer, cst.Float, cst.SimpleString)


def _default(node: cst.BaseExpression, piece: Slice) -> expressions.Evaluation:
    """What gives a default of a function: a list or dict is made once, and all calls share it."""
    value_of, key = expressions.prepare(node, piece), ("default", id(node))
    if isinstance(node, _LITERALS) or (isinstance(node, cst.Name) and node.value in ("None", "True", "False")):
        return value_of

    def run(machine: Machine, frame: Frame) -> Any:
        if key in machine.memo:
            return machine.memo[key]
        value = value_of(machine, frame)
        if isinstance(value, list | dict | set):
            machine.memo[key] = value
        return value

    return run


def bind_arguments(
    machine: Machine,
    parameters: cst.Parameters,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    frame: Frame,
    defaults: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The parameters' values; what a caller leaves out without a default is unknown.

    Without ``defaults`` a default is evaluated when it is needed: that of a function of a module or class.
    """
    prepared = frame.slice.prepared
    known = prepared.get(id(parameters))
    if known is None:
        known = prepared[id(parameters)] = parameters, _Signature(parameters, frame.slice)
    signature: _Signature = known[1]
    positional = signature.positional
    variables: dict[str, Any] = dict(zip(signature.names, args, strict=False))
    left = dict(kwargs)
    rest = left.pop(REST, None)
    if len(args) < len(positional):
        _bind_left(machine, positional[len(args) :], variables, left, rest, frame, defaults)
    if signature.star is not None:
        variables[signature.star] = args[len(positional) :]
    if signature.by_name:
        _bind_left(machine, signature.by_name, variables, left, rest, frame, defaults)
    if signature.stars is not None:
        variables[signature.stars] = machine.heap.born(left) if rest is None else rest
    return variables


def _bind_left(
    machine: Machine,
    parameters: list[_Parameter],
    variables: dict[str, Any],
    left: dict[str, Any],
    rest: Any,
    frame: Frame,
    defaults: dict[str, Any] | None,
) -> None:
    """Bind the parameters that are not given by their place; what is bound to one is no longer ``left``."""
    for name, default in parameters:
        if name in left:
            variables[name] = left.pop(name)
        elif rest is not None:
            variables[name] = rest
        elif defaults and name in defaults:
            variables[name] = defaults[name]
        elif default is not None:
            variables[name] = default(machine, frame)
        else:
            variables[name] = Unknown(f"the argument {name}")


class _Signature:
    """The parameters of a function, by name: those that may be given by place, with their defaults, and the others."""

    __slots__ = ("by_name", "names", "positional", "star", "stars")

    def __init__(self, parameters: cst.Parameters, piece: Slice) -> None:
        self.positional = _parameters((*parameters.posonly_params, *parameters.params), piece)
        self.names = [name for name, _ in self.positional]
        self.star = parameters.star_arg.name.value if isinstance(parameters.star_arg, cst.Param) else None
        self.by_name = _parameters(parameters.kwonly_params, piece)
        self.stars = parameters.star_kwarg.name.value if parameters.star_kwarg is not None else None


_Parameter = tuple[str, "expressions.Evaluation | None"]  # its name, and what gives its default


def _parameters(items: Iterable[cst.Param], piece: Slice) -> list[_Parameter]:
    return [(item.name.value, None if item.default is None else _default(item.default, piece)) for item in items]


def initial_attribute(machine: Machine, instance: Instance, name: str) -> Any:
    """The attribute as ``__init__`` of the object's class, or of a base, leaves it; MISSING where none sets it."""
    if instance.cls is None or name in instance.pending or (name.startswith("__") and name.endswith("__")):
        return MISSING
    initialiser, is_field = _initialiser(machine, instance.cls, name)
    if initialiser is None:
        return _field(machine, instance, name) if is_field else MISSING
    # What __init__ leaves does not depend on what happens later: one computation serves every path.
    remembered = ("attribute", id(instance), name)
    steps = machine.budget.attribute_steps // (8 if machine.in_layer else 1)
    given_up = machine.memo.setdefault("attributes given up", {})
    place = (instance.cls.module.name, instance.cls.info.name, name)
    if given_up.get(place, 0) >= steps and machine.recall(remembered) is None:
        return _too_long(machine, instance, name)
    instance.pending.add(name)
    machine.initialising += 1
    begun = machine.steps
    besides: dict[Any, Any] = {}
    try:
        outcomes = machine.outcomes_of(
            remembered,
            lambda: machine.within(
                steps,
                lambda: machine.explore(lambda: _build(machine, instance, initialiser, name, besides), None),
            ),
            (machine.heap.name_of(instance.attrs), name),
            holder=instance,
        )
        if besides:
            machine.remember_besides(remembered, besides)
        found = machine.take(outcomes, (f"{instance.cls.info.name}.{name}", "attribute"), None).value
    except TooLong:
        if machine.steps > machine.soft_limit:
            raise
        given_up[place] = steps  # another object of the class would take as long
        found = _too_long(machine, instance, name)
    finally:
        machine.initialising -= 1
        if not machine.initialising:
            machine.excuse(machine.steps - begun)
        instance.pending.discard(name)
    if found is None and instance.shared:
        found = Unknown(f"{name} is set at run time", present=True)
    if found is not MISSING:
        machine.heap.set(instance.lazy, name, found)
        if isinstance(found, list | dict | set):
            machine.memo.setdefault(("as made", id(found)), (found, list(found)))
    return found


def is_never_set(machine: Machine, cls: ClassValue, name: str) -> bool:
    """Whether nothing that makes an object of a class sets that attribute."""
    return _initialiser(machine, cls, name) == (None, False)


def _initialiser(machine: Machine, cls: ClassValue, name: str) -> tuple[Function | None, bool]:
    """What may set an attribute of a new object, if anything does, and whether the attribute may be a mere field."""
    found = class_mro(machine, cls).found
    key = ("initialiser", name)
    if key not in found:
        initialiser = find_method(machine, cls, "__init__")
        is_field = initialiser is None or _is_dataclass(machine, cls)
        if is_field:
            initialiser = _post_init(machine, cls)
        sets_it = initialiser is not None and _may_set(machine, cls, initialiser, name)
        found[key] = initialiser if sets_it else None, is_field
    return found[key]  # type: ignore[no-any-return]


def _too_long(machine: Machine, instance: Instance, name: str) -> Unknown:
    assert instance.cls is not None
    found = Unknown(f"{instance.cls.info.name}.{name} takes too long to follow")
    machine.heap.set(instance.lazy, name, found)
    return found


def is_as_made(machine: Machine, value: Any) -> bool:
    """Whether a container holds what ``__init__`` left in it."""
    known = machine.memo.get(("as made", id(value)))
    if known is None or known[0] is not value:
        return True
    return len(known[1]) == len(value) and all(a is b for a, b in zip(known[1], value, strict=True))


def _build(machine: Machine, instance: Instance, initialiser: Function, name: str, besides: dict[Any, Any]) -> Any:
    """Run ``__init__`` as far as one attribute needs it.

    What else it set on the way is kept where all that makes the object names it once, or, of what cannot be changed in
    place, sets it once; elsewhere it may not be final. ``besides`` gets the latter.
    """
    if initialiser.info.name == "__post_init__":
        instance.building.append(machine.heap.born(_fields(machine, instance)))
        try:
            return run_initialiser(machine, instance, initialiser, (), {}, name)
        finally:
            instance.building.pop()
    instance.building.append(machine.heap.born({}))
    try:
        return run_initialiser(machine, instance, initialiser, instance.args, instance.kwargs, name)
    finally:
        built = instance.building.pop()
        besides.clear()
        for other, value in built.items():
            handed_out = not isinstance(instance.lazy.get(other, MISSING), Unknown) and other in instance.lazy
            plain = type(value) in _PLAIN
            if other != name and not handed_out and _is_final(machine, instance, other, plain=plain):
                machine.heap.set(instance.lazy, other, value)
                if plain:
                    besides["attribute", id(instance), other] = value


def run_initialiser(
    machine: Machine,
    instance: Instance,
    function: Function,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    name: str,
    resume: Callable[[Any], None] | None = None,
) -> Any:
    """Run the part of ``__init__``, or of a method that it calls, that leads to one attribute.

    ``resume`` is for a method that is a context manager, and runs the body of the ``with``.
    """
    from eaglelint.source.statements import run_block

    assert instance.cls is not None
    piece, node = function_node(function)
    parameters = node.params
    first = [*parameters.posonly_params, *parameters.params][:1]
    receiver = first[0].name.value if first else "self"
    cls = instance.cls

    def sets_it(call: cst.Call) -> bool:
        if not isinstance(call.func, cst.Attribute):
            return False
        target, method = call.func.value, call.func.attr.value
        if method in INITIALISERS:
            after = _super_of(machine, target, function)
            base = find_method(machine, cls, method, after=after) if after is not None else None
            return base is not None and _may_set(machine, cls, base, name)
        if isinstance(target, cst.Name) and target.value == receiver:
            called = find_method(machine, cls, method)
            return called is not None and called.info is not function.info and sets_attribute(called, name)
        return False

    whole = function.info.name == "__post_init__"  # what it reads of the fields depends on what it has set before
    # The same for each run, and each class with these bases.
    told, pruned = function.module.told, ("pruned", function.info.line, class_mro(machine, cls).key, name)
    if pruned not in told:
        block = node.body
        assert isinstance(block, cst.IndentedBlock | cst.SimpleStatementSuite)
        statements = block.body if isinstance(block, cst.IndentedBlock) else [cst.SimpleStatementLine(block.body)]
        effects = told.setdefault(("effects", function.info.line), {})
        aside: set[cst.BaseStatement] = set()
        kept = statements if whole else prune(statements, receiver, name, sets_it, effects, _names(parameters), aside)
        told[pruned] = kept, frozenset(aside)
    body, asides = told[pruned]
    if not body:
        return MISSING
    frame = Frame(
        piece,
        function.module,
        Env({}),
        f"{function.owner.info.name if function.owner else ''}.{function.info.name}",
        function.owner,
        instance,
        initialising=instance,
        wanted=name,
        resume=resume,
        asides=asides,
    )
    frame.env.variables = bind_arguments(machine, parameters, (instance, *args), kwargs, frame)
    run_block(machine, body, frame)
    return instance.building[-1].get(name, MISSING)


def _names(parameters: cst.Parameters) -> frozenset[str]:
    listed = (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params)
    stars = (parameters.star_arg, parameters.star_kwarg)
    return frozenset(item.name.value for item in (*listed, *stars) if isinstance(item, cst.Param))


def _super_of(machine: Machine, target: cst.BaseExpression, function: Function) -> ClassValue | None:
    """The class behind which ``super()``, or ``super(CLASS, self)``, looks."""
    if isinstance(target, cst.Call) and len(target.args) == 2 and isinstance(target.args[0].value, cst.Name):
        named = global_value(machine, function.module, target.args[0].value.value)
        return named if isinstance(named, ClassValue) else None
    return function.owner


_PLAIN = frozenset((int, bool, str, float))


def _is_final(machine: Machine, instance: Instance, name: str, *, plain: bool) -> bool:
    """Whether an attribute that ``__init__`` has set is not set again, nor, if it is not plain, changed in place.

    Of every ``__init__`` of the object's class one names it, or sets it, once, and no method that they call does.
    """
    cls = instance.cls
    assert cls is not None
    key = ("construction", cls.module.name, cls.info.name)
    if key not in machine.memo:
        initialisers = [function for entry in class_mro(machine, cls) for function in _own(entry, "__init__")]
        texts: dict[FunctionInfo, str] = {}
        pending = list(initialisers)
        while pending:
            function = pending.pop()
            if function.info not in texts:
                texts[function.info] = _text(function)
                called = (find_method(machine, cls, method) for method in _called(texts[function.info]))
                pending += [method for method in called if method is not None]
        own = {function.info for function in initialisers}
        machine.memo[key] = [
            [
                sum((count(text) for info, text in texts.items() if (info in own) == inside), Counter[str]())
                for inside in (True, False)
            ]
            for count in (_named_attributes, assigned_attributes)
        ]
    initialised, elsewhere = machine.memo[key][plain]
    return bool(initialised[name] == 1 and not elsewhere[name])


@lru_cache(maxsize=4096)
def _named_attributes(text: str) -> Counter[str]:
    return Counter(re.findall(r"\bself\.(\w+)", text))


def _own(entry: Any, name: str) -> list[Function]:
    info = entry.info.methods.get(name) if isinstance(entry, ClassValue) else None
    return [Function(entry.module, info, entry)] if info is not None else []


def sets_attribute(function: Function, name: str) -> bool:
    """Whether the text of a method assigns the attribute."""
    return assigns_attribute(_text(function), name)


@lru_cache(maxsize=4096)
def _called(text: str) -> frozenset[str]:
    """The methods of its own object that a method calls."""
    return frozenset(re.findall(r"\bself\.(\w+)\(", text))


def _may_set(machine: Machine, cls: ClassValue, initialiser: Function, name: str) -> bool:
    """A quick test on the text of ``__init__``, of the methods it calls and of the next one of the name behind it."""
    cache = ("may set", cls.module.name, cls.info.name, initialiser.module.name, initialiser.info.line, name)
    if cache not in machine.memo:
        text = _text(initialiser)
        found = f'"{name}"' in text or sets_attribute(initialiser, name)
        for method in () if found else _called(text):
            called = find_method(machine, cls, method)
            if called is not None and called.info is not initialiser.info and sets_attribute(called, name):
                found = True
                break
        if not found and f"{initialiser.info.name}(" in text and initialiser.owner is not None:
            base = find_method(machine, cls, initialiser.info.name, after=initialiser.owner)
            found = base is not None and _may_set(machine, cls, base, name)
        machine.memo[cache] = found
    return bool(machine.memo[cache])


def _text(function: Function) -> str:
    return function.module.text(function.info.line, function.info.end_line)


def _is_dataclass(machine: Machine, cls: ClassValue) -> bool:
    """Whether a class's ``__init__`` is one that ``dataclass`` wrote, for it or for a base."""
    for entry in class_mro(machine, cls):
        if not isinstance(entry, ClassValue) or "__init__" in entry.info.methods:
            return False
        if any(name.rsplit(".", 1)[-1] == "dataclass" for name in entry.info.decorators):
            return True
    return False


def _field(machine: Machine, instance: Instance, name: str) -> Any:
    """A field of a class without ``__init__``: a dataclass, a struct, a named tuple."""
    if name in instance.kwargs:
        return instance.kwargs[name]
    if not instance.args or instance.cls is None:
        return MISSING
    names = _field_names(machine, instance.cls)
    return instance.args[names.index(name)] if name in names[: len(instance.args)] else MISSING


_LONGEST_POST_INIT = 80  # lines
_CALLS_ITS_OWN = re.compile(r"\bself\.\w+\(")


def _post_init(machine: Machine, cls: ClassValue) -> Function | None:
    """The ``__post_init__`` of a dataclass, where it and those of its bases are short and call no methods."""
    if ("post init", cls) not in machine.memo:
        found = [function for entry in class_mro(machine, cls) for function in _own(entry, "__post_init__")]
        plain = all(
            function.info.end_line - function.info.line < _LONGEST_POST_INIT
            and not _CALLS_ITS_OWN.search(_text(function))
            for function in found
        )
        machine.memo["post init", cls] = found[0] if found and plain else None
    known: Function | None = machine.memo["post init", cls]
    return known


def _fields(machine: Machine, instance: Instance) -> dict[str, Any]:
    """The fields as they are before ``__post_init__``: as given, else their defaults."""
    assert instance.cls is not None
    found = {}
    for name in _field_names(machine, instance.cls):
        value = _field(machine, instance, name)
        value = class_attribute(machine, instance.cls, name, instance) if value is MISSING else value
        if value is not MISSING:
            found[name] = value
    return found


def _field_names(machine: Machine, cls: ClassValue) -> list[str]:
    names: dict[str, None] = {}
    for entry in reversed(class_mro(machine, cls)):
        if isinstance(entry, ClassValue):
            text = entry.module.text(entry.info.line, entry.info.end_line)
            names.update(dict.fromkeys(re.findall(r"^ {4}(\w+)\s*:\s*[^\n]+$", text, re.M)))
    return list(names)


from eaglelint.source import expressions  # noqa: E402 - what it imports imports this file: so it comes last
