"""Which side of a condition runs: what can be told of it, and else which one a path takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import libcst as cst

from eaglelint.source.conditions import condition_of, decided, texts_of
from eaglelint.source.expressions import evaluate, truth
from eaglelint.source.machine import Machine, TooLong
from eaglelint.source.slices import Site
from eaglelint.source.values import Choice, Frame, Unknown

__all__ = ["choose", "known_truth"]


def known_truth(machine: Machine, test: cst.BaseExpression, frame: Frame) -> bool | None:
    """The truth of a condition; inside a layer only as far as it can be told with little work."""
    if not machine.in_layer:
        return _truth(machine, test, frame)
    given_up = machine.memo.setdefault("conditions given up", set())
    if test in given_up:
        return None
    try:
        return machine.within(machine.budget.test_steps, lambda: _truth(machine, test, frame))  # type: ignore[no-any-return]
    except TooLong:
        if machine.steps > machine.soft_limit:
            raise
        given_up.add(test)
        return None


def _truth(machine: Machine, test: cst.BaseExpression, frame: Frame) -> bool | None:
    value = evaluate(machine, test, frame)
    if machine.tested is not None:
        machine.tested(test, frame)
    known = truth(value)
    return decided(machine, value) if known is None else known


_NEGATIVE = (cst.IsNot, cst.NotIn, cst.NotEqual)


def choose(machine: Machine, test: cst.BaseExpression, frame: Frame, only: bool | None = None) -> bool:
    """Decide an unknown condition for this path; "not x" is decided by what x was decided to be, and the reverse.

    ``only`` is the one side that counts, where that is known: there is no other path then.
    """
    inner, negated = test, False
    while type(inner) is cst.UnaryOperation and type(inner.operator) is cst.Not:
        inner, negated = inner.expression, not negated
    attempt = machine.try_out(lambda: evaluate(machine, inner, frame))
    value = attempt[0] if attempt is not None else None
    if isinstance(value, Unknown) and value.choice is not None:
        return _earlier_choice(machine, value.choice, Site(frame.slice, test)) != negated
    of_config, opposite = condition_of(value)
    if of_config:
        return _decide(machine, ("", of_config), texts_of(of_config), negated != opposite, test, frame, only)
    if type(inner) is cst.BooleanOperation:
        known = _choose_parts(machine, inner, frame)
        if known is not None:
            return known != negated
    code = frame.slice.code(inner)
    fails = f"when not ({code})" if " " in code else f"when not {code}"
    if type(inner) is cst.Comparison and len(inner.comparisons) == 1:
        for positive, negative in ((" is ", " is not "), (" in ", " not in "), (" == ", " != ")):
            if type(inner.comparisons[0].operator) in _NEGATIVE and negative in code:
                code, fails, negated = code.replace(negative, positive, 1), f"when {code}", not negated
                break
    return _decide(machine, (frame.function, code), (fails, f"when {code}"), negated, test, frame, only)


def _choose_parts(machine: Machine, test: cst.BooleanOperation, frame: Frame) -> bool | None:
    """Decide the first operands of ``and`` or ``or``, those of the target's config; None if that leaves it open."""
    conjunction = isinstance(test.operator, cst.And)
    for operand in _operands(test):
        known = known_truth(machine, operand, frame)
        if known is None:
            inner = operand
            while isinstance(inner, cst.UnaryOperation) and isinstance(inner.operator, cst.Not):
                inner = inner.expression
            attempt = machine.try_out(lambda inner=inner: evaluate(machine, inner, frame))  # type: ignore[misc]
            if attempt is None or not condition_of(attempt[0])[0]:
                return None
            known = choose(machine, operand, frame)
        if known != conjunction:
            return not conjunction
    return conjunction


def _operands(test: cst.BaseExpression, kind: type[cst.BaseBooleanOp] | None = None) -> list[cst.BaseExpression]:
    """The operands of a chain of one of ``and``, ``or``, in order."""
    if isinstance(test, cst.BooleanOperation) and (kind is None or isinstance(test.operator, kind)):
        kind = type(test.operator)
        return [*_operands(test.left, kind), *_operands(test.right, kind)]
    return [test]


def _decide(
    machine: Machine,
    key: tuple[str, str],
    sides: tuple[str, str],
    negated: bool,
    test: cst.BaseExpression,
    frame: Frame,
    only: bool | None = None,
) -> bool:
    """Whether a test holds by the choice that this path takes between the two sides of its condition."""
    # The usual case first: what a "not" or an inequality guards against is rarer than what it does not.
    texts = sides[::-1] if negated else sides
    if machine.is_decided(key, texts[::-1]):
        texts = texts[::-1]
    values = _read_values(machine, test, frame) if machine.script else ()
    if only is not None:
        machine.settle(key, texts, texts.index(sides[only != negated]), values)
    choice = machine.decide(key, texts, Site(frame.slice, test), values)
    return (texts[choice] == sides[1]) != negated


def _earlier_choice(machine: Machine, known: Choice, site: Site) -> bool:
    """The side that another condition decides, the one that this truth value comes from."""
    if machine.is_decided(known.key, known.texts[::-1]):
        known = replace(known, texts=known.texts[::-1], values=known.values[::-1])
    return known.values[machine.decide(known.key, known.texts, site)]


def _unknown_parts(machine: Machine, test: cst.BaseExpression, frame: Frame) -> list[cst.BaseExpression]:
    """The operands of ``and``, ``or`` and ``not`` whose truth is not known."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _unknown_parts(machine, test.expression, frame)
    if isinstance(test, cst.BooleanOperation):
        return [
            *_unknown_parts(machine, test.left, frame),
            *_unknown_parts(machine, test.right, frame),
        ]
    attempt = machine.try_out(lambda: truth(evaluate(machine, test, frame)))
    return [test] if attempt is None or attempt[0] is None else []


def _read_values(machine: Machine, test: cst.BaseExpression, frame: Frame) -> tuple[Any, ...]:
    """The values of the names that an unknown condition reads: where they change, it is another condition."""
    names: set[str] = set()
    attributes: list[cst.Attribute] = []
    for part in _unknown_parts(machine, test, frame):
        read = machine.memo.get(("reads", part))
        if read is None:
            read = machine.memo["reads", part] = _Read()
            part.visit(read)
        names |= read.names
        attributes += read.attributes
    found = ((name, frame.env.find(name)) for name in sorted(names))
    values = [env.variables[name] for name, env in found if env is not None]
    for node in attributes:
        attempt = machine.try_out(lambda node=node: evaluate(machine, node, frame))  # type: ignore[misc]
        value = attempt[0] if attempt is not None else None
        # An unknown attribute of an object is taken as the same each time, unless its name says that it is an index.
        if isinstance(value, int | str) or any(word in node.attr.value for word in ("layer", "idx", "index")):
            values.append(value)
    return tuple(values)


class _Read(cst.CSTVisitor):
    def __init__(self) -> None:
        self.names: set[str] = set()
        self.attributes: list[cst.Attribute] = []

    def visit_Name(self, node: cst.Name) -> None:
        self.names.add(node.value)

    def visit_Attribute(self, node: cst.Attribute) -> None:
        self.attributes.append(node)
