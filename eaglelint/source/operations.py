"""Operators in an expression: arithmetic, comparisons, ``and``, ``or``, ``not``, ``if`` (see expressions.py)."""

from __future__ import annotations

from typing import Any

import libcst as cst

from eaglelint.source.conditions import compared, decided, joined
from eaglelint.source.expressions import Evaluation, Maker, prepare, truth
from eaglelint.source.items import as_used
from eaglelint.source.machine import Machine, changes
from eaglelint.source.operators import binary, compare
from eaglelint.source.same import NotJoinable, join
from eaglelint.source.slices import Site, Slice
from eaglelint.source.values import Frame, Unknown

__all__ = ["MAKERS"]


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
    name, _, comparator = steps[0]
    if len(steps) == 1 and name in ("Is", "IsNot") and isinstance(comparator, cst.Name) and comparator.value == "None":
        return _none_test(first_of, name)

    def run(machine: Machine, frame: Frame) -> Any:
        left = first_of(machine, frame)
        result: Any = True
        for name, right_of, comparator in steps:
            right = right_of(machine, frame)
            if right is None and name in ("In", "NotIn"):
                right = as_used(machine, comparator, frame)
            found = compare(machine, name, left, right, site)
            if found is False:
                return False
            if isinstance(found, Unknown):
                result = compared(found, name, left, right)
            left = right
        return result

    return run


def _none_test(value_of: Evaluation, name: str) -> Evaluation:
    """``x is None`` and ``x is not None``: half of all comparisons."""
    positive = name == "Is"

    def run(machine: Machine, frame: Frame) -> Any:
        value = value_of(machine, frame)
        if type(value) is not Unknown:
            return (value is None) == positive
        return not positive if value.present else compared(Unknown(value.why), name, value, None)

    return run


def _if_exp(node: cst.IfExp, piece: Slice) -> Evaluation:
    from eaglelint.source.choosing import choose

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


MAKERS: dict[type[cst.CSTNode], Maker] = {
    cst.BinaryOperation: _binary,
    cst.BooleanOperation: _boolean,
    cst.UnaryOperation: _unary,
    cst.Comparison: _comparison,
    cst.IfExp: _if_exp,
}
