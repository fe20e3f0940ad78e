"""What is known about a value where it stands: the boundary, how it is made and joined, its shape in symbols.

All of it follows from the code that the trace has seen. Where one of the ways that lead to a place says something else,
or nothing, nothing is said. In shapes ``tokens`` stands for one entry a token, ``H`` for the hidden size.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace

from eaglelint.source.collectives import is_collective
from eaglelint.source.nodes import all_nodes, dotted
from eaglelint.trace.boundaries import Boundaries
from eaglelint.trace.conditions import Guard, conjuncts, guard_text
from eaglelint.trace.graph import Node, Scope, take
from eaglelint.trace.links import Links
from eaglelint.trace.project import Class

__all__ = ["Known"]

_DEEPEST = 60
_DEEPEST_CONTAINERS = 3
_MOST_STEPS = 20_000
_MOST_TEXTS = 4
_MOST_SEARCHED = 300_000_000  # bytes looked through for calls
_MOST_LINES = 120  # with an attribute's name, past which what sets it is not looked for
_MOST_CALLS = 40  # of a function, past which they are not all looked at
_JOINS = frozenset(["torch.cat", "torch.concat", "torch.concatenate"])
_COPIES = frozenset(["clone", "contiguous", "detach", "to", "float", "half", "bfloat16", "cpu", "cuda"])


@dataclass(frozen=True, slots=True)
class State:
    """A hidden state, or several that are joined.

    Attributes:
        at: Which one, ``h[i]``.
        made: How it is written where it is captured; empty where it is written in different ways.
        every: The condition under which there is one for each i.
        count: How many there are by default; 0 where that is not known.
        rows: The first dimension: ``tokens``, or what picks some of them; empty where it is not known.
        axis: Along which dimension they are joined; None where they are not.
    """

    at: str
    made: str
    every: str = ""
    count: int = 0
    rows: str = "tokens"
    axis: int | None = None


@dataclass(frozen=True, slots=True)
class Nothing:
    """An empty list, None, or what a circle leads back to: it says nothing about what else is there."""


_NOTHING = Nothing()
_Found = State | Nothing | None


class Known:
    """Answers for the places of one trace."""

    def __init__(self, links: Links, *, most_searched: int = _MOST_SEARCHED) -> None:
        self.links = links
        self._most_searched = links.project.searched + most_searched
        self.boundaries = Boundaries()
        self._found: dict[tuple[int, tuple[str, ...]], _Found] = {}
        self._busy: set[tuple[int, tuple[str, ...]]] = set()
        self._circles = 0
        self._steps = 0

    def at(self, node: Node) -> str | None:
        """In words; None where nothing is known that the code at the place does not say itself."""
        whole = self._at(node.id, ())
        if isinstance(whole, State):
            return _sentence(whole)
        part = self._at(node.id, ("*",))
        if isinstance(part, State) and part.axis is None:
            return _sentence(part, listed=True)
        return self._lists(node)

    # --- lists of layers ---

    def _lists(self, node: Node) -> str | None:
        """What an attribute that is read may have been set to: ``[2, N // 2, N - 3] or [i + 1 for i in ids]``."""
        found = [each for each in self._stored(node) or () if not _is_empty(each)]
        plain = all(isinstance(each, ast.List | ast.Set | ast.Tuple | ast.ListComp | ast.SetComp) for each in found)
        texts = list(dict.fromkeys(map(ast.unparse, found)))
        return " or ".join(texts) if plain and 0 < len(texts) <= _MOST_TEXTS else None

    def _stored(self, node: Node) -> list[ast.expr] | None:
        """What is assigned to an attribute, all over the files; None where that is not known."""
        if node.attribute != "load" or node.local or node.kind not in ("read", "passed"):
            return None
        if self.links.project.is_on_more_lines(_MOST_LINES, node.name):
            return None
        self.links.link_attribute(node)
        stored: list[ast.expr] = []
        for start, edge in self.links.graph.into[node.id]:
            expression = self.links.graph.nodes[start].expression
            if edge.how == "chooses":
                continue
            if not edge.certain or edge.reset or expression is None:
                return None
            stored.append(expression)
        return stored

    def _default_count(self, test: ast.expr, scope: Scope) -> int:
        """How many layers a list has by default: of those that are written out, where they are equally many."""
        compared = test.comparators[0] if isinstance(test, ast.Compare) else None
        number = self._node(compared, scope) if isinstance(compared, ast.Attribute) else None
        found = self._stored(self.links.graph.nodes[number]) if number is not None else None
        lengths = {
            len(each.elts) for each in found or () if isinstance(each, ast.List | ast.Set | ast.Tuple) and each.elts
        }
        return lengths.pop() if len(lengths) == 1 else 0

    # --- along the graph ---

    def _at(self, number: int, inside: tuple[str, ...]) -> _Found:
        key = (number, inside)
        if key in self._found:
            return self._found[key]
        if key in self._busy:
            self._circles += 1
            return _NOTHING
        self._steps += 1
        if self._steps > _MOST_STEPS or len(self._busy) > _DEEPEST or len(inside) > _DEEPEST_CONTAINERS:
            return None
        before = self._circles
        self._busy.add(key)
        found = self._look(self.links.graph.nodes[number], inside)
        self._busy.discard(key)
        # In a circle it is only a part of the answer, but for one that nothing can mend.
        if found is None or self._circles == before or not self._busy:
            self._found[key] = found
        return found

    def _look(self, node: Node, inside: tuple[str, ...]) -> _Found:
        if node.kind == "mutation":
            return self._changed(node, inside)
        if node.expression is not None and (node.kind == "assignment" or node.constant):
            return self.value(node.expression, node.scope, inside)
        if node.id in self.links.ends and not self.links.graph.into[node.id]:
            return _NOTHING  # a list that a function is handed and does not change
        if node.call is not None:
            return self._called(node.call.node, node.scope, inside)
        if node.parameter:
            return self._handed(node, inside)
        return _agreed(self._arrivals(node, inside) or [None])

    def _handed(self, node: Node, inside: tuple[str, ...]) -> _Found:
        """What calls hand to a parameter; the others are not looked for where one that is linked is unknown."""
        linked = len(self.links.graph.into[node.id])
        found = self._arrivals(node, inside)
        if _agreed(found) is None or self.links.project.searched > self._most_searched:
            return None
        if self.links.is_called_often(node.scope, _MOST_CALLS):
            return None
        self.links.link_callers(node.scope)
        return _agreed([*found, *self._arrivals(node, inside, since=linked)] or [None])

    def _arrivals(self, node: Node, inside: tuple[str, ...], *, since: int = 0) -> list[_Found]:
        """What comes to a place by each of the ways that lead there."""
        nodes, into = self.links.graph.nodes, list(self.links.graph.into[node.id])[since:]
        paired = {nodes[start].name for start, edge in into if edge.leave is not None and _is_tuple(edge.push)}
        found: list[_Found] = []
        for start, edge in into:
            if edge.how == "chooses":
                continue
            if edge.reset or not edge.certain or "?" in edge.pop:
                return [None]
            if edge.leave is not None and not edge.push and _is_tuple(inside) and nodes[start].name in paired:
                continue  # `return hidden` beside `return hidden, aux`: the one alone is no tuple
            stack: tuple[str, ...] | None = (*inside, *(each for each in reversed(edge.pop) if each != "!"))
            for position in reversed(edge.push):
                stack = take(stack, position) if stack else None
            if stack is not None:
                found.append(self._at(start, stack))
                if found[-1] is None:
                    return [None]  # whatever the others say
            elif not inside:
                return [None]  # a container as a whole
        return found

    def _changed(self, node: Node, inside: tuple[str, ...]) -> _Found:
        """A list that something is appended to."""
        graph = self.links.graph
        call = node.expression
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or len(call.args) != 1:
            return None
        if self._is_handed_on(node):
            return None
        before = _agreed(
            self._at(start, inside)
            for start, edge in list(graph.into[node.id])
            if graph.nodes[start].name == node.name and not edge.push and not edge.pop and edge.how != "chooses"
        )
        if before is None:
            return None
        if call.func.attr == "append" and inside[-1:] == ("*",):
            added = self.value(call.args[0], node.scope, inside[:-1])
            test = _membership(node.guards)
            if isinstance(added, State) and not added.every and test is not None:
                added = replace(added, every=guard_text(test, True), count=self._default_count(test, node.scope))
            return _agreed([before, added])
        if call.func.attr == "extend" and inside:
            return _agreed([before, self.value(call.args[0], node.scope, inside)])
        return None

    def _is_handed_on(self, node: Node) -> bool:
        """Whether a list is handed to something that may append to it, in the loop that fills it."""
        lines = self.boundaries.lines_of_loop(node.line, node.scope)
        if lines is None:
            return False
        for call in node.scope.calls:
            tree = call.node
            if not lines[0] <= tree.lineno <= lines[1] or dotted(tree.func) == "len":
                continue
            handed = [*tree.args, *(keyword.value for keyword in tree.keywords)]
            if any(isinstance(n, ast.Name) and n.id == node.name for each in handed for n in all_nodes(each)):
                return True
        return False

    # --- expressions ---

    def value(self, node: ast.expr, scope: Scope, inside: tuple[str, ...]) -> _Found:
        """What an expression is, or what is at a position in it."""
        if not inside:
            boundary = self.boundaries.of(node, scope)
            if boundary is not None:
                return State(boundary.at, f"{boundary.form} {boundary.where}")
        match node:
            case ast.Constant(value=None):
                return _NOTHING
            case ast.Name() | ast.Attribute():
                found = self._node(node, scope)
                return None if found is None else self._at(found, inside)
            case ast.List(elts=[]) | ast.Tuple(elts=[]):
                return _NOTHING
            case ast.List(elts=elements) | ast.Tuple(elts=elements) if inside:
                if inside[-1] == "*":
                    return _agreed(self.value(element, scope, inside[:-1]) for element in elements)
                at = int(inside[-1]) if inside[-1].isdigit() else len(elements)
                return self.value(elements[at], scope, inside[:-1]) if at < len(elements) else None
            case ast.ListComp(elt=element, generators=[clause]) if inside[-1:] == ("*",) and not clause.ifs:
                return self.value(element, scope, inside[:-1])
            case ast.IfExp(body=body, orelse=other):
                return _agreed(self.value(each, scope, inside) for each in (body, other))
            case ast.Subscript():
                return self._indexed(node, scope, inside)
            case ast.Call():
                return self._called(node, scope, inside)
            case ast.NamedExpr(value=inner):
                return self.value(inner, scope, inside)
        return None

    def _indexed(self, node: ast.Subscript, scope: Scope, inside: tuple[str, ...]) -> _Found:
        index = node.slice
        if isinstance(index, ast.Constant) and isinstance(index.value, int) and index.value >= 0:
            return self.value(node.value, scope, (*inside, str(index.value)))
        before = self._circles
        whole = self.value(node.value, scope, inside) if not inside else None
        if self._circles != before:
            return None  # it is picked from again and again
        if isinstance(whole, State):
            picked = isinstance(index, ast.Name | ast.Attribute) and whole.rows == "tokens"
            return replace(whole, rows=ast.unparse(index) if picked else "")
        return whole

    def _called(self, node: ast.Call, scope: Scope, inside: tuple[str, ...]) -> _Found:
        written = dotted(node.func)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else written
        if written in _JOINS and not inside and node.args:
            before = self._circles
            part = self.value(node.args[0], scope, ("*",))
            axis = _axis(node) if self._circles == before else None
            if not isinstance(part, State) or part.axis is not None or axis is None:
                return None if not isinstance(part, Nothing) else part
            if axis == 0 and not part.every:  # pieces of one state
                return replace(part, rows="")
            return replace(part, axis=axis)
        if is_collective(name) and node.args:
            return self.value(node.args[0], scope, inside)
        if isinstance(node.func, ast.Attribute) and name in _COPIES:
            return self.value(node.func.value, scope, inside)
        if written in ("list", "tuple") and len(node.args) == 1:
            return self.value(node.args[0], scope, inside)
        result = self.links.graph.result_of(node, scope)
        if result is None or result.call is None:
            return None
        callees = self.links.types.callees(node.func, self.links.place(scope))
        if _is_tuple(inside) and callees and all(isinstance(callee, Class) for callee in callees):
            return _NOTHING  # an object is no tuple
        self.links.link_call(result.call)
        return _agreed(self._arrivals(result, inside) or [None])

    def _node(self, node: ast.Name | ast.Attribute, scope: Scope) -> int | None:
        name = node.id if isinstance(node, ast.Name) else node.attr
        return self.links.graph.place_of(node, scope, name)


def _is_tuple(stack: tuple[str, ...]) -> bool:
    """Whether the outermost container is a tuple: a position in it has a number."""
    return bool(stack) and stack[-1].isdigit()


def _agreed(found: Iterable[_Found]) -> _Found:
    """What all ways say; None where one does not know, or says something else."""
    agreed: _Found = _NOTHING
    for each in found:
        if each is None:
            return None
        if isinstance(each, Nothing):
            continue
        if isinstance(agreed, State) and agreed != each:
            if (agreed.at, agreed.every, agreed.axis) != (each.at, each.every, each.axis):
                return None
            made = agreed.made if agreed.made == each.made else ""
            rows = agreed.rows if agreed.rows == each.rows else ""
            agreed = replace(agreed, made=made, rows=rows, count=agreed.count if agreed.count == each.count else 0)
        else:
            agreed = each
    return agreed


def _membership(guards: tuple[Guard, ...]) -> ast.expr | None:
    """The condition that says which layers' states are kept: ``i in self.layers_to_capture``."""
    for guard in reversed(guards):
        for test, holds in conjuncts(guard.test, guard.holds) if guard.test is not None else ():
            if holds and isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In):
                return test
    return None


