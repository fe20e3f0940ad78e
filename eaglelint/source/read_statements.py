"""Statements as libcst has them, from what Python's own parser read."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from eaglelint.source.outline import characters
from eaglelint.source.read_expressions import (
    AUGMENTED,
    annotation,
    argument,
    elements,
    expression,
    keyword,
    parameters,
    valued,
)
from eaglelint.source.reading import NotRead, Placed, Reading, Span, name_node, new_node, plain_node

__all__ = ["read_statements"]


def read_statements(text: str) -> Reading:
    """The statements of a text.

    Raises:
        SyntaxError: It is no Python.
        NotRead: It has something that is not read here.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    reading = Reading(text.split("\n"))
    reading.body = _statements(tree.body, reading)
    return reading


# --- statements -----------------------------------------------------------------------------------------------------


def _statements(body: Sequence[ast.stmt], reading: Reading) -> tuple[cst.BaseStatement, ...]:
    """The statements of a block on lines of its own; those that share a line stand in one ``SimpleStatementLine``."""
    found: list[Any] = []
    sharing: list[Any] = []
    column = body[0].col_offset if body else 0
    for each in body:
        if each.__class__ not in _SIMPLE:
            found.append(reading.node_of(each, _COMPOUND))
            continue
        node = reading.node_of(each, _SIMPLE)
        if sharing and each.col_offset != column and not reading.begins_line(each):
            sharing.append(node)
            continue
        sharing = [node]
        found.append(new_node(cst.SimpleStatementLine, body=sharing))
        reading.near[id(found[-1])] = each
    return tuple(found)


def _suite(body: Sequence[ast.stmt], reading: Reading) -> cst.BaseSuite:
    first = body[0]
    if first.__class__ in _SIMPLE and not reading.begins_line(first):
        smalls = [reading.node_of(each, _SIMPLE) for each in body]
        return new_node(cst.SimpleStatementSuite, body=smalls)  # type: ignore[no-any-return]
    return new_node(cst.IndentedBlock, body=_statements(body, reading))  # type: ignore[no-any-return]


def _else(body: Sequence[ast.stmt], reading: Reading) -> Any:
    return new_node(cst.Else, body=_suite(body, reading)) if body else None


def _if(node: ast.If, reading: Reading) -> Any:
    orelse: Any = None
    if node.orelse:
        first = node.orelse[0]
        line = reading.lines[first.lineno - 1]
        is_elif = isinstance(first, ast.If) and line[characters(line, first.col_offset) :].startswith("elif")
        orelse = reading.node_of(first, _COMPOUND) if is_elif else _else(node.orelse, reading)
    return new_node(cst.If, test=expression(node.test, reading), body=_suite(node.body, reading), orelse=orelse)


def _asynchronous(node: ast.stmt) -> Any:
    return plain_node(cst.Asynchronous) if node.__class__.__name__.startswith("Async") else None


def _for(node: ast.For | ast.AsyncFor, reading: Reading) -> Any:
    return new_node(
        cst.For,
        target=expression(node.target, reading),
        iter=expression(node.iter, reading),
        body=_suite(node.body, reading),
        orelse=_else(node.orelse, reading),
        asynchronous=_asynchronous(node),
    )


def _while(node: ast.While, reading: Reading) -> Any:
    test = expression(node.test, reading)
    return new_node(cst.While, test=test, body=_suite(node.body, reading), orelse=_else(node.orelse, reading))


def _with(node: ast.With | ast.AsyncWith, reading: Reading) -> Any:
    items = []
    for each in node.items:
        asname = None
        if each.optional_vars is not None:
            asname = new_node(cst.AsName, name=expression(each.optional_vars, reading))
        items.append(new_node(cst.WithItem, item=expression(each.context_expr, reading), asname=asname))
    return new_node(cst.With, items=items, body=_suite(node.body, reading), asynchronous=_asynchronous(node))


def _try(node: ast.Try, reading: Reading) -> Any:
    handlers = []
    for each in node.handlers:
        caught = None if each.type is None else expression(each.type, reading)
        name = None if each.name is None else new_node(cst.AsName, name=name_node(each.name, each, reading))
        handlers.append(new_node(cst.ExceptHandler, body=_suite(each.body, reading), type=caught, name=name))
        reading.places[id(handlers[-1])] = each
    finalbody = new_node(cst.Finally, body=_suite(node.finalbody, reading)) if node.finalbody else None
    body = _suite(node.body, reading)
    return new_node(cst.Try, body=body, handlers=handlers, orelse=_else(node.orelse, reading), finalbody=finalbody)


def _decorators(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, reading: Reading) -> list[Any]:
    return [new_node(cst.Decorator, decorator=expression(each, reading)) for each in node.decorator_list]


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, reading: Reading) -> Any:
    return new_node(
        cst.FunctionDef,
        name=_defined(node, reading),
        params=parameters(node.args, reading),
        body=_suite(node.body, reading),
        decorators=_decorators(node, reading),
        returns=annotation(node.returns, reading),
        asynchronous=_asynchronous(node),
    )


