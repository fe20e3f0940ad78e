"""Statements, executed on abstract values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import libcst as cst

from eaglelint.source.assign import assign
from eaglelint.source.calls import call_value, run_context
from eaglelint.source.choosing import choose, known_truth
from eaglelint.source.construct import default_values
from eaglelint.source.dead_ends import leads_nowhere, noting
from eaglelint.source.expressions import evaluate, iterate, truth
from eaglelint.source.liveness import read_after
from eaglelint.source.lookup import MISSING, get_attribute
from eaglelint.source.machine import UNCLEAR, Machine, NeedsDecision, Raised, TooLong, same_net
from eaglelint.source.same import NotJoinable, join
from eaglelint.source.slices import Site, Slice
from eaglelint.source.small_statements import Flow, Runner, prepare_line
from eaglelint.source.values import (
    BoundMethod,
    Closure,
    ContextCall,
    Frame,
    Instance,
    Iteration,
    ModuleHook,
    Tensor,
    Unknown,
)
from eaglelint.source.walk import children

__all__ = ["Flow", "run_block", "run_function_body"]

_MAX_LOOP = 4096
_MAX_WHILE = 256


def run_function_body(machine: Machine, node: cst.FunctionDef, frame: Frame) -> Any:
    flow = run_suite(machine, node.body, frame)
    return flow[1] if flow is not None and flow[0] == "return" else None


def run_suite(machine: Machine, suite: cst.BaseSuite, frame: Frame) -> Flow:
    if type(suite) is cst.SimpleStatementSuite:
        return _runner(suite, frame.slice)(machine, frame)
    return run_block(machine, suite.body, frame)  # type: ignore[arg-type]


def run_block(machine: Machine, body: Sequence[cst.BaseStatement], frame: Frame) -> Flow:
    prepared, asides = frame.slice.prepared, frame.asides
    for statement in body:
        machine.step()
        if asides and statement in asides:
            _run_aside(machine, statement, frame)
            continue
        known = prepared.get(id(statement))
        flow = (known[1] if known is not None else _runner(statement, frame.slice))(machine, frame)
        if flow is not None:
            return flow
    return None


def _runner(statement: cst.BaseStatement | cst.SimpleStatementSuite, piece: Slice) -> Runner:
    """What runs a statement, or several on one line, of that slice."""
    known = piece.prepared.get(id(statement))
    if known is None:
        known = piece.prepared[id(statement)] = statement, _prepare(statement, piece)
    return known[1]


def _prepare(statement: cst.BaseStatement | cst.SimpleStatementSuite, piece: Slice) -> Runner:
    if isinstance(statement, cst.SimpleStatementLine | cst.SimpleStatementSuite):
        return prepare_line(statement.body, piece)
    runner = _COMPOUND.get(type(statement), _run_nothing)
    return lambda machine, frame: runner(machine, statement, frame)


def _run_nothing(machine: Machine, statement: cst.BaseStatement, frame: Frame) -> Flow:
    return None


def _run_aside(machine: Machine, statement: cst.BaseStatement, frame: Frame) -> None:
    """A call that may change what it is handed: followed outside the layers, where that is little work and no fork."""
    given_up: set[cst.BaseStatement] = machine.memo.setdefault("asides given up", set())
    if machine.in_layer or statement in given_up:
        return
    before = dict(frame.env.variables)
    inner = replace(frame, asides=frozenset())
    try:
        attempt = machine.within(
            machine.budget.test_steps // 4,
            lambda: machine.try_out(lambda: run_block(machine, (statement,), inner)),
        )
    except TooLong:
        if machine.steps > machine.soft_limit:
            raise
        attempt = None
    if attempt is None:
        frame.env.variables = before
        given_up.add(statement)
    else:
        machine.heap.replay(attempt[1])


# --- conditions ----------------------------------------------------------------------------------------------------


def _run_if(machine: Machine, statement: cst.If, frame: Frame) -> Flow:
    known = known_truth(machine, statement.test, frame)
    if known is not None:
        return _run_side(machine, statement, known, frame)
    idle: list[bool] = []
    going_on = None if machine.script or machine.catching else _going_on(statement)
    if going_on is False and machine.trying:
        going_on = None  # a guard ends the trial: to go on would try out all that is nested behind it at each level
    if going_on is None:
        leaves = not machine.script and any(_ends_in(suite, _LEAVING) for suite in (statement.body, statement.orelse))
        if not leaves and _merged(
            machine, frame, statement, lambda side: _run_side(machine, statement, side, frame), idle
        ):
            return None
        going_on = not idle[0] if len(idle) == 1 else None
    return _run_side(machine, statement, choose(machine, statement.test, frame, going_on), frame)


_LEAVING = (cst.Return, cst.Raise, cst.Break, cst.Continue)


def _going_on(statement: cst.If) -> bool | None:
    """The only side that does not end in an exception: a path that raises does not serve where another one does."""
    raises = [_ends_in(suite, (cst.Raise,)) for suite in (statement.body, statement.orelse)]
    return raises.index(False) == 0 if raises.count(True) == 1 else None


def _ends_in(suite: cst.CSTNode | None, kinds: tuple[type[cst.CSTNode], ...]) -> bool:
    """Whether a side, which holds no other blocks, ends in such a statement: it does not go on where the other does."""
    if type(suite) is cst.Else:
        suite = suite.body
    lines: Sequence[Any] = suite.body if type(suite) is cst.IndentedBlock else [suite]
    if not lines or not all(type(line) in _SIMPLE for line in lines):
        return False
    return type(lines[-1].body[-1]) in kinds


_SIMPLE = (cst.SimpleStatementLine, cst.SimpleStatementSuite)


def _run_side(machine: Machine, statement: cst.If, side: bool, frame: Frame) -> Flow:
    if side:
        return run_suite(machine, statement.body, frame)
    orelse = statement.orelse
    if orelse is None:
        return None
    return _run_if(machine, orelse, frame) if type(orelse) is cst.If else run_suite(machine, orelse.body, frame)


def _merged(machine: Machine, frame: Frame, statement: cst.If, run: Callable[[bool], Flow], idle: list[bool]) -> bool:
    """Try both sides; where they leave the same behind, or differ in nothing that matters, go on with one state.

    ``idle`` gets the sides of a script's condition that lead nowhere: the other one is the only path.
    """
    before = dict(frame.env.variables)
    tried = []
    for side in (True, False):
        frame.env.variables = dict(before)
        refusals: list[Raised] = []
        attempt = machine.try_out(lambda side=side, refusals=refusals: noting(run, side, refusals))  # type: ignore[misc]
        after = frame.env.variables
        frame.env.variables = dict(before)
        if machine.script and leads_nowhere(machine, attempt, refusals):
            idle.append(side)
        elif attempt is None or attempt[0] is not None:
            if not machine.script:
                return False
        else:
            tried.append((attempt[1], attempt[2], after))
    if len(tried) < 2:
        return False
    (_, other_net, left), (redo, net, right) = tried  # go on with the usual side, the one that a guard guards against
    try:
        unclear = same_net(machine.heap, net, other_net)
        if unclear is None:
            return False
        meeting = machine.meeting(Site(frame.slice, statement))
        live = read_after(statement, frame.slice) if not machine.script else None
        variables = {
            name: join(left.get(name), right.get(name), meeting)
            for name in {**left, **right}
            if live is None or name in live or name in before
        }
    except NotJoinable:
        return False
    machine.heap.replay(redo)
    for place in unclear:
        machine.heap.set(machine.heap.container(place), place[1], UNCLEAR)
    frame.env.variables = variables
    return True


# --- loops ---------------------------------------------------------------------------------------------------------


def _run_for(machine: Machine, statement: cst.For, frame: Frame) -> Flow:
    value = evaluate(machine, statement.iter, frame)
    items: Iterable[Any] | None = (
        _drawn(machine, value)
        if isinstance(value, Iteration)
        else iterate(machine, value, Site(frame.slice, statement.iter))
    )
    standing = items is None or (isinstance(items, list) and len(items) > _MAX_LOOP)
    if standing:
        flow = _forget(machine, statement, frame)
        if not machine.script:
            return flow
        items = [Unknown(f"an item of {frame.slice.code(statement.iter)}")]
    elif isinstance(value, list) and not isinstance(value, Iteration):
        items = value  # itself: the body may add to it, or take from it
    for item in items or ():
        machine.step()
        assign(machine, statement.target, item, frame)
        flow = _run_round(machine, statement, frame, standing=standing)
        if flow is not None and flow[0] == "return":
            return flow
        if flow is not None and flow[0] == "break":
            return None
    return run_suite(machine, statement.orelse.body, frame) if statement.orelse is not None else None


def _run_round(machine: Machine, statement: cst.For | cst.While, frame: Frame, *, standing: bool) -> Flow:
    """One round of a loop; ``standing`` where it stands for all rounds of a loop over something unknown."""
    machine.rounds.append(standing)
    try:
        return run_suite(machine, statement.body, frame)
    finally:
        machine.rounds.pop()


def _drawn(machine: Machine, iteration: Iteration) -> Iterator[Any]:
    """One item after another; what a break leaves can be gone through later."""
    machine.heap.touch(iteration)
    while iteration:
        yield iteration.pop(0)


def _run_while(machine: Machine, statement: cst.While, frame: Frame) -> Flow:
    for _ in range(_MAX_WHILE):
        machine.step()
        known = truth(evaluate(machine, statement.test, frame))
        if known is None:
            flow = _forget(machine, statement, frame)
            if machine.script:
                flow = _run_round(machine, statement, frame, standing=True)
            return flow if flow is not None and flow[0] == "return" else None
        if not known:
            return run_suite(machine, statement.orelse.body, frame) if statement.orelse is not None else None
        flow = _run_round(machine, statement, frame, standing=False)
        if flow is not None and flow[0] == "return":
            return flow
        if flow is not None and flow[0] == "break":
            return None
    return _forget(machine, statement, frame)


# --- what is not followed ------------------------------------------------------------------------------------------


def _run_match(machine: Machine, statement: cst.Match, frame: Frame) -> Flow:
    return _forget(machine, statement, frame)


def _run_class(machine: Machine, statement: cst.ClassDef, frame: Frame) -> Flow:
    frame.env.variables[statement.name.value] = Unknown(f"the class {statement.name.value} of a function")
    return None


_MUTATING = frozenset(
    {
        "add",
        "append",
        "clear",
        "discard",
        "extend",
        "insert",
        "pop",
        "popitem",
        "remove",
        "reverse",
        "setdefault",
        "sort",
        "update",
    }
)


@dataclass(slots=True)
class _Touched:
    """What a statement may change: names, attributes, containers; and whether it may return."""

    names: set[str] = field(default_factory=set)
    attributes: list[cst.Attribute] = field(default_factory=list)
    containers: list[cst.BaseExpression] = field(default_factory=list)
    handed: list[cst.BaseExpression] = field(default_factory=list)
    returns: bool = False


def _forget(machine: Machine, statement: cst.For | cst.While | cst.Match, frame: Frame) -> Flow:
    """A statement that cannot be run, a loop over something unknown: what it may change is unknown afterwards."""
    over = statement.iter if isinstance(statement, cst.For) else getattr(statement, "test", None)
    where = f"a loop over {frame.slice.code(over)}" if over is not None else "a match statement"
    cache = machine.memo.setdefault("touched", {})
    if statement not in cache:
        cache[statement] = _touched(statement)
    touched: _Touched = cache[statement]
    changed = Unknown(f"it may be changed in {where}")
    for container in touched.containers:
        _poison(machine, _value_of(machine, container, frame), changed)
    for argument in touched.handed:
        value = _value_of(machine, argument, frame)
        if isinstance(value, list) and all(isinstance(item, Tensor) for item in value):
            _poison(machine, value, changed)
    for attribute in touched.attributes:
        receiver = _value_of(machine, attribute.value, frame)
        if isinstance(receiver, Instance):
            machine.heap.set(receiver.attrs, attribute.attr.value, changed)
    for name in sorted(touched.names):
        frame.env.variables[name] = Unknown(f"it is assigned in {where}")
    return ("return", changed) if touched.returns else None


def _value_of(machine: Machine, node: cst.BaseExpression, frame: Frame) -> Any:
    attempt = machine.try_out(lambda: evaluate(machine, node, frame))
    return attempt[0] if attempt is not None else None


def _poison(machine: Machine, value: Any, by: Unknown) -> None:
    if isinstance(value, Instance) and value.payload is not None:
        value = value.payload
    if isinstance(value, list | set):
        machine.heap.touch(value)
        value.append(by) if isinstance(value, list) else value.add(by)
    elif isinstance(value, dict):
        machine.heap.set(value, by, by)


def _touched(node: cst.CSTNode) -> _Touched:
    found = _Touched()
    pending = [node]
    while pending:
        current: Any = pending.pop()
        kind = type(current)
        if kind is cst.FunctionDef:
            found.names.add(current.name.value)
        elif kind in _BINDING:
            _touch_target(current.target, found)
        elif kind is cst.MatchAs and current.name is not None:
            found.names.add(current.name.value)
        elif kind is cst.Return:
            found.returns = True
        elif kind is cst.Call:
            if type(current.func) is cst.Attribute and current.func.attr.value in _MUTATING:
                found.containers.append(current.func.value)
            found.handed += [arg.value for arg in current.args if type(arg.value) in (cst.Name, cst.Attribute)]
        if kind is not cst.FunctionDef and kind is not cst.Lambda:  # their bodies run elsewhere
            pending += children(current)
    return found


_BINDING = frozenset([cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.NamedExpr, cst.Del])


def _touch_target(target: cst.CSTNode, found: _Touched) -> None:
    match target:
        case cst.Name():
            found.names.add(target.value)
        case cst.Attribute():
            found.attributes.append(target)
        case cst.Subscript():
            found.containers.append(target.value)
        case cst.Tuple() | cst.List():
            for element in target.elements:
                _touch_target(element.value, found)


# --- with, try, def ------------------------------------------------------------------------------------------------


def _run_with(machine: Machine, statement: cst.With, frame: Frame) -> Flow:
    return _enter(machine, statement.items, statement.body, frame)


def _enter(machine: Machine, items: Sequence[cst.WithItem], body: cst.BaseSuite, frame: Frame) -> Flow:
    """Enter one context after another, then run the body."""
    if not items:
        return run_suite(machine, body, frame)
    item, rest = items[0], items[1:]
    value = evaluate(machine, item.item, frame)
    if isinstance(value, ContextCall):
        if frame.initialising is not None or machine.num_layers is None:
            return _enter_call(machine, value, item, rest, body, frame)
        value = Unknown("a context manager")  # in a forward pass: streams and flags around the work, not the work
    if isinstance(value, ModuleHook):
        machine.heap.touch(machine.module_hooks)
        machine.module_hooks.append(value.function)
        try:
            return _enter(machine, rest, body, frame)
        finally:
            machine.heap.touch(machine.module_hooks)
            machine.module_hooks.remove(value.function)
    enter = get_attribute(machine, value, "__enter__") if isinstance(value, Instance) else MISSING
    if isinstance(enter, BoundMethod):
        value = call_value(machine, enter, (), {}, Site(frame.slice, item))
    if item.asname is not None:
        assign(machine, item.asname.name, value, frame)
    return _enter(machine, rest, body, frame)


def _enter_call(
    machine: Machine,
    call: ContextCall,
    item: cst.WithItem,
    rest: Sequence[cst.WithItem],
    body: cst.BaseSuite,
    frame: Frame,
) -> Flow:
    flows: list[Flow] = []
    trying = machine.trying

    def resume(value: Any) -> None:
        if machine.trying > trying:
            raise NeedsDecision  # a side that yields is not tried out: the body would run in the wrong state
        if item.asname is not None:
            assign(machine, item.asname.name, value, frame)
        flows.append(_enter(machine, rest, body, frame))

    run_context(machine, call, resume, Site(frame.slice, item))
    return flows[0] if flows else None


def _run_try(machine: Machine, statement: cst.Try | cst.TryStar, frame: Frame) -> Flow:
    flow: Flow = None
    machine.catching += 1
    caught: Raised | None = None
    try:
        flow = run_suite(machine, statement.body, frame)
    except Raised as error:
        caught = error
    finally:
        machine.catching -= 1
    if caught is not None:
        handler = next((h for h in statement.handlers if _catches(h.type, caught, frame)), None)
        if handler is None:
            if statement.finalbody is not None:
                run_suite(machine, statement.finalbody.body, frame)
            raise caught
        if handler.name is not None:
            assign(machine, handler.name.name, Unknown("an exception"), frame)
        flow = run_suite(machine, handler.body, frame)
    elif statement.orelse is not None and flow is None:
        flow = run_suite(machine, statement.orelse.body, frame)
    if statement.finalbody is not None:
        flow = run_suite(machine, statement.finalbody.body, frame) or flow
    return flow


def _catches(types: cst.BaseExpression | None, raised: Raised, frame: Frame) -> bool:
    if types is None:
        return True
    nodes = [element.value for element in types.elements] if isinstance(types, cst.Tuple) else [types]
    return any(frame.slice.code(node).rsplit(".", 1)[-1] in raised.kinds for node in nodes)


def _run_def(machine: Machine, statement: cst.FunctionDef, frame: Frame) -> Flow:
    frame.env.variables[statement.name.value] = Closure(
        statement, replace(frame), default_values(machine, statement.params, frame)
    )
    return None


_COMPOUND: dict[type[cst.BaseStatement], Callable[[Machine, Any, Frame], Flow]] = {
    cst.If: _run_if,
    cst.For: _run_for,
    cst.While: _run_while,
    cst.With: _run_with,
    cst.Try: _run_try,
    cst.TryStar: _run_try,
    cst.Match: _run_match,
    cst.ClassDef: _run_class,
    cst.FunctionDef: _run_def,
}
