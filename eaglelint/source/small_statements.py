"""Statements that hold no other statements, prepared for their slice like expressions (expressions.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import libcst as cst

from eaglelint.source.assign import assign, bind_name, delete
from eaglelint.source.expressions import evaluate, prepare, truth
from eaglelint.source.index import Import
from eaglelint.source.lookup import class_mro, import_value
from eaglelint.source.machine import Machine, Raised
from eaglelint.source.operators import binary
from eaglelint.source.slices import Site, Slice
from eaglelint.source.values import ClassValue, Frame, Tensor

__all__ = ["Flow", "Runner", "prepare_line"]

# How a block ended: None at its end, else ("return", value), ("break", None) or ("continue", None).
Flow = tuple[str, Any] | None
Runner = Callable[[Machine, Frame], Flow]


def prepare_line(body: Sequence[cst.BaseSmallStatement], piece: Slice) -> Runner:
    """What runs the statements of one line."""
    runners = [_MAKERS[type(statement)](statement, piece) for statement in body if type(statement) in _MAKERS]
    if len(runners) == 1:
        return runners[0]

    def run(machine: Machine, frame: Frame) -> Flow:
        for runner in runners:
            flow = runner(machine, frame)
            if flow is not None:
                return flow
        return None

    return run


def _ended(how: str) -> Callable[[Any, Slice], Runner]:
    return lambda statement, piece: lambda machine, frame: (how, None)


def _expression(statement: cst.Expr, piece: Slice) -> Runner:
    value_of = prepare(statement.value, piece)

    def run(machine: Machine, frame: Frame) -> Flow:
        machine.statement = statement.value
        value_of(machine, frame)
        return None

    return run


def _assign(statement: cst.Assign, piece: Slice) -> Runner:
    value_of, targets = prepare(statement.value, piece), [target.target for target in statement.targets]
    name = targets[0].value if len(targets) == 1 and isinstance(targets[0], cst.Name) else ""

    def run(machine: Machine, frame: Frame) -> Flow:
        value = value_of(machine, frame)
        for target in targets:
            assign(machine, target, value, frame)
        return None

    def run_name(machine: Machine, frame: Frame) -> Flow:
        bind_name(machine, name, value_of(machine, frame), frame)
        return None

    return run_name if name else run


def _annotated(statement: cst.AnnAssign, piece: Slice) -> Runner:
    value_of = prepare(statement.value, piece) if statement.value is not None else None

    def run(machine: Machine, frame: Frame) -> Flow:
        if value_of is not None:
            assign(machine, statement.target, value_of(machine, frame), frame)
        return None

    return run


def _augmented(statement: cst.AugAssign, piece: Slice) -> Runner:
    target_of, value_of = prepare(statement.target, piece), prepare(statement.value, piece)
    operator, site = type(statement.operator).__name__.removesuffix("Assign"), Site(piece, statement)

    def run(machine: Machine, frame: Frame) -> Flow:
        left = target_of(machine, frame)
        right = value_of(machine, frame)
        result = binary(machine, operator, left, right, site, in_place=True)
        if isinstance(left, Tensor) and isinstance(result, Tensor):
            result = machine.overwrite(left, result)
        assign(machine, statement.target, result, frame)
        return None

    return run


def _return(statement: cst.Return, piece: Slice) -> Runner:
    if statement.value is None:
        return lambda machine, frame: ("return", None)
    value_of = prepare(statement.value, piece)
    return lambda machine, frame: ("return", value_of(machine, frame))


def _raise(statement: cst.Raise, piece: Slice) -> Runner:
    def run(machine: Machine, frame: Frame) -> Flow:
        raise _raised(machine, statement, frame)

    return run


def _assert(statement: cst.Assert, piece: Slice) -> Runner:
    test_of = prepare(statement.test, piece)

    def run(machine: Machine, frame: Frame) -> Flow:
        if truth(test_of(machine, frame)) is False:
            text = None if statement.msg is None else evaluate(machine, statement.msg, frame)
            said = text if isinstance(text, str) else piece.code(statement.test)
            raise Raised("AssertionError", said, Site(piece, statement), explicit=True)
        return None

    return run


def _del(statement: cst.Del, piece: Slice) -> Runner:
    def run(machine: Machine, frame: Frame) -> Flow:
        delete(machine, statement.target, frame)
        return None

    return run


def _elsewhere(statement: cst.Nonlocal | cst.Global, piece: Slice) -> Runner:
    names = [item.name.value for item in statement.names]
    is_global = isinstance(statement, cst.Global)

    def run(machine: Machine, frame: Frame) -> Flow:
        env = frame.env
        outer = None if is_global else env.outer
        found = {name: outer.find(name) if outer is not None else None for name in names}
        env.elsewhere = {**(env.elsewhere or {}), **found}
        return None

    return run


def _import(statement: cst.Import | cst.ImportFrom, piece: Slice) -> Runner:
    imported = list(_imported(statement, piece))

    def run(machine: Machine, frame: Frame) -> Flow:
        for name, found in imported:
            frame.env.variables[name] = import_value(machine, frame.module, found)
        return None

    return run


def _imported(statement: cst.Import | cst.ImportFrom, piece: Slice) -> Iterator[tuple[str, Import]]:
    """What an import statement binds, by name."""
    if isinstance(statement, cst.Import):
        for alias in statement.names:
            dotted = piece.code(alias.name)
            bound = alias.asname.name.value if alias.asname and isinstance(alias.asname.name, cst.Name) else None
            name = dotted if bound else dotted.split(".", 1)[0]
            yield bound or name, Import(name, None)
        return
    module = piece.code(statement.module) if statement.module is not None else ""
    for alias in () if isinstance(statement.names, cst.ImportStar) else statement.names:
        name = alias.name.value if isinstance(alias.name, cst.Name) else piece.code(alias.name)
        local = alias.asname.name.value if alias.asname and isinstance(alias.asname.name, cst.Name) else name
        yield local, Import(module, name, len(statement.relative))


def _raised(machine: Machine, statement: cst.Raise, frame: Frame) -> Raised:
    site = Site(frame.slice, statement)
    if statement.exc is None:
        return Raised("Exception", "raised again", site)
    target = statement.exc.func if isinstance(statement.exc, cst.Call) else statement.exc
    cls = evaluate(machine, target, frame)
    parents: list[str] = []
    if isinstance(cls, ClassValue):
        for entry in class_mro(machine, cls):
            name = entry if isinstance(entry, str) else entry.info.name
            parents += Raised(name.rsplit(".", 1)[-1], "", None).kinds
    kind = frame.slice.code(target).rsplit(".", 1)[-1]
    return Raised(kind, _said(machine, statement.exc, frame), site, parents, explicit=True)


def _said(machine: Machine, exception: cst.BaseExpression, frame: Frame) -> str:
    """The message of an exception where it is known, else the exception as it is written."""
    if isinstance(exception, cst.Call) and exception.args:
        attempt = machine.try_out(lambda: evaluate(machine, exception.args[0].value, frame))
        if attempt is not None and isinstance(attempt[0], str):
            return attempt[0]
    return frame.slice.code(exception)


_MAKERS: dict[type[cst.CSTNode], Callable[[Any, Slice], Runner]] = {
    cst.Expr: _expression,
    cst.Assign: _assign,
    cst.AnnAssign: _annotated,
    cst.AugAssign: _augmented,
    cst.Return: _return,
    cst.Break: _ended("break"),
    cst.Continue: _ended("continue"),
    cst.Raise: _raise,
    cst.Assert: _assert,
    cst.Del: _del,
    cst.Import: _import,
    cst.ImportFrom: _import,
    cst.Nonlocal: _elsewhere,
    cst.Global: _elsewhere,
}
