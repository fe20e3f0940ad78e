"""Calls: which are followed, which are a branch of the stream, and which end the knowledge of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import libcst as cst

from eaglelint.source.collectives import is_collective
from eaglelint.source.collectors import call_later
from eaglelint.source.construct import REST, bind_arguments, function_node, run_initialiser, sets_attribute
from eaglelint.source.effort import follow
from eaglelint.source.expressions import Evaluation, evaluate, iterate, prepare
from eaglelint.source.externals import call_external
from eaglelint.source.layers import call_layer, runs_layer
from eaglelint.source.lookup import MISSING, find_method, get_attribute, global_value, list_payload
from eaglelint.source.machine import BudgetExceeded, LayerLoop, Machine, Outcome, TooLong
from eaglelint.source.methods import call_builtin_method
from eaglelint.source.modules import call_module_method
from eaglelint.source.norms import call_norm, is_norm, kinds_of
from eaglelint.source.prune import INITIALISERS
from eaglelint.source.slices import Site, Slice
from eaglelint.source.streams import carries_stream, tensors_in, tensors_of
from eaglelint.source.unfollowed import model_output, not_followed
from eaglelint.source.values import (
    BoundMethod,
    BuiltinMethod,
    ClassValue,
    Closure,
    Collector,
    ContextCall,
    Env,
    External,
    Frame,
    Function,
    Instance,
    Iteration,
    Opaque,
    Partial,
    SuperValue,
    Tensor,
    TensorBuffer,
    Unknown,
)

__all__ = [
    "call_value",
    "carries_stream",
    "construct",
    "is_norm",
    "model_output",
    "prepare_call",
    "run_context",
    "run_here",
    "tensors_in",
]


def prepare_call(node: cst.Call, piece: Slice) -> Evaluation:
    """What evaluates a call as written."""
    site = Site(piece, node)
    callee_of = prepare(node.func, piece)
    arguments = [(prepare(arg.value, piece), arg.keyword.value if arg.keyword else arg.star) for arg in node.args]
    by_place = [value_of for value_of, name in arguments if not name]
    by_name = [(value_of, name) for value_of, name in arguments if name]

    def run(machine: Machine, frame: Frame) -> Any:
        callee = callee_of(machine, frame)
        args = tuple([value_of(machine, frame) for value_of in by_place])
        kwargs = {name: value_of(machine, frame) for value_of, name in by_name} if by_name else {}
        return call_value(machine, callee, args, kwargs, site, frame)

    def unpack(machine: Machine, frame: Frame) -> Any:
        callee = callee_of(machine, frame)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        unknown_rest = False
        for value_of, name in arguments:
            value = value_of(machine, frame)
            if name == "*":
                items = iterate(machine, value, site)
                args += items or []
                unknown_rest = unknown_rest or items is None
            elif name == "**":
                if isinstance(value, dict):
                    kwargs.update({key: item for key, item in value.items() if isinstance(key, str)})
                unknown_rest = unknown_rest or not isinstance(value, dict)
            elif name:
                kwargs[name] = value
            else:
                args.append(value)
        if unknown_rest and isinstance(callee, Function | BoundMethod | Closure):
            kwargs[REST] = Unknown("some of the arguments are not known")
        return call_value(machine, callee, tuple(args), kwargs, site, frame)

    def super_of(machine: Machine, frame: Frame) -> Any:
        if frame.owner is None:
            return run(machine, frame)
        after = arguments[0][0](machine, frame) if len(arguments) == 2 else frame.owner
        if isinstance(after, ClassValue):
            return SuperValue(frame.receiver, after)
        return Unknown("super of a class that is not known")

    if isinstance(node.func, cst.Name) and node.func.value == "super":
        return super_of
    return unpack if any(arg.star for arg in node.args) else run


def call_value(
    machine: Machine,
    callee: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    site: Site | None,
    caller: Frame | None = None,
) -> Any:
    """Call a value.

    Raises:
        Raised: The called code raises.
    """
    machine.step(site)
    kind = type(callee)
    if kind is Collector:
        return call_later(machine, callee, args, kwargs, site)
    if isinstance(callee, int):
        return callee  # an assumed fact under the name of a method: forward_mode.is_idle()
    name, short = site.callee if site is not None else ("", "")
    if not name:
        name = _qualified_name(callee) or "a function"
        short = name.rsplit(".", 1)[-1]
    if machine.intercepts:
        intercept = machine.intercepts.get(_qualified_name(callee)) or machine.intercepts.get(short + "()")
        if intercept is not None:
            return intercept(machine, args, kwargs, site)
    if machine.outside_call is not None and isinstance(callee, Unknown | Instance):
        answer = machine.outside_call(callee, name, args, kwargs, site)
        if answer is not MISSING:
            return answer
    if kind in _MAY_BE_SIMPLE:
        simple = _simple_call(machine, callee, name, short, args, kwargs, site)
        if simple is not MISSING:
            return simple
    if kind not in _WITH_CODE:
        return _dispatch(machine, callee, name, args, kwargs, site, caller)
    return follow(
        machine, callee, name, args, kwargs, site, lambda: _dispatch(machine, callee, name, args, kwargs, site, caller)
    )


_MAY_BE_SIMPLE = frozenset((Function, BoundMethod, External, Unknown, Instance))
_WITH_CODE = frozenset((Function, BoundMethod, Closure, Instance))


def _dispatch(
    machine: Machine,
    callee: Any,
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    site: Site | None,
    caller: Frame | None,
) -> Any:
    match callee:
        case External():
            return call_external(machine, callee.name, args, kwargs, site, caller)
        case BoundMethod() if name.endswith(".forward") and runs_layer(machine, callee):
            return _call_instance(machine, callee.receiver, name, args, kwargs, site, caller)
        case BoundMethod():
            return _call_function(machine, callee.function, callee.receiver, args, kwargs, site, caller)
        case Function():
            return _call_function(machine, callee, None, args, kwargs, site, caller)
        case Instance():
            return _call_instance(machine, callee, name, args, kwargs, site, caller)
        case ClassValue():
            made = construct(machine, callee, args, kwargs)
            made.made = (*machine.calls, *((site,) if site is not None else ()))
            return made
        case Closure():
            return _call_closure(machine, callee, args, kwargs, site)
        case BuiltinMethod() if isinstance(callee.receiver, Instance):
            return call_module_method(machine, callee.receiver, callee.name, args, kwargs, site, caller)
        case BuiltinMethod():
            return call_builtin_method(machine, callee.receiver, callee.name, args, kwargs, site)
        case Partial():
            return call_value(
                machine, callee.function, (*callee.args, *args), {**callee.kwargs, **kwargs}, site, caller
            )
    return not_followed(machine, name, args, kwargs, site)


def _simple_call(
    machine: Machine,
    callee: Any,
    name: str,
    short: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    site: Site | None,
) -> Any:
    """Calls whose meaning does not depend on their code: assumed facts, collectives on one device, norms, branches."""
    named = type(callee) is not Instance  # what a fact about the deployment may stand for, and what a collective is
    if named:
        assumption = machine.assumed(short)
        if assumption is not None:
            machine.used_assumptions.add(assumption.text)
            return assumption.value
        if type(callee) is External and not is_collective(short):
            return MISSING
    kinds = kinds_of(callee, short)
    if "embedding" in kinds:
        return machine.branch(name)
    tensors = tensors_of(args, kwargs)
    if not tensors:
        return Unknown("the norm of something unknown") if args and "norm" in kinds else MISSING
    if named and len(tensors) == 1 and is_collective(short):
        known = machine.assumed("tp_size")
        if known is not None:
            machine.used_assumptions.add(known.text)
        return tensors[0]
    if "norm" in kinds:
        return call_norm(machine, callee, args, kwargs, site)
    if "linear" in kinds and isinstance(callee, Instance):
        return machine.branch(name)  # a projection is a new state, whatever it is a projection of
    if type(callee) is not External and not _must_follow(machine, callee, args, kwargs, tensors):
        return machine.branch(name)
    return MISSING


def _must_follow(
    machine: Machine, callee: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Tensor]
) -> bool:
    """Whether a call can touch the stream or a list of captures; if not, it computes a branch from normed input."""
    if isinstance(callee, Instance) and (callee.layer is not None or (callee.cls is not None and not machine.in_layer)):
        return True
    function = callee.function if isinstance(callee, BoundMethod) else callee
    if isinstance(function, Function) and (
        not machine.in_layer or (function.module.name, function.qualname) in machine.stubs
    ):
        return True
    if any(carries_stream(machine, tensor) for tensor in tensors):
        return True
    return any(_collects(value) for value in (*args, *kwargs.values())) or (
        isinstance(callee, BoundMethod)
        and isinstance(callee.receiver, Instance)
        and bool(tensors_in(callee.receiver.attrs))
    )


_COLLECTORS = (list, TensorBuffer, BoundMethod, BuiltinMethod)


def _collects(value: Any) -> bool:
    """Whether a value could collect captures: a list, or a bound method of one."""
    if type(value) is Collector:
        return True
    if isinstance(value, _COLLECTORS):
        return not isinstance(value, BuiltinMethod) or isinstance(value.receiver, list)
    return isinstance(value, Instance) and value.cls is not None and value.payload is not None


# --- functions -----------------------------------------------------------------------------------------------------


def _call_function(
    machine: Machine,
    function: Function,
    receiver: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    site: Site | None,
    caller: Frame | None,
) -> Any:
    instance = receiver if isinstance(receiver, Instance) else None
    initialises = (
        caller is not None
        and caller.wanted
        and instance is not None
        and instance is caller.initialising
        and (function.info.name in INITIALISERS or sets_attribute(function, caller.wanted))
    )
    decorators = function.info.decorators
    if decorators and any(decorator.endswith("contextmanager") for decorator in decorators):
        args = args if receiver is None else (receiver, *args)
        if machine.num_layers is not None and not machine.initialising:
            return Unknown("a context manager", present=True)  # in a forward pass: streams and flags around the work
        return ContextCall(function, args, kwargs, caller.wanted if caller is not None and initialises else None)
    if initialises and caller is not None and caller.wanted and instance is not None:
        run_initialiser(machine, instance, function, args, kwargs, caller.wanted)
        return None if function.info.name in INITIALISERS else Unknown(f"the result of {function.info.name}")
    machine.followed.add((function.module, function.info.line))
    if receiver is not None:
        args = (receiver, *args)
    stub = machine.stubs.get((function.module.name, function.qualname))
    try:
        piece, node = function_node(function) if stub is None else (stub.slice, stub.node)
    except SyntaxError:
        return not_followed(machine, function.info.name, args, kwargs, site)
    if stub is not None:
        machine.used_stubs.add(stub.name)
    elif decorators:
        wrapped = _decorated(machine, function)
        if wrapped is not None:
            return call_value(machine, wrapped, args, kwargs, site, caller)
    if node.asynchronous is not None or _is_generator(function):
        return not_followed(machine, function.info.name, args, kwargs, site)
    frame = _frame(function, piece, args)
    frame.stub = stub is not None
    if not machine.in_layer and _handed_layers((*args, *kwargs.values())) and tensors_of(args, kwargs):
        return _run_with_layers(machine, node, frame, args, kwargs, site)
    return _run(machine, node, frame, args, kwargs, site)


def _frame(function: Function, piece: Slice, args: tuple[Any, ...]) -> Frame:
    """What a function runs in; the first argument is what it is a method of, if it is one."""
    name = f"{function.module.name}.{function.qualname}"
    return Frame(piece, function.module, Env({}), name, function.owner, args[0] if args else None)


def _handed_layers(values: Iterable[Any]) -> list[Instance]:
    """The decoder layers among the arguments, to be run by the called function."""
    for value in values:
        if isinstance(value, list) and value and all(isinstance(i, Instance) and i.layer is not None for i in value):
            return value
    return []


def _run_with_layers(
    machine: Machine,
    node: cst.FunctionDef,
    frame: Frame,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    site: Site | None,
) -> Any:
    """A function that passes the stream through layers: a schedule of their operations can be beyond what is followed.

    It can add to the captures only what it can reach; where it reaches none of them, only its result is unknown.
    """
    values = (*args, *kwargs.values())
    layers = _handed_layers(values)
    name = frame.function.rsplit(".", 1)[-1]
    reaches = any(_collects(value) for layer in layers for value in layer.attrs.values()) or any(
        _collects(value) and not _handed_layers((value,)) for value in values
    )
    ran = len(machine.order)
    result: Any = None
    try:
        bound = machine.budget.steps // 4 if reaches else machine.budget.schedule_steps
        result = machine.within(bound, lambda: _run(machine, node, frame, args, kwargs, site), call=not reaches)
        if len(machine.order) > ran or reaches:
            return result
    except TooLong:
        if machine.steps > machine.soft_limit or reaches:
            raise
        result = Tensor.of(Opaque(f"what {name} does with the layers is not followed", site))
    assert layers[0].layer is not None
    machine.heap.touch(machine.elsewhere)
    machine.elsewhere.append(layers[0].layer)
    if site is not None:
        machine.record("elsewhere", name, layers[0].layer, site)
    return result


def run_context(machine: Machine, call: ContextCall, resume: Callable[[Any], None], site: Site | None) -> None:
    """Run a context manager's function; ``resume`` runs the body of the ``with`` where it yields.

    The forks on the way are those of the caller, whose variables the body changes.
    """
    function = call.function
    receiver = call.args[0] if function.owner is not None and call.args else None
    if call.wanted is not None and isinstance(receiver, Instance):
        run_initialiser(machine, receiver, function, call.args[1:], call.kwargs, call.wanted, resume)
        return
    if machine.depth >= machine.budget.depth:
        raise BudgetExceeded(f"calls nested more than {machine.budget.depth} deep", site)
    try:
        piece, node = function_node(function)
    except SyntaxError:
        resume(Unknown("a context manager"))
        return
    name = f"{function.module.name}.{function.qualname}"
    frame = Frame(piece, function.module, Env({}), name, function.owner, receiver, resume=resume)
    if isinstance(receiver, Instance) and receiver.building:
        frame.initialising = receiver  # of the body only a part runs: what it leaves in the object is not final
    frame.env.variables = bind_arguments(machine, node.params, call.args, call.kwargs, frame)
    machine.depth += 1
    try:
        statements.run_suite(machine, node.body, frame)
    finally:
        machine.depth -= 1


def _decorated(machine: Machine, function: Function) -> Any:
    """What the plain decorators among the sources make of a function; None where nothing is known."""
    key = ("decorated", function.module.name, function.info.line)
    if key not in machine.memo:
        machine.memo[key] = None
        plain = made = Function(function.module, replace(function.info, decorators=()), function.owner)
        text = function.module.text(function.info.line, function.info.end_line)
        for name in reversed(function.info.decorators):
            if "." in name or re.search(rf"@\s*{name}\s*\(", text):
                continue
            decorator = global_value(machine, function.module, name)
            if isinstance(decorator, Function):
                made = call_value(machine, decorator, (made,), {}, None)
        if made is not plain and isinstance(made, Function | Closure | Partial):
            machine.memo[key] = made
    return machine.memo[key]


def _is_generator(function: Function) -> bool:
    """Whether a function yields: its values come later, and a context manager's body runs around other code."""
    module, key = function.module, ("generator", function.info.line)
    if key not in module.told:
        text = module.text(function.info.line, function.info.end_line)
        module.told[key] = re.search(r"^\s+(?:\w+ = )?\(?yield\b", text, re.M) is not None
    return bool(module.told[key])


