"""Expressions, evaluated to abstract values."""

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
from eaglelint.source.slices import Site
from eaglelint.source.values import (
    Branch,
    Cat,
    ClassValue,
    Closure,
    Env,
    External,
    Frame,
    Instance,
    Iteration,
    LayerOutput,
    Norm,
    Opaque,
    Tensor,
    TensorBuffer,
    Unknown,
    Weight,
)

__all__ = ["evaluate", "evaluate_index", "iterate", "truth"]

_MAX_ITEMS = 4096


def evaluate(machine: Machine, node: cst.BaseExpression, frame: Frame) -> Any:
    """The value of an expression.

    Raises:
        Raised: Python would raise while evaluating it.
    """
    handler = _HANDLERS.get(type(node))
    return handler(machine, node, frame) if handler else Unknown(f"{type(node).__name__} is not followed")


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


_CONSTANTS = {"None": None, "True": True, "False": False}


def _name(machine: Machine, node: cst.Name, frame: Frame) -> Any:
    if node.value in _CONSTANTS:
        return _CONSTANTS[node.value]
    env = frame.env.find(node.value)
    if env is not None:
        return machine.current(env.variables[node.value])
    return global_value(machine, frame.module, node.value, stub=frame.stub)


def _attribute(machine: Machine, node: cst.Attribute, frame: Frame) -> Any:
    receiver = evaluate(machine, node.value, frame)
    name = node.attr.value
    if receiver is None:
        if hasattr(None, name):
            return Unknown(f"{name} of None")
        raise Raised(
            "AttributeError", f"{frame.slice.code(node.value)} is None and has no {name}", Site(frame.slice, node)
        )
    found = get_attribute(machine, receiver, name, Site(frame.slice, node))
    if found is MISSING:
        if isinstance(receiver, Instance) and not receiver.closed:
            # The code reads it, so something outside sets it; or it stops here, and the answer says so.
            if receiver.cls is not None:
                machine.miss(f"{receiver.cls.info.name}.{name}", Site(frame.slice, node))
            return Unknown(f"{frame.slice.code(node)}")
        raise Raised("AttributeError", f"{frame.slice.code(node.value)} has no {name}", Site(frame.slice, node))
    return machine.current(found)


def _call(machine: Machine, node: cst.Call, frame: Frame) -> Any:
    from eaglelint.source.calls import call_expression

    _HANDLERS[cst.Call] = call_expression  # which needs this module in its turn: it is looked up once
    return call_expression(machine, node, frame)


# --- literals ------------------------------------------------------------------------------------------------------


def _number(machine: Machine, node: cst.Integer | cst.Float, frame: Frame) -> Any:
    return _read_literal(node.value)


def _string(machine: Machine, node: cst.SimpleString | cst.ConcatenatedString, frame: Frame) -> Any:
    if isinstance(node, cst.SimpleString):
        return _read_literal(node.value)
    parts = [evaluate(machine, part, frame) for part in (node.left, node.right)]
    return "".join(parts) if all(isinstance(part, str) for part in parts) else Unknown("a string built at run time")


@lru_cache(maxsize=8192)
def _read_literal(text: str) -> Any:
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return Unknown("a literal that cannot be read")


def _formatted(machine: Machine, node: cst.FormattedString, frame: Frame) -> Any:
    parts = []
    for part in node.parts:
        if isinstance(part, cst.FormattedStringText):
            parts.append(part.value)
        elif isinstance(part, cst.FormattedStringExpression):
            value = evaluate(machine, part.expression, frame)
            if not _is_plain(value) or part.format_spec is not None:
                return Unknown("a string built at run time")
            written = part.conversion or ("r" if part.equal is not None else "s")
            if part.equal is not None:
                parts.append(frame.slice.code(part.expression) + frame.slice.module.code_for_node(part.equal))
            parts.append(str(value) if written == "s" else repr(value))
    return "".join(parts)


def _is_plain(value: Any) -> bool:
    """Whether a value is written here as it is at run time."""
    if isinstance(value, list | tuple):
        return type(value) in (list, tuple) and all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float)


def _list(machine: Machine, node: cst.List, frame: Frame) -> Any:
    items = _elements(machine, node.elements, frame)
    return machine.heap.born(items) if items is not None else Unknown("a list with unknown items in it")


def _tuple(machine: Machine, node: cst.Tuple, frame: Frame) -> Any:
    items = _elements(machine, node.elements, frame)
    return tuple(items) if items is not None else Unknown("a tuple with unknown items in it")


def _set(machine: Machine, node: cst.Set, frame: Frame) -> Any:
    items = _elements(machine, node.elements, frame)
    return _as_set(machine, items)


