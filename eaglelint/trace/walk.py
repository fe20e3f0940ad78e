"""One function, statement by statement: which definition reaches which use, and under which conditions."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from eaglelint.source.nodes import all_nodes, children
from eaglelint.trace.conditions import Guard
from eaglelint.trace.expressions import evaluate
from eaglelint.trace.graph import Edge, Graph, Scope, Source
from eaglelint.trace.places import Env
from eaglelint.trace.statements import Statements

__all__ = ["Walker", "defaults"]


class Walker(Statements):
    """Branches, loops, handlers and definitions: where ways part and come together."""

    def __init__(self, graph: Graph, scope: Scope, words: frozenset[str]) -> None:
        super().__init__(graph, scope, words)
        self.inner: list[Scope] = []  # functions defined inside, read at the end
        self._loops: list[tuple[list[Env], list[Env]]] = []  # the states at break and at continue

    def block(self, body: Sequence[ast.stmt], env: Env) -> Env | None:
        """Walk through statements; None where their end is not reached."""
        before = len(self.guards)
        reached: Env | None = dict(env)
        for statement in body:
            state = {} if reached is None else reached
            after = self.walk(statement, state)
            reached = None if reached is None else after
        del self.guards[before:]
        return reached

    def walk(self, statement: ast.stmt, env: Env) -> Env | None:
        outer, self.statement = self.statement, statement
        self.env = env
        handler = getattr(self, f"_{type(statement).__name__.lower()}", None)
        result: Env | None
        if handler is None:
            for child in children(statement):
                if isinstance(child, ast.expr):
                    evaluate(self, child)
            result = self.env
        else:
            result = handler(statement)
        self.statement = outer
        return result

    def _if(self, node: ast.If) -> Env | None:
        self.deciders.append([])
        evaluate(self, node.test)
        deciders = tuple(self.deciders.pop())
        before = self.env
        yes, no = Guard(node.test, True, deciders=deciders), Guard(node.test, False, deciders=deciders)
        with self.under(yes):
            body = self.block(node.body, before)
        with self.under(no):
            other = self.block(node.orelse, before)
        self._default(node.test, deciders, before, body, other)
        if other is not None:
            self._not_unpacked(node, before, other)
        if body is None and other is not None:
            self.guards.append(Guard(node.test, False))
        elif other is None and body is not None:
            self.guards.append(Guard(node.test, True))
        return _join(body, other)

    def _default(
        self, test: ast.expr, deciders: tuple[int, ...], before: Env, body: Env | None, other: Env | None
    ) -> None:
        """``if ids is None: x = [...] else: x = f(ids)``: a missing value chooses the default."""
        if body is None or other is None or not isinstance(test, ast.Compare | ast.Name | ast.Attribute | ast.UnaryOp):
            return
        for decider in deciders:
            starts = frozenset(start for start, _ in self.graph.into[decider]) | {decider}
            if self.graph.nodes[decider].attribute and not self.graph.into[decider]:
                continue
            for path in body.keys() & other.keys():
                left, right = body[path] - before.get(path, frozenset()), other[path] - before.get(path, frozenset())
                for mine, theirs in ((left, right), (right, left)):
                    if any(self.graph.comes_from(node, starts) for node in theirs):
                        for node in mine:
                            if not self.graph.comes_from(node, starts):
                                self.chooses(decider, node)

    def _not_unpacked(self, node: ast.If, before: Env, other: Env) -> None:
        """``if captured: hidden, aux = hidden``: where it is not unpacked it is no tuple."""
        for statement in node.body:
            match statement:
                case ast.Assign(targets=[ast.Tuple(elts=elements)], value=ast.Name(id=name)) if any(
                    isinstance(element, ast.Name) and element.id == name for element in elements
                ):
                    reaching = before.get(name)
                    if reaching and other.get(name) == reaching:
                        whole = self.part(statement.value, "!")
                        for start in reaching:
                            self.graph.connect((start, ()), whole, pop=("!",))
                        other[name] = frozenset({whole})

    def _while(self, node: ast.While) -> Env | None:
        evaluate(self, node.test)
        endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        return self._loop(node, Guard(node.test, True), endless=endless)

    def _for(self, node: ast.For | ast.AsyncFor) -> Env | None:
        return self._loop(node, None, endless=False)

    _asyncfor = _for

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, guard: Guard | None, *, endless: bool) -> Env | None:
        head: Env = self.env
        before = len(self.guards)
        breaks: list[Env] = []
        continues: list[Env] = []
        if guard is not None:
            self.guards.append(guard)
        for _ in range(2):  # the second time with what the first round leaves behind
            breaks, continues = [], []
            self._loops.append((breaks, continues))
            self.env = dict(head)
            if isinstance(node, ast.While):
                evaluate(self, node.test)
            else:
                self.bind_elements(node.target, node.iter)
            end = self.block(node.body, self.env)
            self._loops.pop()
            for state in [*continues, *([end] if end is not None else [])]:
                head = _join(head, state) or {}
        del self.guards[before:]
        after = None if endless else self.block(node.orelse, head)
        for state in breaks:
            after = _join(after, state)
        return after

    def _break(self, node: ast.Break) -> Env | None:
        if self._loops:
            self._loops[-1][0].append(dict(self.env))
        return None

    def _continue(self, node: ast.Continue) -> Env | None:
        if self._loops:
            self._loops[-1][1].append(dict(self.env))
        return None

    def _with(self, node: ast.With | ast.AsyncWith) -> Env | None:
        for item in node.items:
            sources = evaluate(self, item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, sources, item.context_expr)
        # Not block(): what a `with` leaves behind, early exits included, holds after it.
        reached: Env | None = self.env
        for statement in node.body:
            after = self.walk(statement, {} if reached is None else reached)
            reached = None if reached is None else after
        return reached

    _asyncwith = _with

    def _try(self, node: ast.Try) -> Env | None:
        before = len(self.guards)
        failing: Env = dict(self.env)
        reached: Env | None = self.env
        for statement in node.body:
            after = self.walk(statement, {} if reached is None else dict(reached))
            reached = None if reached is None else after
            failing = _join(failing, reached) or failing
        del self.guards[before:]
        if node.orelse:
            reached = self.block(node.orelse, reached or {}) if reached is not None else None
        for handler in node.handlers:
            self.env = dict(failing)
            self.statement = handler
            if handler.type is not None:
                evaluate(self, handler.type)
            kind = ast.unparse(handler.type) if handler.type is not None else ""
            if handler.name:
                entered = self.found(handler, handler.name, "assignment")
                self.define(handler.name, entered)
            with self.under(Guard(None, True, f"except {kind}".strip())):
                reached = _join(reached, self.block(handler.body, self.env))
        if not node.finalbody:
            return reached
        state = _join(reached, failing) or {}
        after = self.block(node.finalbody, state if reached is None else reached)
        return None if reached is None else after

    _trystar = _try

    def _match(self, node: ast.Match) -> Env | None:
        sources = evaluate(self, node.subject)
        before = self.env
        reached: Env | None = dict(before)
        for case in node.cases:
            self.env = dict(before)
            guard = Guard(None, True, f"{ast.unparse(node.subject)} matches {ast.unparse(case.pattern)}")
            self.guards.append(guard)
            self._pattern(case.pattern, sources)
            if case.guard is not None:
                evaluate(self, case.guard)
                self.guards.append(Guard(case.guard, True))
            after = self.block(case.body, self.env)
            del self.guards[-1 if case.guard is None else -2 :]
            reached = _join(reached, after)
            if isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None:
                reached = after if reached is None else reached
        return reached

    def _pattern(self, pattern: ast.pattern, sources: list[Source]) -> None:
        for inner in all_nodes(pattern):
            names: list[str] = []
            if isinstance(inner, ast.MatchAs | ast.MatchStar) and inner.name:
                names = [inner.name]
            elif isinstance(inner, ast.MatchMapping) and inner.rest:
                names = [inner.rest]
            elif isinstance(inner, ast.MatchClass):
                for attribute in inner.kwd_attrs:
                    self.found(inner, attribute, "read")
            elif isinstance(inner, ast.MatchValue):
                evaluate(self, inner.value)
            elif isinstance(inner, ast.expr):
                continue
            for name in names:
                entered = self.found(inner, name, "assignment")
                if inner is pattern:
                    for source in sources:
                        self.graph.connect(source, entered.id)
                else:
                    for start, _ in sources:
                        self.graph.edge(start, Edge(entered.id, reset=True))
                self.define(name, entered)

    # --- definitions inside ---

    def _functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Env | None:
        for decorator in node.decorator_list:
            evaluate(self, decorator)
        entered = self.found(node, node.name, "assignment") if not self.scope.is_function else None
        entered = entered or self.found(node, node.name, "assignment")
        self.define(node.name, entered)
        block = next(
            (
                block
                for block in self.scope.outline.blocks
                if block.name == node.name and block.line == node.lineno and block.kind == "def"
            ),
            None,
        )
        if block is not None:
            scope = Scope(self.scope.outline, block, node, self.scope.cls, self.scope)
            self.scope.inner[node.name] = scope
            self.inner.append(scope)
            self.graph.scopes[block] = scope
            defaults(self, node.args)
        return self.env

    _asyncfunctiondef = _functiondef

    def _classdef(self, node: ast.ClassDef) -> Env | None:
        for decorator in node.decorator_list:
            evaluate(self, decorator)
        for base in node.bases:
            evaluate(self, base)
        for keyword in node.keywords:
            evaluate(self, keyword.value)
        entered = self.found(node, node.name, "assignment")
        self.block(node.body, self.env)
        self.define(node.name, entered)
        return self.env


def defaults(walker: Walker, arguments: ast.arguments) -> None:
    positional = [*arguments.posonlyargs, *arguments.args]
    given = list(zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True))
    for argument, keyword_default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if keyword_default is not None:
            given.append((argument, keyword_default))
    for argument, default in given:
        sources = evaluate(walker, default)
        node = walker.at(argument, argument.arg, "parameter")
        node.kind, node.parameter = "parameter", True
        for source in sources:
            walker.graph.connect(source, node.id)


def _join(left: Env | None, right: Env | None) -> Env | None:
    if left is None or right is None:
        return left if right is None else right
    joined = dict(left)
    for name, nodes in right.items():
        known = joined.get(name)
        joined[name] = nodes if known is None else known | nodes
    return joined
