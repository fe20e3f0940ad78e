"""Conditions under which a line is reached: as text, and what an enum's member says about them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["Guard", "Members", "conjuncts", "guard_text", "guard_texts", "holds_for"]

_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
}


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """A test that holds, or does not; ``note`` stands for conditions that are no expression (``except KeyError``).

    ``deciders`` are the nodes whose value the test looks into: the list of a membership test, a flag.
    """

    test: ast.expr | None
    holds: bool
    note: str = ""
    deciders: tuple[int, ...] = ()


def conjuncts(test: ast.expr, holds: bool) -> list[tuple[ast.expr, bool]]:
    """A condition as parts that all hold: ``not (a or b)`` is ``not a`` and ``not b``."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return conjuncts(test.operand, not holds)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if holds else ast.Or):
        return [part for value in test.values for part in conjuncts(value, holds)]
    return [(test, holds)]


@lru_cache(maxsize=4096)
def guard_text(test: ast.expr, holds: bool) -> str:
    """A condition, or its opposite, as it is written."""
    if not holds and isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITE:
        flipped = ast.Compare(test.left, [_OPPOSITE[type(test.ops[0])]()], test.comparators)
        return ast.unparse(ast.fix_missing_locations(ast.copy_location(flipped, test)))
    written = ast.unparse(test)
    if holds:
        return written
    plain = isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    return f"not {written}" if plain else f"not ({written})"


def guard_texts(guards: tuple[Guard, ...]) -> tuple[str, ...]:
    """The conditions in words, outermost first, none twice."""
    found: dict[str, None] = {}
    for guard in guards:
        if guard.test is None:
            found[guard.note] = None
        else:
            for part, holds in conjuncts(guard.test, guard.holds):
                found[guard_text(part, holds)] = None
    return tuple(found)


# --- enums ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """An enum: its members in order, and its methods as syntax trees."""

    name: str
    members: tuple[str, ...]
    methods: dict[str, ast.FunctionDef]
    values: dict[str, int]

    def answer(self, member: str, method: str, depth: int = 0) -> bool | None:
        """What a method without arguments returns for a member, as far as that can be told."""
        node = self.methods.get(method)
        if node is None or depth > 8:
            return None
        body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        if len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
            return None
        arguments = node.args
        names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        if not names or len(arguments.defaults) < len(names) - 1:
            return None
        known: dict[str, object] = {}
        for name, default in zip(names[1:], arguments.defaults[-len(names) + 1 :] if names[1:] else [], strict=False):
            if isinstance(default, ast.Constant):
                known[name] = default.value
        return self._value(body[0].value, names[0], member, known, depth)

    def _value(self, node: ast.expr, self_name: str, member: str, known: dict[str, object], depth: int) -> bool | None:
        def value(inner: ast.expr) -> bool | None:
            return self._value(inner, self_name, member, known, depth)

        match node:
            case ast.Constant():
                return bool(node.value)
            case ast.Name() if node.id in known:
                return bool(known[node.id])
            case ast.UnaryOp(op=ast.Not()):
                inner = value(node.operand)
                return None if inner is None else not inner
            case ast.BoolOp():
                return three_valued(node, value)
            case ast.IfExp():
                test = value(node.test)
                return None if test is None else value(node.body if test else node.orelse)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=method), args=[], keywords=[]) if (
                owner == self_name
            ):
                return self.answer(member, method, depth + 1)
            case ast.Compare(left=ast.Name(id=owner)) if owner == self_name:
                return self.compare(node, member)
        return None

    def compare(self, node: ast.Compare, member: str) -> bool | None:
        """``X == Enum.A``, ``X in (Enum.A, Enum.B)`` for one member in X's place."""
        if len(node.ops) != 1:
            return None
        operator, other = node.ops[0], node.comparators[0]
        if isinstance(other, ast.Tuple | ast.List | ast.Set) and isinstance(operator, ast.In | ast.NotIn):
            named = [self.member(item) for item in other.elts]
            if None in named:
                return None
            return (member in named) == isinstance(operator, ast.In)
        second = self.member(other)
        if second is None:
            return None
        if isinstance(operator, ast.Eq | ast.Is):
            return member == second
        if isinstance(operator, ast.NotEq | ast.IsNot):
            return member != second
        left, right = self.values.get(member), self.values.get(second)
        if left is None or right is None:
            return None
        order = {ast.Lt: left < right, ast.LtE: left <= right, ast.Gt: left > right, ast.GtE: left >= right}
        return order.get(type(operator))

    def tell(self, test: ast.expr, member: str) -> bool | None:
        """Whether ``x.method()`` or a comparison of x holds where x is that member."""
        if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute):
            return None if test.args or test.keywords else self.answer(member, test.func.attr)
        return self.compare(test, member) if isinstance(test, ast.Compare) else None

    def member(self, node: ast.expr) -> str | None:
        """The member that ``Enum.NAME`` names."""
        if isinstance(node, ast.Attribute) and node.attr in self.members:
            owner = node.value
            last = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
            return node.attr if last in (self.name, "cls", "self") else None
        return None


def three_valued(node: ast.BoolOp, value: object) -> bool | None:
    """``and`` and ``or`` of parts that may be unknown."""
    assert callable(value)
    parts = [value(part) for part in node.values]
    stop = isinstance(node.op, ast.Or)
    if stop in parts:
        return stop
    return None if None in parts else not stop


def holds_for(test: ast.expr, enum: Members, member: str, is_enum: object) -> bool | None:
    """Whether a condition holds where every value of the enum's type is that member; None where it does not say.

    ``is_enum`` tells whether an expression's value is of the enum, given the expression and a method asked of it.
    """
    assert callable(is_enum)
    match test:
        case ast.UnaryOp(op=ast.Not()):
            inner = holds_for(test.operand, enum, member, is_enum)
            return None if inner is None else not inner
        case ast.BoolOp():
            return three_valued(test, lambda part: holds_for(part, enum, member, is_enum))
        case ast.Call(func=ast.Attribute(value=owner, attr=method), args=[], keywords=[]):
            return enum.answer(member, method) if method in enum.methods and is_enum(owner, method) else None
        case ast.Compare(left=left):
            answer = enum.compare(test, member)
            return answer if answer is not None and is_enum(left, "") else None
    return None