def _as_set(machine: Machine, items: list[Any] | None) -> Any:
    if items is None:
        return Unknown("a set with unknown items in it")
    try:
        return machine.heap.born(set(items))
    except TypeError:
        return Unknown("a set of things that cannot be compared")


def _elements(machine: Machine, elements: Any, frame: Frame) -> list[Any] | None:
    items: list[Any] = []
    for element in elements:
        value = evaluate(machine, element.value, frame)
        if type(element) is cst.StarredElement:
            inner = iterate(machine, value, Site(frame.slice, element))
            if inner is None:
                return None
            items += inner
        else:
            items.append(value)
    return items


def _dict(machine: Machine, node: cst.Dict, frame: Frame) -> Any:
    result: dict[Any, Any] = {}
    for element in node.elements:
        if isinstance(element, cst.StarredDictElement):
            inner = evaluate(machine, element.value, frame)
            if not isinstance(inner, dict):
                return Unknown("a dict with unknown items in it")
            result.update(inner)
            continue
        assert isinstance(element, cst.DictElement)
        key = evaluate(machine, element.key, frame)
        value = evaluate(machine, element.value, frame)
        try:
            result[key] = value
        except TypeError:
            return Unknown("a dict whose keys are not known")
    return machine.heap.born(result)


# --- comprehensions ------------------------------------------------------------------------------------------------


def _comprehension(machine: Machine, node: Any, frame: Frame, element: Callable[[Frame], Any]) -> list[Any] | None:
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


def _comp_for(
    machine: Machine, comp: cst.CompFor, frame: Frame, items: list[Any], element: Callable[[Frame], Any]
) -> bool:
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
            items.append(element(frame))
    return True


def _list_comp(machine: Machine, node: cst.ListComp | cst.GeneratorExp, frame: Frame) -> Any:
    from eaglelint.source.assign import sited

    items = _comprehension(machine, node, frame, lambda inner: evaluate(machine, node.elt, inner))
    if items is None:
        return _unknown_comprehension(machine, node, frame)
    kind = Iteration if isinstance(node, cst.GeneratorExp) else list
    return machine.heap.born(kind(sited(item, Site(frame.slice, node)) for item in items))


def _unknown_comprehension(machine: Machine, node: Any, frame: Frame) -> Any:
    source = evaluate(machine, node.for_in.iter, frame)
    if isinstance(source, Tensor):
        return Tensor.of(Opaque("a comprehension over a tensor", Site(frame.slice, node)))
    return Unknown(f"a comprehension over {frame.slice.code(node.for_in.iter)}", present=True)


def _set_comp(machine: Machine, node: cst.SetComp, frame: Frame) -> Any:
    return _as_set(machine, _comprehension(machine, node, frame, lambda inner: evaluate(machine, node.elt, inner)))


def _dict_comp(machine: Machine, node: cst.DictComp, frame: Frame) -> Any:
    pairs = _comprehension(
        machine,
        node,
        frame,
        lambda inner: (evaluate(machine, node.key, inner), evaluate(machine, node.value, inner)),
    )
    if pairs is None:
        return Unknown("a dict comprehension over something unknown", present=True)
    if machine.keyed is not None:
        for key, value in pairs:
            machine.keyed(key, value, Site(frame.slice, node))
    try:
        return machine.heap.born(dict(pairs))
    except TypeError:
        return Unknown("a dict whose keys are not known")


# --- operators -----------------------------------------------------------------------------------------------------


def _binary(machine: Machine, node: cst.BinaryOperation, frame: Frame) -> Any:
    left = evaluate(machine, node.left, frame)
    right = evaluate(machine, node.right, frame)
    return binary(machine, type(node.operator).__name__, left, right, Site(frame.slice, node))


def _boolean(machine: Machine, node: cst.BooleanOperation, frame: Frame) -> Any:
    conjunction = type(node.operator) is cst.And
    word = "and" if conjunction else "or"
    left = evaluate(machine, node.left, frame)
    known = truth(left)
    if known is None:
        known = decided(machine, left)
    if known is not None:
        return evaluate(machine, node.right, frame) if known == conjunction else left
    attempt = machine.try_out(lambda: evaluate(machine, node.right, frame))
    if attempt is not None and isinstance(attempt[0], bool | None):
        # "unknown and False" is false, "unknown or True" is true, whatever the unknown is; else it decides.
        if truth(attempt[0]) != conjunction or not isinstance(left, Unknown):
            return not conjunction
        return replace(left, of=joined(left, word, attempt[0])) if left.of else left
    expression = joined(left, word, attempt[0]) if attempt is not None else ""
    return Unknown(left.why if isinstance(left, Unknown) else "a condition that is not known", of=expression)


