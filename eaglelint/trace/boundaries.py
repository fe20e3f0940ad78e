"""Which hidden state an expression is in a loop over decoder layers: h[i] before layer i, h[i + 1] after it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from eaglelint.source.nodes import all_nodes
from eaglelint.trace.graph import Scope

__all__ = ["Boundaries", "Boundary"]


@dataclass(frozen=True, slots=True)
class Boundary:
    """Attributes:
    at: The state, ``h[i]``.
    form: The expression as written.
    where: ``before layer i``.
    index: The loop's variable.
    """

    at: str
    form: str
    where: str
    index: str


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop in which a layer is called with the state of the one before: ``h, r = layer(..., h, r)``."""

    first: int
    last: int
    index: str
    offset: str
    carried: frozenset[str]
    calls: tuple[ast.Assign, ...]
    bindings: tuple[tuple[int, str], ...]  # lines that set what is carried otherwise
    renumbered: int  # the line from which on the index counts from the first layer; 0 where it always does


class Boundaries:
    """The loops over layers of each function, found once."""

    def __init__(self) -> None:
        self._loops: dict[Scope, tuple[_Loop, ...]] = {}

    def of(self, node: ast.expr, scope: Scope) -> Boundary | None:
        """The state that an expression is where it stands; None where that does not follow."""
        loop = self._around(node.lineno, scope)
        return _boundary(node, loop) if loop is not None else None

    def lines_of_loop(self, line: int, scope: Scope) -> tuple[int, int] | None:
        """The first and last line of the loop over layers around a line."""
        loop = self._around(line, scope)
        return (loop.first, loop.last) if loop is not None else None

    def _around(self, line: int, scope: Scope) -> _Loop | None:
        if not scope.is_function:
            return None
        if scope not in self._loops:
            loops = (_loop(each) for each in all_nodes(scope.function_node) if isinstance(each, ast.For))
            self._loops[scope] = tuple(loop for loop in loops if loop is not None)
        return next((loop for loop in self._loops[scope] if loop.first <= line <= loop.last), None)


def _boundary(node: ast.expr, loop: _Loop) -> Boundary | None:
    names = _summed(node)
    if names is None or frozenset(names) != loop.carried:
        return None  # a branch of the state alone, or something else
    before = all(node.lineno < call.lineno for call in loop.calls)
    after = all(node.lineno > (call.end_lineno or call.lineno) for call in loop.calls)
    if not before and not after:
        return None
    first, last = (loop.first, node.lineno) if before else (max(c.lineno for c in loop.calls), node.lineno)
    if any(first <= line < last and name in loop.carried for line, name in loop.bindings):
        return None
    local = loop.offset and not 0 < loop.renumbered < node.lineno
    layer = f"{loop.offset} + {loop.index}" if local else loop.index
    return Boundary(
        f"h[{layer}]" if before else f"h[{layer} + 1]",
        ast.unparse(node),
        f"{'before' if before else 'after'} layer {layer}",
        loop.index,
    )


def _summed(node: ast.expr) -> tuple[str, ...] | None:
    """The names that an expression adds up: of ``h + r``, of ``h + r if r is not None else h``, of ``h`` alone."""
    match node:
        case ast.Name():
            return (node.id,)
        case ast.BinOp(op=ast.Add(), left=ast.Name(id=left), right=ast.Name(id=right)) if left != right:
            return left, right
        case ast.IfExp():
            body, other = _summed(node.body), _summed(node.orelse)
            if body is None or other is None:
                return None
            less, more = (body, other) if len(body) < len(other) else (other, body)
            asked = {inner.id for inner in all_nodes(node.test) if isinstance(inner, ast.Name)}
            if {*less, *asked} == set(more):
                return more  # what is left out is not there
    return None


def _loop(node: ast.For) -> _Loop | None:
    header = _header(node)
    if header is None:
        return None
    index, offset, layer = header
    inner = [each for statement in node.body for each in all_nodes(statement)]
    names = {layer} if layer else set()
    calls: list[ast.Assign] = []
    bindings: list[tuple[int, str]] = []
    carried: frozenset[str] | None = None
    renumbered = 0
    for each in inner:
        if isinstance(each, ast.For | ast.While):
            return None
        if isinstance(each, ast.Name) and each.id == index and isinstance(each.ctx, ast.Store):
            if renumbered or not offset:
                return None
            renumbered = each.lineno
        if isinstance(each, ast.AugAssign):
            if index in _names(each.target):
                return None
            bindings += [(each.lineno, name) for name in _names(each.target)]
        if not isinstance(each, ast.Assign) or len(each.targets) != 1:
            continue
        target, value = each.targets[0], each.value
        if isinstance(target, ast.Name) and target.id == index and not _adds(value, index, offset):
            return None
        if isinstance(target, ast.Name) and _element(value, index):
            names.add(target.id)
            continue
        bound = _names(target)
        if isinstance(value, ast.Call) and (_element(value.func, index) or _is_named(value.func, names)):
            given = {
                inner.id for inner in (*value.args, *(k.value for k in value.keywords)) if isinstance(inner, ast.Name)
            }
            if not bound or (carried is not None and frozenset(bound & given) != carried):
                return None
            carried = frozenset(bound & given)
            calls.append(each)
        else:
            bindings += [(each.lineno, name) for name in bound]
    if not carried or not calls or len(carried) > 2:
        return None
    return _Loop(
        node.lineno, node.end_lineno or node.lineno, index, offset, carried, tuple(calls), tuple(bindings), renumbered
    )


def _adds(node: ast.expr, index: str, offset: str) -> bool:
    """Whether an expression is the index and the number of the first layer: then it is the layer's own number."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return False
    return {ast.unparse(node.left), ast.unparse(node.right)} == {index, offset}


def _header(node: ast.For) -> tuple[str, str, str] | None:
    """The index of a layer in a loop, what is added to make it the layer's own number, and the layer's name."""
    match node.iter, node.target:
        case ast.Call(func=ast.Name(id="range")), ast.Name(id=index):
            return index, "", ""
        case ast.Call(func=ast.Name(id="enumerate"), args=[layers, *start], keywords=keywords), ast.Tuple(
            elts=[ast.Name(id=index), ast.Name(id=layer)]
        ):
            first = _first(layers)
            given = [*start, *(keyword.value for keyword in keywords if keyword.arg == "start")]
            if given:
                return (index, "", layer) if first == ast.unparse(given[0]) else None
            return index, first, layer
    return None


def _first(layers: ast.expr) -> str:
    """The number of the first layer that is gone through: ``a`` of ``layers[a:b]`` and of ``islice(layers, a, b)``."""
    match layers:
        case ast.Subscript(slice=ast.Slice(lower=ast.expr() as lower)):
            return ast.unparse(lower)
        case ast.Call(func=ast.Name(id="islice") | ast.Attribute(attr="islice"), args=[_, lower, _, *_]):
            return ast.unparse(lower)
    return ""


def _element(node: ast.expr, index: str) -> bool:
    """Whether an expression is ``self.layers[i]``."""
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and node.slice.id == index


def _is_named(node: ast.expr, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _names(target: ast.expr) -> set[str]:
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    return {part.id for part in parts if isinstance(part, ast.Name)}
