"""What an expression holds: which names' values its own value is, or contains."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from eaglelint.source.nodes import children
from eaglelint.trace.conditions import Guard
from eaglelint.trace.graph import CallSite, Node, Source
from eaglelint.trace.keys import container, fallback, key_argument
from eaglelint.trace.sources import dotted_path, unwrap, wrap

if TYPE_CHECKING:
    from eaglelint.trace.binding import Binding

__all__ = ["MUTATING", "evaluate"]

MUTATING = frozenset(
    [
        "add",
        "append",
        "appendleft",
        "clear",
        "extend",
        "insert",
        "pop",
        "popleft",
        "put",
        "remove",
        "setdefault",
        "update",
    ]
)
"""Methods of containers that change them; a method of a tensor that does ends with an underscore."""

_COLLECTS = frozenset(["add", "append", "appendleft", "insert", "put", "setdefault"])
_TAKES = frozenset(["pop", "popleft", "popitem"])
_TENSOR_VIEWS = frozenset(["T", "mT", "H", "data", "real"])


def evaluate(walker: Binding, node: ast.expr | None, role: str = "read") -> list[Source]:
    """Enter all names of an expression, and return what its value holds."""
    if node is None:
        return []
    handler = _HANDLERS.get(type(node))
    if handler is not None:
        return handler(walker, node, role)
    for child in children(node):
        if isinstance(child, ast.expr):
            evaluate(walker, child)
    return []


def _name(walker: Binding, node: ast.Name, role: str) -> list[Source]:
    return [(walker.load(node, role).id, ())]


def _attribute(walker: Binding, node: ast.Attribute, role: str) -> list[Source]:
    decided = len(walker.deciders[-1]) if walker.deciders else 0
    below = evaluate(walker, node.value)
    if walker.deciders:
        del walker.deciders[-1][decided:]  # the attribute decides, not the object that has it
    found: list[Source] = [(walker.attribute(node, role).id, ())]
    return found + (below if node.attr in _TENSOR_VIEWS else [])


def _constant(walker: Binding, node: ast.Constant, role: str) -> list[Source]:
    if isinstance(node.value, str) and node.value.isidentifier():
        found = walker.key(node, "read")
        return [(found.id, ())] if found is not None else []
    return []


def _subscript(walker: Binding, node: ast.Subscript, role: str) -> list[Source]:
    held = evaluate(walker, node.value)
    index = node.slice
    if isinstance(index, ast.Constant) and isinstance(index.value, str):
        found = unwrap(walker, held, f"k:{index.value}", node) if held else []
        key = walker.key(index, "config-key", container=node.value)
        return found + ([(key.id, ())] if key is not None else [])
    evaluate(walker, index)
    if isinstance(index, ast.Constant) and isinstance(index.value, int) and index.value >= 0:
        return unwrap(walker, held, str(index.value), node)
    if isinstance(index, ast.Slice | ast.Tuple):
        return held
    return unwrap(walker, held, "?", node)


def _conditional(walker: Binding, node: ast.IfExp, role: str) -> list[Source]:
    walker.deciders.append([])
    evaluate(walker, node.test)
    deciders = tuple(walker.deciders.pop())
    with walker.under(Guard(node.test, True, deciders=deciders)):
        body = evaluate(walker, node.body, role)
    with walker.under(Guard(node.test, False, deciders=deciders)):
        other = evaluate(walker, node.orelse, role)
    chosen: list[Source] = []
    if _is_membership(node.test):
        for decider in deciders:
            part = walker.part(node.test, "chooses")
            walker.chooses(decider, part)
            chosen.append((part, ()))
    return body + other + chosen


def _is_membership(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in test.ops)


def _bool(walker: Binding, node: ast.BoolOp, role: str) -> list[Source]:
    found: list[Source] = []
    holds = isinstance(node.op, ast.And)
    before = len(walker.guards)
    for position, value in enumerate(node.values):
        last = position == len(node.values) - 1
        sources = evaluate(walker, value, role)
        if last or not holds:  # `a and b` is b where it is of use
            found += sources
        walker.guards.append(Guard(value, holds))
    del walker.guards[before:]
    return found


def _compare(walker: Binding, node: ast.Compare, role: str) -> list[Source]:
    evaluate(walker, node.left)
    found: list[Source] = []
    for operator, comparator in zip(node.ops, node.comparators, strict=True):
        sources = evaluate(walker, comparator)
        if isinstance(operator, ast.In | ast.NotIn):
            if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
                key = walker.key(node.left, "config-key", container=comparator)
                found += [(key.id, ())] if key is not None else []
                continue
            for source, _ in sources:
                if walker.deciders:
                    walker.deciders[-1].append(source)
                part = walker.part(node, "chooses")
                walker.chooses(source, part)
                found.append((part, ()))
    return found


def _unary(walker: Binding, node: ast.UnaryOp, role: str) -> list[Source]:
    sources = evaluate(walker, node.operand)
    return [] if isinstance(node.op, ast.Not) else sources


def _binary(walker: Binding, node: ast.BinOp, role: str) -> list[Source]:
    left = evaluate(walker, node.left)
    right = evaluate(walker, node.right)
    if isinstance(node.left, ast.Constant | ast.JoinedStr) and isinstance(node.op, ast.Mod):
        return []  # a text
    return left + right


def _tuple(walker: Binding, node: ast.Tuple, role: str) -> list[Source]:
    starred = any(isinstance(element, ast.Starred) for element in node.elts)
    found: list[Source] = []
    for position, element in enumerate(node.elts):
        sources = evaluate(walker, element, role)
        if isinstance(element, ast.Starred):
            found += sources
        else:
            found += wrap(sources, "*" if starred else str(position))
    return found


def _list(walker: Binding, node: ast.List | ast.Set, role: str) -> list[Source]:
    found: list[Source] = []
    for element in node.elts:
        sources = evaluate(walker, element, role)
        found += sources if isinstance(element, ast.Starred) else wrap(sources, "*")
    return found


def _dict(walker: Binding, node: ast.Dict, role: str) -> list[Source]:
    found: list[Source] = []
    for key, value in zip(node.keys, node.values, strict=True):
        sources = evaluate(walker, value, role)
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            entered = walker.key(key, "config-key")
            if entered is not None:
                for source in sources:
                    walker.graph.connect(source, entered.id)
                found += [(entered.id, (f"k:{key.value}",))]
            else:
                found += wrap(sources, f"k:{key.value}")
        else:
            evaluate(walker, key)
            found += wrap(sources, "*") if key is not None else sources
    return found


def _starred(walker: Binding, node: ast.Starred, role: str) -> list[Source]:
    return evaluate(walker, node.value, role)


def _comprehension(
    walker: Binding, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, role: str
) -> list[Source]:
    outer = dict(walker.env)
    before = len(walker.guards)
    for clause in node.generators:
        walker.bind_elements(clause.target, clause.iter)
        for test in clause.ifs:
            walker.deciders.append([])
            evaluate(walker, test)
            walker.guards.append(Guard(test, True, deciders=tuple(walker.deciders.pop())))
    if isinstance(node, ast.DictComp):
        evaluate(walker, node.key)
        found = wrap(evaluate(walker, node.value), "*")
    else:
        found = wrap(evaluate(walker, node.elt), "*")
    del walker.guards[before:]
    walker.env = outer
    return found


def _lambda(walker: Binding, node: ast.Lambda, role: str) -> list[Source]:
    outer = dict(walker.env)
    arguments = node.args
    for default in (*arguments.defaults, *arguments.kw_defaults):
        evaluate(walker, default)
    for argument in _arguments(arguments):
        entered = walker.at(argument, argument.arg, "parameter")
        walker.env[argument.arg] = frozenset({entered.id})
    evaluate(walker, node.body)
    walker.env = outer
    return []


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    extra = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *extra]


def _walrus(walker: Binding, node: ast.NamedExpr, role: str) -> list[Source]:
    sources = evaluate(walker, node.value)
    entered = walker.bind_name(node.target, sources, node.value)
    return [(entered.id, ())]


def _await(walker: Binding, node: ast.Await | ast.YieldFrom, role: str) -> list[Source]:
    sources = evaluate(walker, node.value, "returned" if isinstance(node, ast.YieldFrom) else role)
    if isinstance(node, ast.YieldFrom):
        walker.scope.returns += sources
    return sources


def _yield(walker: Binding, node: ast.Yield, role: str) -> list[Source]:
    walker.scope.returns += wrap(evaluate(walker, node.value, "returned"), "*")
    return []


def _call(walker: Binding, node: ast.Call, role: str) -> list[Source]:
    function = node.func
    name = (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )
    mutated: Node | None = None
    receiver: list[Source] = []
    if isinstance(function, ast.Attribute):
        changes = name in MUTATING or (name.endswith("_") and not name.endswith("__"))
        if changes and dotted_path(function.value) is not None:
            mutated = walker.mutate(function.value)
            receiver = [(mutated.id, ())]
        else:
            receiver = evaluate(walker, function.value)
        walker.attribute(function, "read")
    else:
        receiver = []
        evaluate(walker, function)
    call = walker.call(node)
    call.receiver = receiver
    keyed = key_argument(walker, node, name)
    for position, argument in enumerate(node.args):
        if argument is keyed:
            continue
        starred = isinstance(argument, ast.Starred)
        sources = evaluate(walker, argument.value if isinstance(argument, ast.Starred) else argument, "passed")
        call.arguments.append(("*" if starred else position, sources))
    for keyword in node.keywords:
        sources = evaluate(walker, keyword.value, "passed")
        if keyword.arg is None:
            call.arguments.append(("**", sources))
            continue
        entered = walker.at(keyword, keyword.arg, "passed")
        entered.expression = keyword.value
        for source in sources:
            walker.graph.connect(source, entered.id)
        call.keywords[keyword.arg] = entered.id
        call.arguments.append((keyword.arg, [(entered.id, ())]))
    for _, sources in call.arguments:
        for start, _ in sources:
            walker.graph.nodes[start].calls.append(call)
    if mutated is not None:
        return _mutation(walker, node, name, mutated, call)
    for start, _ in receiver:
        walker.graph.nodes[start].calls.append(call)
    found: list[Source] = [(call.result, ())]
    if keyed is not None and name not in ("hasattr", "has"):
        key = walker.key(keyed, "config-key", container=container(node), fallback=fallback(node, name))
        if key is not None:
            found.append((key.id, ()))
            if name == "setattr":
                for source in call.arguments[-1][1]:
                    walker.graph.connect(source, key.id)
                walker.set_key(key)
    return found


def _mutation(walker: Binding, node: ast.Call, name: str, mutated: Node, call: CallSite) -> list[Source]:
    for _, sources in call.arguments:
        for start, push in sources:
            walker.graph.connect((start, (*push, "*")) if name in _COLLECTS else (start, push), mutated.id)
    call.changes_receiver = True
    mutated.expression = node
    for guard in walker.guards:
        for decider in guard.deciders:
            walker.chooses(decider, mutated.id)
    if name in _TAKES:
        return unwrap(walker, [(mutated.id, ())], "*", node)
    return [(mutated.id, ())] if name.endswith("_") else []


def _joined(walker: Binding, node: ast.JoinedStr, role: str) -> list[Source]:
    for value in node.values:
        evaluate(walker, value)
    return []


def _formatted(walker: Binding, node: ast.FormattedValue, role: str) -> list[Source]:
    evaluate(walker, node.value)
    evaluate(walker, node.format_spec)
    return []


_HANDLERS: dict[type, Callable[..., list[Source]]] = {
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Constant: _constant,
    ast.Subscript: _subscript,
    ast.IfExp: _conditional,
    ast.BoolOp: _bool,
    ast.Compare: _compare,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.Tuple: _tuple,
    ast.List: _list,
    ast.Set: _list,
    ast.Dict: _dict,
    ast.Starred: _starred,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension,
    ast.Lambda: _lambda,
    ast.NamedExpr: _walrus,
    ast.Await: _await,
    ast.YieldFrom: _await,
    ast.Yield: _yield,
    ast.Call: _call,
    ast.JoinedStr: _joined,
    ast.FormattedValue: _formatted,
}