def _call_closure(
    machine: Machine, closure: Closure, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None
) -> Any:
    outer: Frame = closure.frame
    frame = Frame(
        outer.slice,
        outer.module,
        Env({}, outer.env),
        f"{outer.function}.inner",
        outer.owner,
        outer.receiver,
        stub=outer.stub,
    )
    return _run(machine, closure.node, frame, args, kwargs, site, closure.defaults)


def _run(
    machine: Machine,
    node: cst.FunctionDef | cst.Lambda,
    frame: Frame,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    site: Site | None,
    defaults: dict[str, Any] | None = None,
) -> Any:
    if machine.depth >= machine.budget.depth:
        machine.too_deep()
        raise BudgetExceeded(f"calls nested more than {machine.budget.depth} deep", site)

    def once() -> Any:
        outer = frame.env.outer
        frame.env = Env({}, outer)
        frame.env.variables = bind_arguments(machine, node.params, args, kwargs, frame, defaults)
        if frame.function in machine.entering:
            machine.entering[frame.function](frame.env.variables)
        if type(node) is cst.FunctionDef:
            return statements.run_function_body(machine, node, frame)
        return evaluate(machine, node.body, frame)  # type: ignore[arg-type]  # a lambda's

    key = _memo_key(machine, node, args, kwargs)
    if key is None:
        return _taken(machine, _paths(machine, once, site), frame, site)
    if frame.env.outer:  # which it reads besides
        outcomes = _paths(machine, once, site)
    else:
        outcomes = machine.outcomes_of(key, lambda: _paths(machine, once, site), key)
    return _fresh(machine, _taken(machine, outcomes, frame, site))