def _unary(machine: Machine, node: cst.UnaryOperation, frame: Frame) -> Any:
    value = evaluate(machine, node.expression, frame)
    if type(node.operator) is cst.Not:
        known = truth(value)
        return Unknown(value.why if isinstance(value, Unknown) else "") if known is None else not known
    if isinstance(value, int | float):
        if type(node.operator) is cst.Minus:
            return -value
        if type(node.operator) is cst.Plus:
            return +value
        if isinstance(value, int):
            return ~value
    return Unknown("an operand is not known")


def _comparison(machine: Machine, node: cst.Comparison, frame: Frame) -> Any:
    left = evaluate(machine, node.left, frame)
    result: Any = True
    for comparison in node.comparisons:
        right = evaluate(machine, comparison.comparator, frame)
        if right is None and type(comparison.operator) in (cst.In, cst.NotIn):
            right = _as_used(machine, comparison.comparator, frame)
        name = type(comparison.operator).__name__
        step = compared(compare(machine, name, left, right, Site(frame.slice, node)), name, left, right)
        if step is False:
            return False
        if isinstance(step, Unknown):
            result = step
        left = right
    return result


def _if_exp(machine: Machine, node: cst.IfExp, frame: Frame) -> Any:
    known = truth(evaluate(machine, node.test, frame))
    if known is not None:
        return evaluate(machine, node.body if known else node.orelse, frame)
    from eaglelint.source.statements import choose

    left = machine.try_out(lambda: evaluate(machine, node.body, frame))
    right = machine.try_out(lambda: evaluate(machine, node.orelse, frame))
    if left is not None and right is not None and not changes(left[2]) and not changes(right[2]):
        try:
            return join(left[0], right[0], machine.meeting(Site(frame.slice, node)))
        except NotJoinable:
            pass
    return evaluate(machine, node.body if choose(machine, node.test, frame) else node.orelse, frame)


def _lambda(machine: Machine, node: cst.Lambda, frame: Frame) -> Any:
    from eaglelint.source.construct import default_values

    return Closure(node, replace(frame), default_values(machine, node.params, frame))


def _named(machine: Machine, node: cst.NamedExpr, frame: Frame) -> Any:
    from eaglelint.source.assign import assign

    value = evaluate(machine, node.value, frame)
    assign(machine, node.target, value, frame)
    return value


def _yield(machine: Machine, node: cst.Yield, frame: Frame) -> Any:
    value = evaluate(machine, node.value, frame) if isinstance(node.value, cst.BaseExpression) else None
    if frame.resume is not None:
        frame.resume(value)
        return None
    machine.record("yield", "", value, Site(frame.slice, node))
    return Unknown("what is sent into a generator")


def _await(machine: Machine, node: cst.Await, frame: Frame) -> Any:
    return evaluate(machine, node.expression, frame)


# --- items ---------------------------------------------------------------------------------------------------------


def evaluate_index(machine: Machine, node: cst.Subscript, frame: Frame) -> Any:
    """The key of a subscript: a value, a slice, or a tuple of them."""
    keys = [_one_index(machine, element.slice, frame) for element in node.slice]
    return keys[0] if len(keys) == 1 and not _trailing_comma(node) else tuple(keys)


def _trailing_comma(node: cst.Subscript) -> bool:
    return len(node.slice) == 1 and isinstance(node.slice[0].comma, cst.Comma)


def _one_index(machine: Machine, index: cst.BaseSlice, frame: Frame) -> Any:
    if type(index) is cst.Slice:
        parts = [
            None if part is None else evaluate(machine, part, frame) for part in (index.lower, index.upper, index.step)
        ]
        return slice(*parts)
    assert isinstance(index, cst.Index)
    return evaluate(machine, index.value, frame)


def _subscript(machine: Machine, node: cst.Subscript, frame: Frame) -> Any:
    receiver = evaluate(machine, node.value, frame)
    if receiver is None:
        receiver = _as_used(machine, node.value, frame)
    key = evaluate_index(machine, node, frame)
    return machine.current(get_item(machine, receiver, key, Site(frame.slice, node)))


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


_INDEXABLE = (list, tuple, str, range)


