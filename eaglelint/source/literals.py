"""What is written out in an expression: numbers, strings, lists, dicts, and comprehensions (see expressions.py)."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import libcst as cst

from eaglelint.source.expressions import Evaluation, Maker, constant, evaluate, iterate, prepare, truth
from eaglelint.source.machine import Machine
from eaglelint.source.slices import Site, Slice
from eaglelint.source.values import Env, Frame, Iteration, Opaque, Tensor, Unknown

__all__ = ["MAKERS"]


def _number(node: cst.Integer | cst.Float, piece: Slice) -> Evaluation:
    return constant(_read_literal(node.value))


def _string(node: cst.SimpleString | cst.ConcatenatedString, piece: Slice) -> Evaluation:
    if isinstance(node, cst.SimpleString):
        return constant(_read_literal(node.value))
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
    return piece.code(part.expression) + cst.Module([]).code_for_node(part.equal), part.conversion == "s"


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


# --- comprehensions -------------------------------------------------------------------------------------------------


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


MAKERS: dict[type[cst.CSTNode], Maker] = {
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
    cst.Ellipsis: lambda node, piece: constant(...),
}
