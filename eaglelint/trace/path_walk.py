"""A walk along the paths of a function, one by one, as far as they matter for one variable and where it is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eaglelint.source.nodes import all_nodes, children
from eaglelint.source.outline import characters
from eaglelint.trace.conditions import Members, conjuncts
from eaglelint.trace.graph import Scope
from eaglelint.trace.none_values import null_of
from eaglelint.trace.paths import Condition, Path, Test, merged

if TYPE_CHECKING:
    from eaglelint.trace.nullness import Nullness

__all__ = ["MOST_PATHS", "PathWalk", "Place", "Run", "TooManyPaths"]

Place = tuple[int, int]

MOST_PATHS = 160


class TooManyPaths(Exception):
    """What a function does depends on more than can be told apart."""


@dataclass(slots=True)
class Run:
    """What a walk through a function found: the paths at each use of the variable, at each call and at each return."""

    uses: dict[Place, list[Path]] = field(default_factory=dict)
    calls: dict[ast.Call, list[Path]] = field(default_factory=dict)
    returns: list[tuple[ast.expr | None, Path]] = field(default_factory=list)


class PathWalk:
    """One walk through a function, for one variable."""

    def __init__(self, owner: Nullness, scope: Scope, name: str, depth: int) -> None:
        self.owner = owner
        self.scope = scope
        self.name = name
        self.depth = depth
        self.run = Run()
        self.place = owner.links.place(scope)
        self.calls = {call.node for call in scope.calls}
        self._set_here = scope.local_names - scope.parameters.keys()
        self._loops: list[list[Path]] = []
        self._relevant: dict[ast.AST, bool] = {}

    def go(self, entry: list[Path]) -> Run:
        out = self.block(self.scope.function_node.body, entry)
        self.run.returns += [(None, path) for path in out]
        return self.run

    def block(self, body: Sequence[ast.stmt], paths: list[Path]) -> list[Path]:
        for statement in body:
            if not paths:
                return []
            paths = merged(self.walk(statement, paths))
            self.owner.steps += len(paths)
            if len(paths) > MOST_PATHS or self.owner.steps > self.owner.most_steps:
                raise TooManyPaths
        return paths

    # --- statements ---

    def walk(self, node: ast.stmt, paths: list[Path]) -> list[Path]:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return paths
            case ast.If():
                return self._if(node, paths)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                return self._assign(node, paths)
            case ast.Return():
                if node.value is not None:
                    paths = self.use(node.value, paths)
                self.run.returns += [(node.value, path) for path in paths]
                return []
            case ast.Raise():
                return []
            case ast.Assert():
                paths = self.use(node.test, paths)
                return [after for path in paths for after in self.assume(node.test, True, path)]
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._loop(node, paths)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    paths = self.use(item.context_expr, paths)
                paths = self.forget(node.items, paths)
                return self.block(node.body, paths)
            case ast.Try():
                return self._try(node, paths)
            case ast.Break() | ast.Continue():
                if self._loops:
                    self._loops[-1].extend(paths)
                return []
            case ast.Match():
                paths = self.use(node.subject, paths)
                out = list(paths)
                for case in node.cases:
                    out += self.block(case.body, self.forget([case.pattern], paths))
                return out
        for child in children(node):
            if isinstance(child, ast.expr):
                paths = self.use(child, paths)
        return self.forget([node], paths)

    def _if(self, node: ast.If, paths: list[Path]) -> list[Path]:
        paths = self.use(node.test, paths)
        if not (self.matters(node.body) or self.matters(node.orelse)):
            return self.forget([*node.body, *node.orelse], paths)
        yes = [after for path in paths for after in self.assume(node.test, True, path)]
        no = [after for path in paths for after in self.assume(node.test, False, path)]
        return self.block(node.body, merged(yes)) + self.block(node.orelse, merged(no))

    def _assign(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, paths: list[Path]) -> list[Path]:
        if node.value is None:
            return paths
        paths = self.use(node.value, paths)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            for inner in all_nodes(target):
                if isinstance(inner, ast.expr) and not isinstance(getattr(inner, "ctx", None), ast.Store):
                    self.note(inner, paths)
        found = [(target, index) for target in targets for index in self._positions(target)]
        if not found:
            return self.forget([node], paths)
        if isinstance(node, ast.AugAssign):
            return [path.but("some") for path in self.forget([node], paths)]
        out: list[Path] = []
        for path in paths:
            for null, after in null_of(self, node.value, path, found[-1][1]):
                out += [each.but(null) for each in self.forget([node], [after])]
        return out

    def _positions(self, target: ast.expr) -> Iterator[int | None]:
        """Where the variable is in a target: None for all of it."""
        if isinstance(target, ast.Name) and target.id == self.name:
            yield None
        elif isinstance(target, ast.Tuple | ast.List):
            for position, element in enumerate(target.elts):
                if any(isinstance(inner, ast.Name) and inner.id == self.name for inner in all_nodes(element)):
                    yield position if isinstance(element, ast.Name) else -1

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, paths: list[Path]) -> list[Path]:
        paths = self.use(node.test if isinstance(node, ast.While) else node.iter, paths)
        body: list[ast.AST] = [*node.body]
        if not isinstance(node, ast.While):
            body.append(node.target)
        if not self.matters(node.body):
            return self.forget(body, paths)
        before = self.forget(body, paths)
        if isinstance(node, ast.While):
            before = [after for path in before for after in self.assume(node.test, True, path)]
        self._loops.append([])
        end = self.block(node.body, before)
        end += self._loops.pop()
        # Whether there is a round at all is not known: what only a loop without one leaves None is not called None.
        skipped = paths
        if self.sets(node.body):
            skipped = [path.but("unknown") if path.null == "none" else path for path in paths]
        return self.block(node.orelse, merged(self.forget(body, skipped + end)))

    def _try(self, node: ast.Try, paths: list[Path]) -> list[Path]:
        inside = self.block(node.body, paths)
        out = self.block(node.orelse, inside)
        failing = self.forget(node.body, paths)
        if self.sets(node.body):
            failing = [path.but("unknown") for path in failing]
        for handler in node.handlers:
            out += self.block(handler.body, failing)
        return self.block(node.finalbody, merged(out))

    # --- what matters ---

    def matters(self, body: Sequence[ast.stmt]) -> bool:
        """Whether statements mention the variable or leave the block."""
        return any(self._matters(statement) for statement in body)

    def _matters(self, node: ast.stmt) -> bool:
        if node not in self._relevant:
            exits = ast.Return | ast.Raise | ast.Break | ast.Continue | ast.Assert
            self._relevant[node] = any(
                isinstance(inner, exits)
                or (isinstance(inner, ast.Name) and inner.id == self.name)
                or (not self.name and isinstance(inner, ast.Call) and inner in self.calls)
                for inner in all_nodes(node)
            )
        return self._relevant[node]

    def sets(self, body: Sequence[ast.stmt]) -> bool:
        """Whether statements assign the variable."""
        return any(
            isinstance(inner, ast.Name) and inner.id == self.name and isinstance(inner.ctx, ast.Store)
            for statement in body
            for inner in all_nodes(statement)
        )

    def forget(self, nodes: Sequence[ast.AST], paths: list[Path]) -> list[Path]:
        """What was known about names that are set anew is not known any more."""
        names = frozenset[str]().union(*map(self.owner.names_set, nodes))
        return [path.forgetting(names) for path in paths] if names else paths

    # --- uses ---

    def use(self, node: ast.expr, paths: list[Path]) -> list[Path]:
        """Note the paths at every use inside an expression, under the conditions inside it."""
        match node:
            case ast.IfExp():
                paths = self.use(node.test, paths)
                self.use(node.body, [a for p in paths for a in self.assume(node.test, True, p)])
                self.use(node.orelse, [a for p in paths for a in self.assume(node.test, False, p)])
                return paths
            case ast.BoolOp():
                inner = paths
                for value in node.values:
                    self.use(value, inner)
                    inner = [a for p in inner for a in self.assume(value, isinstance(node.op, ast.And), p)]
                return paths
            case ast.Lambda():
                return paths
        self.note(node, paths)
        for child in children(node):
            if isinstance(child, ast.expr):
                self.use(child, paths)
            elif isinstance(child, ast.keyword):
                self.use(child.value, paths)
            elif isinstance(child, ast.comprehension):
                self.use(child.iter, paths)
        return paths

    def note(self, node: ast.expr, paths: list[Path]) -> None:
        if isinstance(node, ast.Name) and node.id == self.name and isinstance(node.ctx, ast.Load):
            column = characters(self.scope.outline.lines[node.lineno - 1], node.col_offset)
            self.run.uses.setdefault((node.lineno, column + 1), []).extend(paths)
        elif isinstance(node, ast.Call) and node in self.calls:
            self.run.calls.setdefault(node, []).extend(paths)

    # --- conditions ---

    def assume(self, condition: ast.expr, holds: bool, path: Path) -> list[Path]:
        """The paths on which a condition holds, or does not; none where it cannot."""
        parts = conjuncts(condition, holds)
        if len(parts) > 1:
            found = [path]
            for part, wanted in parts:
                found = [after for before in found for after in self.assume(part, wanted, before)]
            return found
        condition, holds = parts[0]
        if isinstance(condition, ast.BoolOp):  # one of several: the first that does it
            out: list[Path] = []
            rest = [path]
            for value in condition.values:
                out += [after for before in rest for after in self.assume(value, holds, before)]
                rest = [after for before in rest for after in self.assume(value, not holds, before)]
            return out
        if isinstance(condition, ast.Constant):
            return [path] if bool(condition.value) == holds else []
        test, positive = self.owner.test(condition)
        holds = holds == positive
        known = self.known(test.text, path)
        if known is not None:
            return [path] if known == holds else []
        null = path.null
        if self.name and test.text == f"{self.name} is None":
            null = "none" if holds else "some"
        elif self.name and test.text in (self.name, f"isinstance({self.name}") and holds:
            null = "some"
        doubtful = not test.names.isdisjoint(self._set_here)
        after = Path(null, (*path.conditions, Condition(test, holds, doubtful=doubtful)))
        return [after] if self._possible(after, test) else []

    def known(self, text: str, path: Path) -> bool | None:
        """Whether a test holds on a path, by what is known of the variable or by the path's conditions."""
        if self.name and path.null != "unknown":
            if text == f"{self.name} is None":
                return path.null == "none"
            if path.null == "none" and (text == self.name or text.startswith(f"isinstance({self.name},")):
                return False
        return path.answer(text)

    def _possible(self, path: Path, test: Test) -> bool:
        """Whether some member of the enum that a condition asks gives all the answers of the path."""
        asked = self.members(path, test)
        return asked is None or bool(asked[1])

    def members(self, path: Path, test: Test) -> tuple[Members, tuple[str, ...]] | None:
        """The enum that a condition asks, and the members that give all the answers of a path.

        None where it asks no enum, or the enum's answer is not known.
        """
        if test.asked is None:
            return None
        enum = self.owner.enum_of(test, self.place)
        if enum is None or not enum.members or self.owner.tells(enum, test, enum.members[0]) is None:
            return None
        asked = [(c.test, c.holds) for c in path.conditions if c.live and c.test.asked_text == test.asked_text]
        left = tuple(
            member
            for member in enum.members
            if all(self.owner.tells(enum, each, member) in (None, holds) for each, holds in asked)
        )
        return enum, left
