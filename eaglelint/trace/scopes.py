"""Reading a function, a class body or a module's own statements into the graph."""

from __future__ import annotations

import ast

from eaglelint.source.nodes import all_nodes, children
from eaglelint.trace.expressions import evaluate
from eaglelint.trace.graph import Edge, Graph, Scope
from eaglelint.trace.project import imports_of
from eaglelint.trace.walk import Walker, defaults

__all__ = ["read_scope"]


def read_scope(graph: Graph, scope: Scope, words: frozenset[str]) -> Scope:
    """Read a function, a class body or a module's own statements into the graph."""
    _read(graph, scope, words)
    return scope


def _read(graph: Graph, scope: Scope, words: frozenset[str]) -> None:
    tree = scope.tree
    walker = Walker(graph, scope, words)
    walker.statement = tree
    if isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef):
        scope.local_names = _bound_names(tree)
        if scope.outer is None:
            walker.found(tree, tree.name, "assignment")
            for decorator in tree.decorator_list:
                evaluate(walker, decorator)
            defaults(walker, tree.args)
        arguments = tree.args
        extra = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *extra):
            walker.annotation(argument.annotation)
            node = walker.at(argument, argument.arg, "parameter")
            node.kind, node.parameter = "parameter", True
            scope.parameters[argument.arg] = node.id
            walker.define(argument.arg, node)
        walker.annotation(tree.returns)
        walker.block(tree.body, walker.env)
    elif isinstance(tree, ast.ClassDef):
        walker.found(tree, tree.name, "assignment")
        for expression in (*tree.decorator_list, *tree.bases, *(keyword.value for keyword in tree.keywords)):
            evaluate(walker, expression)
        for keyword in tree.keywords:
            if keyword.arg in words:
                walker.at(keyword, keyword.arg or "", "passed")
        walker.block([s for s in tree.body if not _defines(s)], {})
        for names in scope.definitions.values():
            for each in names:
                graph.nodes[each].class_field = scope.cls
                graph.nodes[each].attribute = "store"
    elif isinstance(tree, ast.Module):
        walker.block([s for s in tree.body if not _defines(s)], {})
    _finish(walker)


def _bound_names(tree: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    names: set[str] = set()
    outside: set[str] = set()
    arguments = tree.args
    for argument in all_nodes(arguments):
        if isinstance(argument, ast.arg):
            names.add(argument.arg)
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
                continue
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                continue
            case ast.Global(names=found) | ast.Nonlocal(names=found):
                outside.update(found)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            case ast.Import() | ast.ImportFrom():
                names.update(name for name, _ in imports_of(node))
            case ast.ExceptHandler(name=str() as name):
                names.add(name)
            case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
                names.add(name)
        pending += children(node)
    return frozenset(names - outside)


def _defines(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def _finish(walker: Walker) -> None:
    """Read the functions defined inside, whose free names are those of this one."""
    for scope in walker.inner:
        _read(walker.graph, scope, walker.words)
        for name, loads in list(scope.free.items()):
            mine = walker.scope.definitions.get(name)
            if name in walker.scope.local_names or mine:
                for start in mine or ():
                    for load in loads:
                        walker.graph.edge(start, Edge(load))
                for load in loads:
                    if walker.graph.nodes[load].kind == "mutation":
                        for other in walker.scope.loads.get(name, ()):
                            walker.graph.edge(load, Edge(other))
                    walker.graph.nodes[load].free = False
                del scope.free[name]
            else:
                walker.scope.free.setdefault(name, []).extend(loads)