def _class(node: ast.ClassDef, reading: Reading) -> Any:
    return new_node(
        cst.ClassDef,
        name=_defined(node, reading),
        body=_suite(node.body, reading),
        bases=[argument(each, reading) for each in node.bases],
        keywords=[keyword(each, reading) for each in node.keywords],
        decorators=_decorators(node, reading),
    )


_COMPOUND: dict[type[ast.stmt], Callable[[Any, Reading], Any]] = {
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
}


def _assign(node: ast.Assign, reading: Reading) -> Any:
    targets = []
    for each in node.targets:
        targets.append(new_node(cst.AssignTarget, target=expression(each, reading)))
        reading.near[id(targets[-1])] = each
    return new_node(cst.Assign, targets=targets, value=expression(node.value, reading))


def _annotated(node: ast.AnnAssign, reading: Reading) -> Any:
    value = None if node.value is None else expression(node.value, reading)
    target = expression(node.target, reading)
    return new_node(cst.AnnAssign, target=target, annotation=annotation(node.annotation, reading), value=value)


def _augmented(node: ast.AugAssign, reading: Reading) -> Any:
    target, value = expression(node.target, reading), expression(node.value, reading)
    return new_node(cst.AugAssign, target=target, operator=plain_node(AUGMENTED[node.op.__class__]), value=value)


def _delete(node: ast.Delete, reading: Reading) -> Any:
    if len(node.targets) == 1:
        return new_node(cst.Del, target=expression(node.targets[0], reading))
    targets = new_node(cst.Tuple, elements=elements(node.targets, reading), lpar=(), rpar=())
    reading.near[id(targets)] = node.targets[0]
    return new_node(cst.Del, target=targets)


def _raise(node: ast.Raise, reading: Reading) -> Any:
    cause = None if node.cause is None else new_node(cst.From, item=expression(node.cause, reading))
    return new_node(cst.Raise, exc=None if node.exc is None else expression(node.exc, reading), cause=cause)


def _assert(node: ast.Assert, reading: Reading) -> Any:
    said = None if node.msg is None else expression(node.msg, reading)
    return new_node(cst.Assert, test=expression(node.test, reading), msg=said)


def _aliases(names: Sequence[ast.alias], reading: Reading) -> list[Any]:
    found = []
    for each in names:
        asname = None if each.asname is None else new_node(cst.AsName, name=name_node(each.asname, each, reading))
        found.append(new_node(cst.ImportAlias, name=dotted_node(each.name, each, reading), asname=asname))
        reading.near[id(found[-1])] = each
    return found


def _import(node: ast.Import, reading: Reading) -> Any:
    return new_node(cst.Import, names=_aliases(node.names, reading))


def _import_from(node: ast.ImportFrom, reading: Reading) -> Any:
    return new_node(
        cst.ImportFrom,
        module=None if node.module is None else dotted_node(node.module, node, reading),
        names=new_node(cst.ImportStar) if node.names[0].name == "*" else _aliases(node.names, reading),
        relative=[new_node(cst.Dot) for _ in range(node.level)],
    )


def _names(kind: type[Any]) -> Callable[[Any, Reading], Any]:
    def convert(node: ast.Global | ast.Nonlocal, reading: Reading) -> Any:
        return new_node(
            kind, names=[new_node(cst.NameItem, name=name_node(each, node, reading)) for each in node.names]
        )

    return convert


_SIMPLE: dict[type[ast.stmt], Callable[[Any, Reading], Any]] = {
    ast.Expr: lambda node, reading: new_node(cst.Expr, value=expression(node.value, reading)),
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Return: valued(cst.Return, "value"),
    ast.Delete: _delete,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Global: _names(cst.Global),
    ast.Nonlocal: _names(cst.Nonlocal),
    ast.Pass: lambda node, reading: new_node(cst.Pass),
    ast.Break: lambda node, reading: new_node(cst.Break),
    ast.Continue: lambda node, reading: new_node(cst.Continue),
}


def _defined(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, reading: Reading) -> cst.Name:
    """The name of a function or class, which stands behind the keyword."""
    if getattr(node, "type_params", None):
        raise NotRead("type parameters")
    name = node.name.encode()
    start = reading.lines[node.lineno - 1].encode().find(b" " + name, node.col_offset) + 1
    place = Span(node.lineno, start, node.lineno, start + len(name)) if start else node
    return name_node(node.name, place, reading)


def dotted_node(name: str, place: Placed, reading: Reading) -> cst.Name | cst.Attribute:
    first, *rest = name.split(".")
    node: Any = new_node(cst.Name, value=first)
    for part in rest:
        reading.near[id(node)] = place
        node = new_node(cst.Attribute, value=node, attr=new_node(cst.Name, value=part))
        reading.near[id(node.attr)] = place
    reading.near[id(node)] = place
    return node  # type: ignore[no-any-return]
