"""One function, statement by statement: which definition reaches which use, and under which conditions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from eaglelint.trace.conditions import Guard
from eaglelint.trace.expressions import dotted_path, evaluate, unwrap, wrap
from eaglelint.trace.graph import CallSite, Edge, Graph, Node, Scope, Source
from eaglelint.trace.project import imports_of

__all__ = ["Walker", "read_scope"]

Env = dict[str, frozenset[int]]


class Walker:
    """What is known at a point of a function: the definitions that reach it and the conditions that hold."""

    def __init__(self, graph: Graph, scope: Scope, words: frozenset[str]) -> None:
        self.graph = graph
        self.scope = scope
        self.words = words
        self.env: Env = {}
        self.guards: list[Guard] = []
        self.deciders: list[list[int]] = []
        self.statement: ast.AST | None = None
        self._loops: list[tuple[list[Env], list[Env]]] = []  # the states at break and at continue
        self._inner: list[tuple[Scope, Env]] = []

    # --- places ---

    def place(self, line: int, column: int, name: str, kind: str, tag: str = "") -> Node:
        """The node at a place, columns counted from 1."""
        node = self.graph.node(self.scope, line, column, name, kind, tuple(self.guards), tag)
        if node.statement is None:
            node.statement = self.statement
        return node

    def at(self, tree: ast.expr | ast.arg | ast.keyword | ast.alias, name: str, kind: str) -> Node:
        line = self.scope.outline.lines[tree.lineno - 1]
        column = tree.col_offset if line.isascii() else _characters(line, tree.col_offset)
        if not line.startswith(name, column):
            return self._found(tree, name, kind)
        return self.place(tree.lineno, column + 1, name, kind)

    def _found(self, tree: ast.AST, name: str, kind: str, part: int = -1) -> Node:
        """A name whose place the syntax tree does not say exactly (in f-strings of old Pythons): looked up."""
        known = self.graph.looked_up.get((tree, name, part))
        if known is None:
            known = self.graph.looked_up[tree, name, part] = self._look_up(tree, name)
        return self.place(*known, name, kind)

    def _look_up(self, tree: ast.AST, name: str) -> tuple[int, int]:
        outline = self.scope.outline
        first = getattr(tree, "lineno", 1)
        start = min(first, getattr(self.statement, "lineno", first))
        last = getattr(self.statement, "end_lineno", first) or first
        end = max(getattr(tree, "end_lineno", first) or first, last)
        wanted = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        column = 0
        if isinstance(tree, ast.alias | ast.pattern | ast.stmt | ast.ExceptHandler):
            column = _characters(outline.lines[first - 1], tree.col_offset)
        for number in (first, *range(start, min(end, len(outline.lines)) + 1)):
            for found in wanted.finditer(outline.lines[number - 1], column if number == first else 0):
                key = (outline, number, found.start() + 1, name)
                if key not in self.graph.taken and not self.graph.has(*key):
                    self.graph.taken.add(key)
                    return number, found.start() + 1
        return first, getattr(tree, "col_offset", 0) + 1

    def part(self, tree: ast.expr, position: str) -> int:
        """A node for a part of an expression's value."""
        end = f"{tree.end_lineno}:{tree.end_col_offset}"
        return self.place(tree.lineno, tree.col_offset + 1, "", "read", f"{position}@{end}").id

    def call(self, tree: ast.Call) -> CallSite:
        result = self.place(
            tree.lineno, tree.col_offset + 1, "", "read", f"call@{tree.end_lineno}:{tree.end_col_offset}"
        )
        if result.call is None:
            result.call = CallSite(self.scope, tree, result.id)
            self.scope.calls.append(result.call)
        result.call.arguments = []
        return result.call

    def key(
        self, tree: ast.Constant, kind: str, *, container: ast.expr | None = None, fallback: str | None = None
    ) -> Node | None:
        """A string that names an attribute or a key; other strings count only where they are what is looked for."""
        text = str(tree.value)
        if kind == "read" and text not in self.words:
            return None
        line = self.scope.outline.lines[tree.lineno - 1]
        start = tree.col_offset if line.isascii() else _characters(line, tree.col_offset)
        column = line.find(text, start)
        if column < 0:
            return None
        node = self.place(tree.lineno, column + 1, text, kind)
        node.kind = kind if node.kind == "read" else node.kind
        node.key = True
        node.container = container or node.container
        node.fallback = fallback or node.fallback
        if kind == "config-key":
            _note(self.scope.keys, text, node.id)
        return node

    def set_key(self, node: Node) -> None:
        """A key that is written: ``setattr(x, "key", value)``."""
        node.attribute = "store"
        _note(self.scope.attributes, node.name, node.id)

    # --- names ---

    def load(self, tree: ast.Name, role: str) -> Node:
        node = self.at(tree, tree.id, role)
        if node.kind == "read":
            node.kind = role
        _note(self.scope.loads, tree.id, node.id)
        reaching = self.env.get(tree.id)
        if reaching is not None:
            for start in reaching:
                self.graph.edge(start, Edge(node.id))
        elif tree.id not in self.scope.local_names:
            node.free = True
            _note(self.scope.free, tree.id, node.id)
        if self.deciders:
            self.deciders[-1].append(node.id)
        return node

    def attribute(self, tree: ast.Attribute, role: str, *, store: bool = False) -> Node:
        line = self.scope.outline.lines[(tree.end_lineno or tree.lineno) - 1]
        end = tree.end_col_offset or 0
        column = (end if line.isascii() else _characters(line, end)) - len(tree.attr)
        if line.startswith(tree.attr, max(column, 0)):
            node = self.place(tree.end_lineno or tree.lineno, column + 1, tree.attr, role)
        else:
            node = self._found(tree, tree.attr, role)
        node.kind = role if node.kind == "read" else node.kind
        node.owner = tree.value
        _note(self.scope.attributes, tree.attr, node.id)
        path = dotted_path(tree)
        if store:
            node.attribute = "store"
            return node
        node.attribute = node.attribute or "load"
        reaching = self.env.get(path) if path is not None else None
        if reaching:
            node.local = True
            for start in reaching:
                self.graph.edge(start, Edge(node.id))
        if self.deciders:
            self.deciders[-1].append(node.id)
        return node

    def chooses(self, start: int, to: int) -> None:
        """A value does not go there, but decides what does."""
        self.graph.edge(start, Edge(to, reset=True, how="chooses"))

    def define(self, name: str, node: Node) -> None:
        for path in [path for path in self.env if path.startswith(f"{name}.")]:
            del self.env[path]
        self.env[name] = frozenset({node.id})
        if "." not in name:
            _note(self.scope.definitions, name, node.id)

    def bind_name(self, tree: ast.Name, sources: Sequence[Source], value: ast.expr | None) -> Node:
        node = self.at(tree, tree.id, "assignment")
        node.kind = "assignment"
        node.expression = value
        for source in sources:
            self.graph.connect(source, node.id)
        self.define(tree.id, node)
        return node

    def bind(self, target: ast.expr, sources: list[Source], value: ast.expr | None = None) -> None:
        """Assign what is held to a target."""
        match target:
            case ast.Name():
                self.bind_name(target, sources, value)
            case ast.Attribute():
                evaluate(self, target.value)
                node = self.attribute(target, "assignment", store=True)
                node.kind = "assignment"
                node.expression = value
                for source in sources:
                    self.graph.connect(source, node.id)
                path = dotted_path(target)
                if path is not None:
                    self.define(path, node)
            case ast.Tuple() | ast.List():
                starred = any(isinstance(element, ast.Starred) for element in target.elts)
                for position, element in enumerate(target.elts):
                    if isinstance(element, ast.Starred):
                        self.bind(element.value, sources)
                    else:
                        self.bind(element, unwrap(self, sources, "*" if starred else str(position), target))
            case ast.Subscript():
                index = target.slice
                part_of = "*"
                key: Node | None = None
                if isinstance(index, ast.Constant) and isinstance(index.value, str):
                    part_of = f"k:{index.value}"
                    key = self.key(index, "config-key", container=target.value)
                    if key is not None:
                        key.attribute = "store"
                else:
                    evaluate(self, index)
                if isinstance(index, ast.Slice | ast.Tuple):
                    wrapped = sources
                elif key is not None:
                    for source in sources:
                        self.graph.connect(source, key.id)
                    wrapped = [(key.id, (part_of,))]
                else:
                    wrapped = wrap(sources, part_of)
                if dotted_path(target.value) is not None:
                    node = self.mutate(target.value)
                    node.expression = value
                    for source in wrapped:
                        self.graph.connect(source, node.id)
                    for guard in self.guards:
                        for decider in guard.deciders:
                            self.chooses(decider, node.id)
                else:
                    evaluate(self, target.value)
            case ast.Starred():
                self.bind(target.value, sources, value)
            case _:
                evaluate(self, target)

    def mutate(self, tree: ast.expr) -> Node:
        """The receiver of a change: it holds from here on what it held, and what is added."""
        if isinstance(tree, ast.Attribute):
            evaluate(self, tree.value)
            node = self.attribute(tree, "mutation")
            node.attribute = "store"
            path = dotted_path(tree) or ""
        else:
            assert isinstance(tree, ast.Name)
            node = self.load(tree, "mutation")
            path = tree.id
        node.kind = "mutation"
        self.define(path, node)
        return node

    def bind_elements(self, target: ast.expr, iterated: ast.expr) -> None:
        """A loop's target is bound to the elements of what it goes through."""
        if (
            isinstance(iterated, ast.Call)
            and isinstance(iterated.func, ast.Name)
            and isinstance(target, ast.Tuple)
            and iterated.func.id in ("enumerate", "zip")
            and not any(isinstance(element, ast.Starred) for element in (*target.elts, *iterated.args))
        ):
            evaluate(self, iterated.func)
            held = [evaluate(self, argument, "passed") for argument in iterated.args]
            for keyword in iterated.keywords:
                evaluate(self, keyword.value)
            if iterated.func.id == "enumerate":
                held = [[], held[0] if held else []]
                arguments = [iterated, *iterated.args[:1]]
            else:
                arguments = list(iterated.args)
            for position, element in enumerate(target.elts):
                sources = held[position] if position < len(held) else []
                at = arguments[position] if position < len(arguments) else iterated
                self.bind(element, unwrap(self, sources, "*", at), None)
            return
        self.bind(target, unwrap(self, evaluate(self, iterated), "*", iterated))

    @contextmanager
    def under(self, guard: Guard) -> Iterator[None]:
        self.guards.append(guard)
        yield
        self.guards.pop()

    # --- statements ---

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
            for child in ast.iter_child_nodes(statement):
                if isinstance(child, ast.expr):
                    evaluate(self, child)
            result = self.env
        else:
            result = handler(statement)
        self.statement = outer
        return result

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
        self._annotation(node.annotation)
        if node.value is not None:
            self.bind(node.target, evaluate(self, node.value), node.value)
        elif isinstance(node.target, ast.Name):
            entered = self.at(node.target, node.target.id, "assignment")
            _note(self.scope.definitions, node.target.id, entered.id)
        else:
            evaluate(self, node.target)
        return self.env

    def _annotation(self, node: ast.expr | None) -> None:
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
            self._found(node, name, "read")
        return self.env

    _nonlocal = _global

    def _import(self, node: ast.Import | ast.ImportFrom) -> Env | None:
        if isinstance(node, ast.ImportFrom):
            for number, part in enumerate((node.module or "").split(".")):
                if part in self.words:
                    self._found(node, part, "read", number)
        for alias, (name, found) in zip(node.names, imports_of(node), strict=True):
            if name == "*":
                continue
            self.scope.imports[name] = found
            for number, part in enumerate(alias.name.split(".")):
                if part in self.words and (number or alias.asname):
                    self._found(alias, part, "read", number)
            entered = self._found(alias, name, "assignment")
            entered.imported = found
            self.define(name, entered)
        return self.env

    _importfrom = _import

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
                entered = self._found(handler, handler.name, "assignment")
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
        for inner in ast.walk(pattern):
            names: list[str] = []
            if isinstance(inner, ast.MatchAs | ast.MatchStar) and inner.name:
                names = [inner.name]
            elif isinstance(inner, ast.MatchMapping) and inner.rest:
                names = [inner.rest]
            elif isinstance(inner, ast.MatchClass):
                for attribute in inner.kwd_attrs:
                    self._found(inner, attribute, "read")
            elif isinstance(inner, ast.MatchValue):
                evaluate(self, inner.value)
            elif isinstance(inner, ast.expr):
                continue
            for name in names:
                entered = self._found(inner, name, "assignment")
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
        entered = self._found(node, node.name, "assignment") if not self.scope.is_function else None
        entered = entered or self._found(node, node.name, "assignment")
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
            self._inner.append((scope, {}))
            self.graph.scopes[block] = scope
            _defaults(self, node.args)
        return self.env

    _asyncfunctiondef = _functiondef

    def _classdef(self, node: ast.ClassDef) -> Env | None:
        for decorator in node.decorator_list:
            evaluate(self, decorator)
        for base in node.bases:
            evaluate(self, base)
        for keyword in node.keywords:
            evaluate(self, keyword.value)
        entered = self._found(node, node.name, "assignment")
        self.block(node.body, self.env)
        self.define(node.name, entered)
        return self.env

    def finish(self) -> None:
        """Read the functions defined inside, whose free names are those of this one."""
        for scope, _ in self._inner:
            _read(self.graph, scope, self.words)
            for name, loads in list(scope.free.items()):
                mine = self.scope.definitions.get(name)
                if name in self.scope.local_names or mine:
                    for start in mine or ():
                        for load in loads:
                            self.graph.edge(start, Edge(load))
                    for load in loads:
                        if self.graph.nodes[load].kind == "mutation":
                            for other in self.scope.loads.get(name, ()):
                                self.graph.edge(load, Edge(other))
                        self.graph.nodes[load].free = False
                    del scope.free[name]
                else:
                    self.scope.free.setdefault(name, []).extend(loads)


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
            walker._found(tree, tree.name, "assignment")
            for decorator in tree.decorator_list:
                evaluate(walker, decorator)
            _defaults(walker, tree.args)
        arguments = tree.args
        extra = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *extra):
            walker._annotation(argument.annotation)
            node = walker.at(argument, argument.arg, "parameter")
            node.kind, node.parameter = "parameter", True
            scope.parameters[argument.arg] = node.id
            walker.define(argument.arg, node)
        walker._annotation(tree.returns)
        walker.block(tree.body, walker.env)
    elif isinstance(tree, ast.ClassDef):
        walker._found(tree, tree.name, "assignment")
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
    walker.finish()


def _defaults(walker: Walker, arguments: ast.arguments) -> None:
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


def _bound_names(tree: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    names: set[str] = set()
    outside: set[str] = set()
    arguments = tree.args
    for argument in ast.walk(arguments):
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
        pending += ast.iter_child_nodes(node)
    return frozenset(names - outside)


def _defines(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def _join(left: Env | None, right: Env | None) -> Env | None:
    if left is None or right is None:
        return left if right is None else right
    joined = dict(left)
    for name, nodes in right.items():
        known = joined.get(name)
        joined[name] = nodes if known is None else known | nodes
    return joined


def _note(into: dict[str, list[int]], name: str, node: int) -> None:
    found = into.setdefault(name, [])
    if node not in found:
        found.append(node)


def _characters(line: str, offset: int) -> int:
    """A column in characters, from one in UTF-8 bytes."""
    return len(line.encode()[:offset].decode(errors="replace"))