def run_here(machine: Machine, function: Function, args: tuple[Any, ...]) -> Any:
    """Run a function as a part of the path that asks, which forks with it; the paths of a call are put together."""
    piece, node = function_node(function)
    frame = _frame(function, piece, args)
    frame.env.variables = bind_arguments(machine, node.params, args, {}, frame)
    return statements.run_function_body(machine, node, frame)


def _paths(machine: Machine, once: Callable[[], Any], site: Site | None) -> list[Outcome]:
    """Every path through a call."""
    machine.depth += 1
    if site is not None:
        machine.calls.append(site)
    try:
        return machine.explore(once, site)
    finally:
        machine.depth -= 1
        if site is not None:
            machine.calls.pop()


def _taken(machine: Machine, outcomes: list[Outcome], frame: Frame, site: Site | None) -> Any:
    """What a call gives on this path."""
    if len(outcomes) == 1 and outcomes[0].raised is None:
        return outcomes[0].value
    place = (frame.function, f"outcome at {id(site.node) if site else 0}")
    return machine.take(outcomes, place, site).value


def _fresh(machine: Machine, value: Any) -> Any:
    """A container that a call made: another call makes another one, so what is done to one is not done to all."""
    if isinstance(value, Iteration):
        return machine.heap.born(Iteration(value))
    if type(value) in (list, set):
        return machine.heap.born(type(value)(_fresh(machine, item) for item in value))
    if type(value) is dict:
        return machine.heap.born({name: _fresh(machine, item) for name, item in value.items()})
    if type(value) is tuple:
        return tuple(_fresh(machine, item) for item in value)
    if isinstance(value, Instance) and value.payload is not None and value.cls is not None and not value.attrs:
        return machine.new_instance(Instance(value.cls, value.args, value.kwargs, payload=list(value.payload)))
    return value