def _is_empty(node: ast.expr) -> bool:
    return (isinstance(node, ast.List | ast.Tuple) and not node.elts) or ast.unparse(node) in ("None", "set()", "[]")


def _axis(call: ast.Call) -> int | None:
    """The dimension that a call of ``torch.cat`` joins along; None where it is not a number."""
    given = next((keyword.value for keyword in call.keywords if keyword.arg in ("dim", "axis")), None)
    given = call.args[1] if given is None and len(call.args) > 1 else given
    if given is None:
        return 0
    try:
        number = ast.literal_eval(given)
    except ValueError:
        return None
    return number if isinstance(number, int) else None


def _sentence(state: State, *, listed: bool = False) -> str:
    every = f" for {state.every}" if state.every else ""
    made = f" ({state.made})" if state.made else ""
    rows = state.rows or "…"
    if listed:
        return f"[{state.at}{every}], each [{rows}, H]{made}"
    if state.axis is None:
        return f"{state.at}{every}, [{rows}, H]{made}"
    joined = f"{state.at}{every}, joined along dimension {state.axis}"
    if state.axis != -1 or not state.every:
        return joined
    default = f", {state.count} by default" if state.count else ""
    return f"{joined}: [{rows}, n·H] with n layers in {state.every.partition(' in ')[2]}{default}"
