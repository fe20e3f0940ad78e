"""One path through a function: the tests that held on it, in that function's words or in those of one that it calls."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from eaglelint.source.nodes import all_nodes
from eaglelint.trace.graph import Scope

__all__ = ["Condition", "Handed", "Null", "Path", "Test", "handed_to", "is_none", "merged", "opposite"]

Null = Literal["none", "some", "unknown"]

_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.IsNot: ast.Is, ast.NotEq: ast.Eq, ast.NotIn: ast.In}


class Test:
    """A condition in its positive form, and what is asked of it again and again; one object for each."""

    def __init__(self, node: ast.expr) -> None:
        self.node = node

    @cached_property
    def text(self) -> str:
        return ast.unparse(self.node)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(inner.id for inner in all_nodes(self.node) if isinstance(inner, ast.Name))

    @cached_property
    def mentions(self) -> frozenset[str]:
        """Its names, and its attributes with what they are attributes of."""
        paths = {ast.unparse(inner) for inner in all_nodes(self.node) if isinstance(inner, ast.Attribute)}
        return self.names | paths

    @cached_property
    def asked(self) -> ast.expr | None:
        """What it asks that may be an enum: ``mode`` in ``mode.is_full()`` and ``mode == Mode.FULL``."""
        if isinstance(self.node, ast.Call) and isinstance(self.node.func, ast.Attribute):
            return self.node.func.value
        if isinstance(self.node, ast.Compare) and not isinstance(self.node.comparators[0], ast.Constant):
            return self.node.left
        return None

    @cached_property
    def asked_text(self) -> str:
        return "" if self.asked is None else ast.unparse(self.asked)


def opposite(test: ast.expr) -> ast.expr | None:
    """The positive form of a negative comparison: ``x is None`` of ``x is not None``; None of every other test."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITE:
        return ast.Compare(test.left, [_OPPOSITE[type(test.ops[0])]()], test.comparators)
    return None


@dataclass(frozen=True, slots=True)
class Condition:
    """A test that holds or not on a path. ``live``: the names in it still mean what they meant.

    ``doubtful``: it tests a variable that the function itself sets, so that it may go with the variable in question in
    a way that is not seen here; a path with such a test proves nothing.
    """

    test: Test
    holds: bool
    live: bool = True
    doubtful: bool = False

    def dead(self) -> Condition:
        """The same where a name in it means something else by now."""
        return Condition(self.test, self.holds, False, self.doubtful)


@dataclass(frozen=True)
class Path:
    """What is known on one path: whether the variable is None, and the conditions that led here."""

    null: Null
    conditions: tuple[Condition, ...] = ()

    @cached_property
    def identity(self) -> object:
        return self.null, frozenset((c.test.text, c.holds, c.doubtful) for c in self.conditions if c.live or c.doubtful)

    def forgetting(self, names: frozenset[str]) -> Path:
        """What was known about names that are set anew is not known any more."""
        if not any(c.live and not names.isdisjoint(c.test.mentions) for c in self.conditions):
            return self
        kept = (c if not c.live or names.isdisjoint(c.test.mentions) else c.dead() for c in self.conditions)
        return Path(self.null, tuple(kept))

    def but(self, null: Null) -> Path:
        """The same path with another value of the variable."""
        return self if null == self.null else Path(null, self.conditions)

    def answer(self, text: str) -> bool | None:
        """Whether a test with that text holds on the path; None where it was not asked."""
        return next((c.holds for c in self.conditions if c.live and c.test.text == text), None)


def merged(paths: list[Path]) -> list[Path]:
    """Paths that know the same are one; the one with the fewest conditions stands for them."""
    if len(paths) < 2:
        return paths
    found: dict[object, Path] = {}
    for path in paths:
        identity = path.identity
        known = found.get(identity)
        if known is None or len(path.conditions) < len(known.conditions):
            found[identity] = path
    return list(found.values())


# --- from one function to another ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Handed:
    """What a call hands to each parameter of a function, None where it leaves it out; and conditions on both sides."""

    scope: Scope
    given: dict[str, ast.expr | None]
    _entered: dict[Test, tuple[Test, bool]] = field(default_factory=dict)
    _left: dict[Test, Test] = field(default_factory=dict)

    def into(self, conditions: Iterable[Condition]) -> tuple[Condition, ...]:
        """Conditions of a caller in the words of the function it calls; others stay, for the record."""
        return tuple(self._into(condition) for condition in conditions)

    def _into(self, condition: Condition) -> Condition:
        found = self._entered.get(condition.test)
        if found is None:
            names: dict[str, ast.expr] = {
                ast.unparse(given): ast.Name(name, ast.Load())
                for name, given in self.given.items()
                if given is not None and not isinstance(given, ast.Constant)
            }
            test = _renamed(condition.test, names)
            found = self._entered[condition.test] = test, test.names <= self.given.keys()
        test, inside = found
        return replace(condition, test=test) if inside else condition.dead()

    def back(self, before: tuple[Condition, ...], added: tuple[Condition, ...]) -> tuple[Condition, ...]:
        """Conditions found in the function in the words of its caller, after those that the caller had."""
        own = self.scope.local_names - {name for name, given in self.given.items() if given is not None}
        found = list(before)
        for condition in added:
            if condition.test not in self._left:
                names = {name: given for name, given in self.given.items() if given is not None}
                self._left[condition.test] = _renamed(condition.test, names)
            live = condition.live and condition.test.names.isdisjoint(own)
            found.append(replace(condition, test=self._left[condition.test], live=live))
        return tuple(found)


def handed_to(call: ast.Call, scope: Scope) -> Handed | None:
    """What a call hands to a function; None where that cannot be told."""
    arguments = scope.arguments
    if arguments is None or arguments.vararg or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    if any(keyword.arg is None for keyword in call.keywords):
        return None
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    decorated = {ast.unparse(item) for item in scope.function_node.decorator_list}
    handed: dict[str, ast.expr | None] = {}
    if scope.block is not None and scope.block.owner is not None and "staticmethod" not in decorated and names:
        first = names.pop(0)
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
            handed[first] = call.func.value if "classmethod" not in decorated else None
    handed |= dict.fromkeys([*names, *(argument.arg for argument in arguments.kwonlyargs)])
    if len(call.args) > len(names):
        return None
    handed.update(zip(names, call.args, strict=False))
    handed.update({keyword.arg: keyword.value for keyword in call.keywords if keyword.arg in handed})
    return Handed(scope, handed)


class _Renaming(ast.NodeTransformer):
    def __init__(self, names: dict[str, ast.expr]) -> None:
        self.names = names

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr):
            found = self.names.get(ast.unparse(node))
            if found is not None:
                return copy.deepcopy(found)
        return super().generic_visit(node)

    visit_Name = generic_visit


def _renamed(test: Test, names: dict[str, ast.expr]) -> Test:
    if not any(name in test.text for name in names):
        return test
    node = _Renaming(names).visit(copy.deepcopy(test.node))
    return Test(opposite(node) or node)


def is_none(node: ast.expr) -> bool:
    """Whether an expression is the word None."""
    return isinstance(node, ast.Constant) and node.value is None