def _memo_key(machine: Machine, node: cst.CSTNode, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A key for calls whose arguments are plain values: they give the same again, unless they change something."""
    if machine.depth == 0:
        return None
    config = args[0] if args else None
    if isinstance(config, Instance) and config.cls is not None and config.cls.info.name.endswith("Config"):
        state = _state_of(config, 0)
        if state is None or not all(_memoizable(value) for value in (*args[1:], *kwargs.values())):
            return None
        return ("call", id(node), state, args[1:], tuple(kwargs.items()), machine.heap.world.key)
    for value in args:
        if not _memoizable(value):
            return None
    if kwargs and not all(map(_memoizable, kwargs.values())):
        return None
    return ("call", id(node), args, tuple(kwargs.items()), machine.heap.world.key)


def _state_of(config: Instance, depth: int) -> Any:
    """A config and all that was set in it, to be compared; None where that is more than plain data."""
    held: list[Any] = [id(config)]
    made = [(name, value) for name, value in config.lazy.items() if isinstance(value, Instance | list | dict)]
    for name, value in (*config.attrs.items(), *made):
        state = value
        if isinstance(value, Instance):
            state = _state_of(value, depth + 1) if depth < 3 else None
            if state is None:
                return None
        elif isinstance(value, Unknown):
            state = (value, value.present, value.choice)
        elif isinstance(value, list) and all(_memoizable(item) for item in value):
            state = (type(value).__name__, *value)
        elif not _memoizable(value) and value is not MISSING and not isinstance(value, Partial):
            return None
        held.append((name, state))
    return tuple(held)


_MEMOIZABLE = frozenset((str, int, bool, float, type(None), ClassValue))


def _memoizable(value: Any) -> bool:
    kind = type(value)
    return kind in _MEMOIZABLE or (kind is Instance and value.closed and value.cls is not None)


def _qualified_name(callee: Any) -> str:
    if isinstance(callee, BoundMethod):
        return callee.function.qualname
    if isinstance(callee, Function):
        return callee.qualname
    if isinstance(callee, External):
        return callee.name
    if isinstance(callee, ClassValue):
        return callee.info.name
    return f"{callee.cls.info.name}.__call__" if isinstance(callee, Instance) and callee.cls is not None else ""


# --- objects -------------------------------------------------------------------------------------------------------


def construct(machine: Machine, cls: ClassValue, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Instance:
    """An object of a class of the sources; its ``__init__`` runs when its attributes are asked for."""
    if machine.constructing is not None:
        machine.constructing(cls, args, kwargs)
    payload: list[Any] | None = None
    if list_payload(machine, cls):
        payload = list(args[0]) if args and isinstance(args[0], list | tuple) else []
    instance = Instance(cls, args, kwargs, payload=payload, name=cls.info.name)
    return machine.new_instance(instance)


def _call_instance(
    machine: Machine,
    instance: Instance,
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    site: Site | None,
    caller: Frame | None,
) -> Any:
    if instance.layer is not None and not machine.in_layer:
        if caller is not None and caller.function not in machine.loops:
            absent = frozenset(name for name, value in caller.env.variables.items() if value is None)
            machine.loops[caller.function] = LayerLoop(caller.slice, machine.depth, absent)
        result = call_layer(machine, instance, args, kwargs, site)
        for hook in machine.after_forward.get(id(instance), ()):
            changed = call_value(machine, hook, (instance, args, result), {}, site)
            result = result if changed is None else changed
        return result
    if instance.cls is None:
        if len(args) == 1 and not kwargs and _passes_on(machine, instance.name):
            return args[0]
        return not_followed(machine, name, args, kwargs, site)
    method = find_method(machine, instance.cls, "forward") or find_method(machine, instance.cls, "__call__")
    if method is None:
        return not_followed(machine, name, args, kwargs, site)
    return _call_function(machine, method, instance, args, kwargs, site, None)


_DROPOUT = re.compile(r"(?:Alpha|Feature|FeatureAlpha)?Dropout[123]?d?")


def _passes_on(machine: Machine, name: str) -> bool:
    """Whether torch's module of that name gives back what it is given: in inference, a dropout does."""
    if name == "Identity":
        return True
    return _DROPOUT.fullmatch(name) is not None and get_attribute(machine, Unknown(name), "training") is False


from eaglelint.source import statements  # noqa: E402 - it imports this file: so it comes last
