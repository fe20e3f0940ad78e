"""Expressions, evaluated to abstract values.

An expression is prepared once for the slice that it stands in: what can be told from its text, which operator it has,
which names, the place that it is evidence of, is told then. What is left, an evaluation, asks only for what a run has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import libcst as cst

from eaglelint.source.handed_out import is_handed_out
from eaglelint.source.lookup import MISSING, class_mro, get_attribute, global_value
from eaglelint.source.machine import Machine, Raised
from eaglelint.source.slices import Site, Slice
from eaglelint.source.values import (
    Closure,
    Collector,
    Env,
    Frame,
    Instance,
    Iteration,
    Tensor,
    Unknown,
)

__all__ = ["Evaluation", "Maker", "constant", "evaluate", "evaluate_index", "iterate", "prepare", "truth"]

Evaluation = Callable[[Machine, Frame], Any]
Maker = Callable[[Any, Slice], Evaluation]

_MAX_ITEMS = 4096


def evaluate(machine: Machine, node: cst.BaseExpression, frame: Frame) -> Any:
    """The value of an expression.

    Raises:
        Raised: Python would raise while evaluating it.
    """
    prepared = frame.slice.prepared
    known = prepared.get(id(node))
    if known is None:
        known = prepared[id(node)] = node, prepare(node, frame.slice)
    return known[1](machine, frame)


def prepare(node: cst.BaseExpression, piece: Slice) -> Evaluation:
    """What evaluates an expression of that slice."""
    maker = _makers().get(type(node))
    if maker is not None:
        return maker(node, piece)
    why = f"{type(node).__name__} is not followed"
    return lambda machine, frame: Unknown(why)


def constant(value: Any) -> Evaluation:
    """What gives the same value each time."""
    return lambda machine, frame: value


_PLAIN = (bool, int, float, str, bytes, list, tuple, set, frozenset, dict, range, type(None))


def truth(value: Any) -> bool | None:
    """Whether a value counts as true; None where that is not known."""
    kind = type(value)
    if kind is bool or value is None:
        return bool(value)
    if kind is Unknown or kind is Tensor:
        return None
    if kind is Collector:
        from eaglelint.source.collectors import truth_of

        return truth_of(value)
    if kind is Instance:
        if value.payload is not None:
            return bool(value.payload)
        if value.cls is not None and value.cls.info.methods.keys() & {"__bool__", "__len__"}:
            return None
        # An object without source may have a truth of its own; one that was made up for the run stands for something.
        return True if value.cls is not None or value.attrs or value.closed else None
    return bool(value) if kind is not Iteration and isinstance(value, _PLAIN) else True


_ITERABLE = (list, tuple, set, frozenset, str, range, dict)


def iterate(machine: Machine, value: Any, site: Site) -> list[Any] | None:
    """The items of a value that is looped over; None where they are not known."""
    if isinstance(value, Instance):
        if value.payload is not None:
            return list(value.payload)
        return None
    if isinstance(value, Iteration):
        items = list(value)
        machine.heap.touch(value)
        value.clear()
        return items
    if isinstance(value, range) and len(value) > _MAX_ITEMS:
        return None
    if isinstance(value, set | frozenset) and all(isinstance(item, str) for item in value):
        return sorted(value)  # Python's own order changes from process to process
    if isinstance(value, _ITERABLE):
        return list(value)
    if value is None or (isinstance(value, bool | int | float)):
        raise Raised("TypeError", f"{value!r} is not iterable", site)
    return None


# --- names ---------------------------------------------------------------------------------------------------------


_CONSTANTS = {"None": None, "True": True, "False": False}


def _name(node: cst.Name, piece: Slice) -> Evaluation:
    name = node.value
    if name in _CONSTANTS:
        return constant(_CONSTANTS[name])

    def run(machine: Machine, frame: Frame) -> Any:
        env: Env | None = frame.env
        while env is not None:
            variables = env.variables
            if name in variables:
                return machine.current(variables[name]) if machine.overwritten else variables[name]
            env = env.outer
        return global_value(machine, frame.module, name, stub=frame.stub)

    return run


def _attribute(node: cst.Attribute, piece: Slice) -> Evaluation:
    receiver_of, name, site = prepare(node.value, piece), node.attr.value, Site(piece, node)

    def run(machine: Machine, frame: Frame) -> Any:
        receiver = receiver_of(machine, frame)
        if receiver is None:
            if hasattr(None, name):
                return Unknown(f"{name} of None")
            raise Raised("AttributeError", f"{piece.code(node.value)} is None and has no {name}", site)
        found = get_attribute(machine, receiver, name, site)
        if found is MISSING:
            if isinstance(receiver, Instance) and not receiver.closed:
                # The code reads it, so something outside sets it; or it stops here, and the answer says so.
                if receiver.cls is not None:
                    outright = not is_handed_out(class_mro(machine, receiver.cls))
                    machine.miss(f"{receiver.cls.info.name}.{name}", site, outright=outright)
                return Unknown(piece.code(node))
            raise Raised("AttributeError", f"{piece.code(node.value)} has no {name}", site)
        return machine.current(found)

    return run


def _call(node: cst.Call, piece: Slice) -> Evaluation:
    from eaglelint.source.calls import prepare_call

    return prepare_call(node, piece)


def _lambda(node: cst.Lambda, piece: Slice) -> Evaluation:
    from eaglelint.source.construct import default_values

    return lambda machine, frame: Closure(node, replace(frame), default_values(machine, node.params, frame))


def _named(node: cst.NamedExpr, piece: Slice) -> Evaluation:
    from eaglelint.source.assign import assign

    value_of = prepare(node.value, piece)

    def run(machine: Machine, frame: Frame) -> Any:
        value = value_of(machine, frame)
        assign(machine, node.target, value, frame)
        return value

    return run


def _yield(node: cst.Yield, piece: Slice) -> Evaluation:
    value_of = prepare(node.value, piece) if isinstance(node.value, cst.BaseExpression) else constant(None)

    def run(machine: Machine, frame: Frame) -> Any:
        value = value_of(machine, frame)
        if frame.resume is not None:
            frame.resume(value)
            return None
        machine.record("yield", "", value, Site(piece, node))
        return Unknown("what is sent into a generator")

    return run


def _await(node: cst.Await, piece: Slice) -> Evaluation:
    return prepare(node.expression, piece)


# --- items ---------------------------------------------------------------------------------------------------------


def evaluate_index(machine: Machine, node: cst.Subscript, frame: Frame) -> Any:
    """The key of a subscript: a value, a slice, or a tuple of them."""
    prepared = frame.slice.prepared
    known = prepared.get(id(node.slice))  # as the whole subscript's own is what evaluates the item
    if known is None:
        known = prepared[id(node.slice)] = node, _index(node, frame.slice)
    return known[1](machine, frame)


def _index(node: cst.Subscript, piece: Slice) -> Evaluation:
    parts = [_one_index(element.slice, piece) for element in node.slice]
    if len(parts) == 1 and not isinstance(node.slice[0].comma, cst.Comma):
        return parts[0]
    return lambda machine, frame: tuple([part(machine, frame) for part in parts])


def _one_index(index: cst.BaseSlice, piece: Slice) -> Evaluation:
    if isinstance(index, cst.Index):
        return prepare(index.value, piece)
    assert isinstance(index, cst.Slice)
    bounds = [
        constant(None) if part is None else prepare(part, piece) for part in (index.lower, index.upper, index.step)
    ]
    return lambda machine, frame: slice(*[bound(machine, frame) for bound in bounds])


def _subscript(node: cst.Subscript, piece: Slice) -> Evaluation:
    from eaglelint.source.items import as_used, get_item

    receiver_of, key_of, site = prepare(node.value, piece), _index(node, piece), Site(piece, node)

    def run(machine: Machine, frame: Frame) -> Any:
        receiver = receiver_of(machine, frame)
        if receiver is None:
            receiver = as_used(machine, node.value, frame)
        key = key_of(machine, frame)
        return machine.current(get_item(machine, receiver, key, site))

    return run


@cache
def _makers() -> dict[type[cst.CSTNode], Maker]:
    """What prepares which kind of expression; asked for late, as the other files need this one."""
    from eaglelint.source import literals, operations

    own: dict[type[cst.CSTNode], Maker] = {
        cst.Name: _name,
        cst.Attribute: _attribute,
        cst.Call: _call,
        cst.Lambda: _lambda,
        cst.NamedExpr: _named,
        cst.Subscript: _subscript,
        cst.Await: _await,
        cst.Yield: _yield,
    }
    return own | literals.MAKERS | operations.MAKERS
