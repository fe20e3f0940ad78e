"""Expressions, evaluated to abstract values.

An expression is prepared once for the slice that it stands in: what can be told from its text, which operator it has,
which names, the place that it is evidence of, is told then. What is left, an evaluation, asks only for what a run has.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import libcst as cst

from eaglelint.source.conditions import compared, decided, joined
from eaglelint.source.lookup import MISSING, get_attribute, global_value
from eaglelint.source.machine import Machine, Raised, changes
from eaglelint.source.operators import binary, compare
from eaglelint.source.same import NotJoinable, join
from eaglelint.source.slices import Site, Slice
from eaglelint.source.values import (
    Closure,
    Env,
    Frame,
    Instance,
    Iteration,
    Opaque,
    Tensor,
    Unknown,
)

__all__ = ["Evaluation", "evaluate", "evaluate_index", "iterate", "prepare", "truth"]

Evaluation = Callable[[Machine, Frame], Any]

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
    maker = _MAKERS.get(type(node))
    if maker is not None:
        return maker(node, piece)
    why = f"{type(node).__name__} is not followed"
    return lambda machine, frame: Unknown(why)


def _constant(value: Any) -> Evaluation:
    return lambda machine, frame: value


_PLAIN = (bool, int, float, str, bytes, list, tuple, set, frozenset, dict, range, type(None))


def truth(value: Any) -> bool | None:
    """Whether a value counts as true; None where that is not known."""
    kind = type(value)
    if kind is bool or value is None:
        return bool(value)
    if kind is Unknown or kind is Tensor:
        return None
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
        return _constant(_CONSTANTS[name])

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
                    machine.miss(f"{receiver.cls.info.name}.{name}", site)
                return Unknown(piece.code(node))
            raise Raised("AttributeError", f"{piece.code(node.value)} has no {name}", site)
        return machine.current(found)

    return run


def _call(node: cst.Call, piece: Slice) -> Evaluation:
    from eaglelint.source.calls import prepare_call

    return prepare_call(node, piece)


# --- literals ------------------------------------------------------------------------------------------------------


def _number(node: cst.Integer | cst.Float, piece: Slice) -> Evaluation:
    return _constant(_read_literal(node.value))


def _string(node: cst.SimpleString | cst.ConcatenatedString, piece: Slice) -> Evaluation:
    if isinstance(node, cst.SimpleString):
        return _constant(_read_literal(node.value))
    sides = prepare(node.left, piece), prepare(node.right, piece)

    def run(machine: Machine, frame: Frame) -> Any:
        parts = [side(machine, frame) for side in sides]
        return (
            "".join(parts)
            if all(isinstance(part, str) for part in parts)
            else Unknown("a string built at run time", present=True, text=True)
        )

    return run


@lru_cache(maxsize=8192)
def _read_literal(text: str) -> Any:
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return Unknown("a literal that cannot be read")


def _formatted(node: cst.FormattedString, piece: Slice) -> Evaluation:
    parts = [
        part.value
        if isinstance(part, cst.FormattedStringText)
        else (prepare(part.expression, piece), part.format_spec is None, *_written(part, piece))
        for part in node.parts
        if isinstance(part, cst.FormattedStringText | cst.FormattedStringExpression)
    ]

    def run(machine: Machine, frame: Frame) -> Any:
        texts = []
        for part in parts:
            if isinstance(part, str):
                texts.append(part)
                continue
            value_of, unformatted, before, plain = part
            value = value_of(machine, frame)
            if not unformatted or not _is_plain(value):
                return Unknown("a string built at run time", present=True, text=True)
            texts.append(f"{before}{value}" if plain else f"{before}{value!r}")
        return "".join(texts)

    return run


def _written(part: cst.FormattedStringExpression, piece: Slice) -> tuple[str, bool]:
    """What stands before a value in a string, as ``{x=}`` has it, and whether the value is written as ``str`` does."""
    if part.equal is None:
        return "", (part.conversion or "s") == "s"
    return piece.code(part.expression) + piece.module.code_for_node(part.equal), part.conversion == "s"


def _is_plain(value: Any) -> bool:
    """Whether a value is written here as it is at run time."""
    if isinstance(value, list | tuple):
        return type(value) in (list, tuple) and all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float)


def _list(node: cst.List, piece: Slice) -> Evaluation:
    items_of = _elements(node.elements, piece)

    def run(machine: Machine, frame: Frame) -> Any:
        items = items_of(machine, frame)
        return machine.heap.born(items) if items is not None else Unknown("a list with unknown items in it")

    return run


def _tuple(node: cst.Tuple, piece: Slice) -> Evaluation:
    items_of = _elements(node.elements, piece)

    def run(machine: Machine, frame: Frame) -> Any:
        items = items_of(machine, frame)
        return tuple(items) if items is not None else Unknown("a tuple with unknown items in it")

    return run


def _set(node: cst.Set, piece: Slice) -> Evaluation:
    items_of = _elements(node.elements, piece)
    return lambda machine, frame: _as_set(machine, items_of(machine, frame))


def _as_set(machine: Machine, items: list[Any] | None) -> Any:
    if items is None:
        return Unknown("a set with unknown items in it")
    try:
        return machine.heap.born(set(items))
    except TypeError:
        return Unknown("a set of things that cannot be compared")


def _elements(elements: Any, piece: Slice) -> Callable[[Machine, Frame], list[Any] | None]:
    """What gives the items of a list, tuple or set as it is written; None where one part of them is not known."""
    parts = [
        (prepare(element.value, piece), Site(piece, element) if isinstance(element, cst.StarredElement) else None)
        for element in elements
    ]

    def run(machine: Machine, frame: Frame) -> list[Any] | None:
        items: list[Any] = []
        for value_of, starred in parts:
            value = value_of(machine, frame)
            if starred is None:
                items.append(value)
                continue
            inner = iterate(machine, value, starred)
            if inner is None:
                return None
            items += inner
        return items

    return run


def _dict(node: cst.Dict, piece: Slice) -> Evaluation:
    parts = [
        (prepare(element.key, piece) if isinstance(element, cst.DictElement) else None, prepare(element.value, piece))
        for element in node.elements
    ]

    def run(machine: Machine, frame: Frame) -> Any:
        result: dict[Any, Any] = {}
        for key_of, value_of in parts:
            if key_of is None:
                inner = value_of(machine, frame)
                if not isinstance(inner, dict):
                    return Unknown("a dict with unknown items in it")
                result.update(inner)
                continue
            key = key_of(machine, frame)
            value = value_of(machine, frame)
            try:
                result[key] = value
            except TypeError:
                return Unknown("a dict whose keys are not known")
        return machine.heap.born(result)

    return run


# --- comprehensions ------------------------------------------------------------------------------------------------


def _comprehension(machine: Machine, node: Any, frame: Frame, element: Evaluation) -> list[Any] | None:
    inner = Frame(
        frame.slice,
        frame.module,
        Env({}, frame.env),
        frame.function,
        frame.owner,
        frame.receiver,
        stub=frame.stub,
    )
    items: list[Any] = []
    return items if _comp_for(machine, node.for_in, inner, items, element) else None


def _comp_for(machine: Machine, comp: cst.CompFor, frame: Frame, items: list[Any], element: Evaluation) -> bool:
    from eaglelint.source.assign import assign

    values = iterate(machine, evaluate(machine, comp.iter, frame), Site(frame.slice, comp.iter))
    if values is None:
        return False
    for value in values:
        machine.step()
        assign(machine, comp.target, value, frame)
        keep = True
        for test in comp.ifs:
            known = truth(evaluate(machine, test.test, frame))
            if known is None:
                return False
            if machine.tested is not None:
                machine.tested(test.test, frame)
            keep = keep and known
        if not keep:
            continue
        if comp.inner_for_in is not None:
            if not _comp_for(machine, comp.inner_for_in, frame, items, element):
                return False
        else:
            items.append(element(machine, frame))
    return True


def _list_comp(node: cst.ListComp | cst.GeneratorExp, piece: Slice) -> Evaluation:
    from eaglelint.source.assign import sited

    element, site = prepare(node.elt, piece), Site(piece, node)
    kind = Iteration if isinstance(node, cst.GeneratorExp) else list

    def run(machine: Machine, frame: Frame) -> Any:
        items = _comprehension(machine, node, frame, element)
        if items is None:
            return _unknown_comprehension(machine, node, frame)
        return machine.heap.born(kind(sited(item, site) for item in items))

    return run


def _unknown_comprehension(machine: Machine, node: Any, frame: Frame) -> Any:
    source = evaluate(machine, node.for_in.iter, frame)
    if isinstance(source, Tensor):
        return Tensor.of(Opaque("a comprehension over a tensor", Site(frame.slice, node)))
    return Unknown(f"a comprehension over {frame.slice.code(node.for_in.iter)}", present=True)


def _set_comp(node: cst.SetComp, piece: Slice) -> Evaluation:
    element = prepare(node.elt, piece)
    return lambda machine, frame: _as_set(machine, _comprehension(machine, node, frame, element))


def _dict_comp(node: cst.DictComp, piece: Slice) -> Evaluation:
    key_of, value_of, site = prepare(node.key, piece), prepare(node.value, piece), Site(piece, node)

    def pair(machine: Machine, frame: Frame) -> Any:
        return key_of(machine, frame), value_of(machine, frame)

    def run(machine: Machine, frame: Frame) -> Any:
        pairs = _comprehension(machine, node, frame, pair)
        if pairs is None:
            return Unknown("a dict comprehension over something unknown", present=True)
        if machine.keyed is not None:
            for key, value in pairs:
                machine.keyed(key, value, site)
        try:
            return machine.heap.born(dict(pairs))
        except TypeError:
            return Unknown("a dict whose keys are not known")

    return run


# --- operators -----------------------------------------------------------------------------------------------------


def _binary(node: cst.BinaryOperation, piece: Slice) -> Evaluation:
    left_of, right_of, site = prepare(node.left, piece), prepare(node.right, piece), Site(piece, node)
    name = type(node.operator).__name__

    def run(machine: Machine, frame: Frame) -> Any:
        left = left_of(machine, frame)
        return binary(machine, name, left, right_of(machine, frame), site)

    return run


def _boolean(node: cst.BooleanOperation, piece: Slice) -> Evaluation:
    left_of, right_of = prepare(node.left, piece), prepare(node.right, piece)
    conjunction = isinstance(node.operator, cst.And)
    word = "and" if conjunction else "or"

    def run(machine: Machine, frame: Frame) -> Any:
        left = left_of(machine, frame)
        known = truth(left)
        if known is None:
            known = decided(machine, left)
        if known is not None:
            return right_of(machine, frame) if known == conjunction else left
        attempt = machine.try_out(lambda: right_of(machine, frame))
        if attempt is not None and (attempt[0] is None or isinstance(attempt[0], bool)):
            # "unknown and False" is false, "unknown or True" is true, whatever the unknown is; else it decides.
            if truth(attempt[0]) != conjunction or not isinstance(left, Unknown):
                return not conjunction
            return left.named(joined(left, word, attempt[0])) if left.of else left
        expression = joined(left, word, attempt[0]) if attempt is not None else ""
        return Unknown(left.why if isinstance(left, Unknown) else "a condition that is not known", of=expression)

    return run


def _unary(node: cst.UnaryOperation, piece: Slice) -> Evaluation:
    value_of, operator = prepare(node.expression, piece), type(node.operator)

    def negation(machine: Machine, frame: Frame) -> Any:
        value = value_of(machine, frame)
        known = truth(value)
        return Unknown(value.why if isinstance(value, Unknown) else "") if known is None else not known

    def run(machine: Machine, frame: Frame) -> Any:
        value = value_of(machine, frame)
        if isinstance(value, int | float):
            if operator is cst.Minus:
                return -value
            if operator is cst.Plus:
                return +value
            if isinstance(value, int):
                return ~value
        return Unknown("an operand is not known")

    return negation if operator is cst.Not else run


def _comparison(node: cst.Comparison, piece: Slice) -> Evaluation:
    first_of, site = prepare(node.left, piece), Site(piece, node)
    steps = [
        (type(step.operator).__name__, prepare(step.comparator, piece), step.comparator) for step in node.comparisons
    ]

    def run(machine: Machine, frame: Frame) -> Any:
        left = first_of(machine, frame)
        result: Any = True
        for name, right_of, comparator in steps:
            right = right_of(machine, frame)
            if right is None and name in ("In", "NotIn"):
                right = _as_used(machine, comparator, frame)
            found = compare(machine, name, left, right, site)
            if found is False:
                return False
            if isinstance(found, Unknown):
                result = compared(found, name, left, right)
            left = right
        return result

    return run


def _if_exp(node: cst.IfExp, piece: Slice) -> Evaluation:
    from eaglelint.source.statements import choose

    test_of, body_of, orelse_of = prepare(node.test, piece), prepare(node.body, piece), prepare(node.orelse, piece)
    site = Site(piece, node)

    def run(machine: Machine, frame: Frame) -> Any:
        known = truth(test_of(machine, frame))
        if known is not None:
            return body_of(machine, frame) if known else orelse_of(machine, frame)
        left = machine.try_out(lambda: body_of(machine, frame))
        right = machine.try_out(lambda: orelse_of(machine, frame))
        if left is not None and right is not None and not changes(left[2]) and not changes(right[2]):
            try:
                return join(left[0], right[0], machine.meeting(site))
            except NotJoinable:
                pass
        return (body_of if choose(machine, node.test, frame) else orelse_of)(machine, frame)

    return run


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
    value_of = prepare(node.value, piece) if isinstance(node.value, cst.BaseExpression) else _constant(None)

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
    return _index(node, frame.slice)(machine, frame)


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
        _constant(None) if part is None else prepare(part, piece) for part in (index.lower, index.upper, index.step)
    ]
    return lambda machine, frame: slice(*[bound(machine, frame) for bound in bounds])


def _subscript(node: cst.Subscript, piece: Slice) -> Evaluation:
    from eaglelint.source.items import get_item

    receiver_of, key_of, site = prepare(node.value, piece), _index(node, piece), Site(piece, node)

    def run(machine: Machine, frame: Frame) -> Any:
        receiver = receiver_of(machine, frame)
        if receiver is None:
            receiver = _as_used(machine, node.value, frame)
        key = key_of(machine, frame)
        return machine.current(get_item(machine, receiver, key, site))

    return run


def _as_used(machine: Machine, node: cst.BaseExpression, frame: Frame) -> Any:
    """What is None and used as a container: where the target's config lacks that key and its class leaves it at None.

    A model would not start with that; a config that is served says something else.
    """
    holder = evaluate(machine, node.value, frame) if isinstance(node, cst.Attribute) else None
    if not isinstance(node, cst.Attribute) or not isinstance(holder, Instance):
        return None
    name = node.attr.value
    if not holder.is_config or holder.cls is None or name in holder.kwargs or name in holder.attrs:
        return None
    machine.used_assumptions.add(f"{holder.name}.{name} is given")
    return Unknown(f"{name} of {holder.name}", present=True, key=f"{holder.name}.{name}")


_MAKERS: dict[type[cst.CSTNode], Callable[[Any, Slice], Evaluation]] = {
    cst.Name: _name,
    cst.Attribute: _attribute,
    cst.Call: _call,
    cst.Integer: _number,
    cst.Float: _number,
    cst.SimpleString: _string,
    cst.ConcatenatedString: _string,
    cst.FormattedString: _formatted,
    cst.List: _list,
    cst.Tuple: _tuple,
    cst.Set: _set,
    cst.Dict: _dict,
    cst.ListComp: _list_comp,
    cst.GeneratorExp: _list_comp,
    cst.SetComp: _set_comp,
    cst.DictComp: _dict_comp,
    cst.BinaryOperation: _binary,
    cst.BooleanOperation: _boolean,
    cst.UnaryOperation: _unary,
    cst.Comparison: _comparison,
    cst.IfExp: _if_exp,
    cst.Lambda: _lambda,
    cst.NamedExpr: _named,
    cst.Subscript: _subscript,
    cst.Await: _await,
    cst.Yield: _yield,
    cst.Ellipsis: lambda node, piece: _constant(...),
}
