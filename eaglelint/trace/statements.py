"""Statements that hold no others: what they evaluate, bind, return and delete."""

from __future__ import annotations

import ast

from eaglelint.trace.binding import Binding
from eaglelint.trace.conditions import Guard
from eaglelint.trace.expressions import evaluate
from eaglelint.trace.places import Env, note
from eaglelint.trace.project import imports_of
from eaglelint.trace.sources import dotted_path

__all__ = ["Statements"]


class Statements(Binding):
    """One handler for each kind; the result are the definitions that reach what follows, None where nothing does."""

    def _expr(self, node: ast.Expr) -> Env | None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            evaluate(self, node.value)
        return self.env

    def _assign(self, node: ast.Assign) -> Env | None:
        for target in node.targets:
            if not self._pairwise(target, node.value):
                self.bind(target, evaluate(self, node.value), node.value)
        return self.env

    def _pairwise(self, target: ast.expr, value: ast.expr) -> bool:
        """``a, b = x, y``"""
        if not (isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List)):
            return False
        plain = not any(isinstance(element, ast.Starred) for element in (*target.elts, *value.elts))
        if not plain or len(target.elts) != len(value.elts):
            return False
        held = [evaluate(self, element) for element in value.elts]
        for element, sources, item in zip(target.elts, held, value.elts, strict=True):
            self.bind(element, sources, item)
        return True

    def _annassign(self, node: ast.AnnAssign) -> Env | None:
        self.annotation(node.annotation)
        if node.value is not None:
            self.bind(node.target, evaluate(self, node.value), node.value)
        elif isinstance(node.target, ast.Name):
            entered = self.at(node.target, node.target.id, "assignment")
            note(self.scope.definitions, node.target.id, entered.id)
        else:
            evaluate(self, node.target)
        return self.env

    def annotation(self, node: ast.expr | None) -> None:
        if node is not None:
            env, self.env = self.env, {}
            evaluate(self, node)
            self.env = env

    def _augassign(self, node: ast.AugAssign) -> Env | None:
        sources = evaluate(self, node.value)
        if dotted_path(node.target) is not None:
            entered = self.mutate(node.target)
            entered.expression = node.value
            for source in sources:
                self.graph.connect(source, entered.id)
        else:
            self.bind(node.target, sources, node.value)
        return self.env

    def _return(self, node: ast.Return) -> Env | None:
        self.scope.returns += evaluate(self, node.value, "returned")
        return None

    def _raise(self, node: ast.Raise) -> Env | None:
        evaluate(self, node.exc)
        evaluate(self, node.cause)
        return None

    def _assert(self, node: ast.Assert) -> Env | None:
        evaluate(self, node.test)
        with self.under(Guard(node.test, False)):
            evaluate(self, node.msg)
        self.guards.append(Guard(node.test, True))
        never = isinstance(node.test, ast.Constant) and not node.test.value
        return None if never else self.env

    def _delete(self, node: ast.Delete) -> Env | None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                entered = self.load(target, "deleted")
                entered.kind = "deleted"
                self.env.pop(target.id, None)
            elif isinstance(target, ast.Attribute):
                evaluate(self, target.value)
                entered = self.attribute(target, "deleted")
                entered.kind = "deleted"
            else:
                evaluate(self, target)
        return self.env

    def _global(self, node: ast.Global | ast.Nonlocal) -> Env | None:
        for name in node.names:
            self.found(node, name, "read")
        return self.env

    _nonlocal = _global

    def _import(self, node: ast.Import | ast.ImportFrom) -> Env | None:
        if isinstance(node, ast.ImportFrom):
            for number, part in enumerate((node.module or "").split(".")):
                if part in self.words:
                    self.found(node, part, "read", number)
        for alias, (name, found) in zip(node.names, imports_of(node), strict=True):
            if name == "*":
                continue
            self.scope.imports[name] = found
            for number, part in enumerate(alias.name.split(".")):
                if part in self.words and (number or alias.asname):
                    self.found(alias, part, "read", number)
            entered = self.found(alias, name, "assignment")
            entered.imported = found
            self.define(name, entered)
        return self.env

    _importfrom = _import