def get_item(machine: Machine, receiver: Any, key: Any, site: Site) -> Any:
    """``receiver[key]``.

    Raises:
        Raised: Python would raise for these values.
    """
    if isinstance(receiver, Instance):
        if receiver.payload is None or "__getitem__" in receiver.attrs:
            found = get_attribute(machine, receiver, "__getitem__", site)
            if found is MISSING or isinstance(found, Unknown):
                return Unknown(f"an item of {receiver.name or 'an object'}")
            from eaglelint.source.calls import call_value

            return call_value(machine, found, (key,), {}, site)
        receiver = receiver.payload
    if isinstance(receiver, LayerOutput):
        if key == 0:
            return receiver.hidden if receiver.residual is not None else receiver.whole
        if key == 1 and receiver.residual is not None:
            return receiver.residual
        return Unknown("a further result of a layer") if isinstance(key, int) else receiver.whole
    if isinstance(receiver, Tensor):
        if machine.script and isinstance(key, tuple) and len(key) == 2:
            first, second = key
            if (first is None or isinstance(first, int)) and isinstance(second, slice):
                return receiver  # of the one batch, or of a new one, some tokens
        return _tensor_item(machine, receiver, key, site)
    if isinstance(receiver, TensorBuffer):
        from eaglelint.source.assign import view_of

        return view_of(receiver, key)
    if receiver is None:
        raise Raised("TypeError", "None has no items", site)
    if isinstance(receiver, dict):
        return _dict_item(machine, receiver, key, site)
    if isinstance(receiver, _INDEXABLE):
        if isinstance(key, slice) and _plain_slice(key):
            found = receiver[key]
            return machine.heap.born(found) if isinstance(found, list) else found
        if isinstance(key, int):
            if not -len(receiver) <= key < len(receiver):
                raise Raised("IndexError", f"index {key} of {len(receiver)} items", site)
            return receiver[key]
        if isinstance(key, Unknown) and isinstance(receiver, list | tuple) and receiver:
            return _any_of(machine, list(receiver), site)
        if isinstance(key, slice):
            return Unknown("a slice with bounds that are not known")
        if isinstance(key, Unknown):
            return Unknown(key.why)
        if isinstance(key, str | float | type(None)):
            raise Raised("TypeError", f"{key!r} is no index", site)
    if isinstance(receiver, External):
        return receiver  # a generic type: list[int]
    return Unknown(receiver.why if isinstance(receiver, Unknown) else "an item of something unknown")


def _dict_item(machine: Machine, receiver: dict[Any, Any], key: Any, site: Site) -> Any:
    if isinstance(key, Unknown | Tensor):
        return _any_of(machine, list(receiver.values()), site) if receiver else Unknown("an item of an empty dict")
    try:
        if key in receiver:
            # What was stored under an unknown key may have been stored under this one.
            unsure = (value for known, value in receiver.items() if isinstance(known, Unknown))
            return _any_of(machine, [receiver[key], *unsure], site)
    except TypeError:
        return Unknown("a key that cannot be looked up")
    if any(isinstance(known, Unknown) for known in receiver):
        return Unknown("a dict whose keys are not known")
    raise Raised("KeyError", repr(key), site)


def _any_of(machine: Machine, values: list[Any], site: Site) -> Any:
    """An unknown one of several values: known where they agree; each class of a table in its turn."""
    classes = {id(value.info): value for value in values if isinstance(value, ClassValue)}
    if len(classes) > 1 and all(isinstance(value, ClassValue) for value in values):
        names = tuple(f"when {site.code} is {cls.info.name}" for cls in classes.values())
        return list(classes.values())[machine.decide((site.path, site.code), names, site)]
    first = values[0]
    for other in values[1:]:
        try:
            first = join(first, other)
        except NotJoinable:
            return Unknown("one of several items, which one is not known")
    return first


def _plain_slice(key: slice) -> bool:
    return all(
        part is None or (isinstance(part, int) and not isinstance(part, bool))
        for part in (key.start, key.stop, key.step)
    )


def _tensor_item(machine: Machine, tensor: Tensor, key: Any, site: Site) -> Any:
    """Choosing tokens keeps a state what it is; choosing features, or one of several results, does not."""
    from eaglelint.source.assign import part_of

    term = tensor.single()
    if isinstance(term, Weight):
        return tensor
    if isinstance(term, Cat) and isinstance(key, tuple):
        if all(part is None or part == slice(None) for part in key) or key[-1:] == (slice(None),):
            return tensor
        return machine.opaque("a part of a concatenation", site)
    if isinstance(key, tuple):
        kept = all(isinstance(part, slice) and part == slice(None) for part in key[1:]) or key[-1:] == (slice(None),)
        return tensor if kept else machine.opaque(f"{site.code} chooses features", site)
    if isinstance(key, str):
        return Unknown(f"the item {key!r} of a result that was not followed")
    if isinstance(term, Branch | Opaque) and isinstance(key, int):
        return part_of(term, key) if isinstance(term, Branch) or term.serial is not None else tensor
    if isinstance(term, Norm) or key is not None:
        return tensor
    return tensor


_HANDLERS: dict[type[cst.CSTNode], Callable[[Machine, Any, Frame], Any]] = {
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
    cst.Ellipsis: lambda machine, node, frame: ...,
}
