"""Where a variable is still None: the paths of a function, one by one, as far as they matter for that variable.

Only what a path shows is said. A condition that cannot hold together with others, by the same test or because no member
of an enum answers all of them so, ends its path. What cannot be told is unknown, and unknown is never called None.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from eaglelint.trace.conditions import Members, conjuncts, guard_text
from eaglelint.trace.graph import CallSite, Node, Scope
from eaglelint.trace.links import Links
from eaglelint.trace.outline import Unparsable
from eaglelint.trace.project import Class, Def, External

__all__ = ["Nullness"]

Null = Literal["none", "some", "unknown"]
Place = tuple[int, int]

_MOST_STATES = 160
_MOST_STEPS = 60_000  # of one trace
_DEEPEST = 3
_MAKES_TENSOR = frozenset(["torch.cat", "torch.stack", "torch.empty", "torch.zeros", "torch.tensor", "torch.concat"])


class _TooManyPaths(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Condition:
    """A test that holds or not on a path. ``live``: the names in it still mean what they meant.

    ``doubtful``: it tests a variable that the function itself sets, so that it may go with the variable in question in
    a way that is not seen here; a path with such a test proves nothing.
    """

    key: str
    test: ast.expr
    holds: bool
    live: bool = True
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Path:
    """What is known on one path: whether the variable is None, and the conditions that led here."""

    null: Null
    conditions: tuple[Condition, ...] = ()

    @property
    def identity(self) -> object:
        return self.null, frozenset((c.key, c.holds, c.doubtful) for c in self.conditions if c.live or c.doubtful)


@dataclass(slots=True)
class _Run:
    """What a walk through a function found: the paths at each use of the variable, and at each return."""

    uses: dict[Place, list[Path]] = field(default_factory=dict)
    calls: dict[ast.Call, list[Path]] = field(default_factory=dict)
    returns: list[tuple[ast.expr | None, Path]] = field(default_factory=list)


class Nullness:
    """Answers for the functions of one trace; each function is walked once for each variable."""

    def __init__(self, links: Links) -> None:
        self.links = links
        self._runs: dict[tuple[Scope, str], _Run | None] = {}
        self.steps = 0
        self._busy: set[tuple[Scope, str]] = set()

    def at(self, node: Node) -> tuple[str, ...] | None:
        """The conditions of a path on which a variable is None where it is used; None where no such path is known."""
        if not node.real or node.attribute or not node.scope.is_function or node.kind not in _USES:
            return None
        run = self._run(node.scope, node.name)
        if run is None:
            return None
        paths = [path for path in run.uses.get((node.line, node.column), ()) if path.null == "none"]
        if not paths:
            return None
        return self._most_usual(paths, node.scope)

    def at_call(self, call: CallSite, name: str) -> tuple[str, ...] | None:
        """As ``at``, for a variable at the time of a call."""
        run = self._run(call.scope, name)
        paths = run.calls.get(call.node, []) if run is not None else []
        return self._most_usual([path for path in paths if path.null == "none"], call.scope)

    def _most_usual(self, paths: list[Path], scope: Scope) -> tuple[str, ...] | None:
        told = [found for path in paths if (found := self._told(path, scope)) is not None]
        return max(told, key=lambda each: each[0])[1] if told else None

    def _told(self, path: Path, scope: Scope) -> tuple[tuple[int, int], tuple[str, ...]] | None:
        """A path's conditions in words; what an enum is asked, by its members. With it, how usual the path is.

        None for a path that proves nothing, and for one that no member of an enum can take.
        """
        if any(condition.doubtful for condition in path.conditions):
            return None
        walk = _Walk(self, scope, "", 0)
        words: dict[str, None] = {}
        usual: dict[str, int] = {}
        for condition in path.conditions:
            asked = walk.members(path, condition.test) if condition.live else None
            if asked is None:
                words[guard_text(condition.test, condition.holds)] = None
            else:
                written, _, left = asked
                if not left:
                    return None
                usual[written] = len(left)
                listed = left[0] if len(left) == 1 else f"{', '.join(left[:-1])} or {left[-1]}"
                words[f"{written} is {listed}"] = None
        return (sum(usual.values()), -len(path.conditions)), tuple(words)

    def _run(self, scope: Scope, name: str, depth: int = 0) -> _Run | None:
        key = (scope, name)
        if key in self._busy:
            return None
        if key not in self._runs:
            self._busy.add(key)
            try:
                self._runs[key] = _Walk(self, scope, name, depth).go(self._entry(scope, name, depth))
            except (_TooManyPaths, RecursionError, Unparsable):
                self._runs[key] = None
            finally:
                self._busy.discard(key)
        return self._runs[key]

    # --- how a function is entered ---

    def _entry(self, scope: Scope, name: str, depth: int) -> list[Path]:
        if name not in scope.parameters or depth >= _DEEPEST:
            return [Path("unknown")]
        self.links.link_callers(scope)
        paths: list[Path] = []
        seen: set[CallSite] = set()
        for number in scope.parameters.values():
            for _, edge in self.links.graph.into[number]:
                if edge.enter is not None and edge.enter not in seen and edge.certain:
                    seen.add(edge.enter)
                    paths += self._from_call(edge.enter, scope, name, depth)
                    if len(paths) > _MOST_STATES:
                        raise _TooManyPaths
        return _merged(paths) or [Path("unknown")]

    def _from_call(self, call: CallSite, scope: Scope, name: str, depth: int) -> list[Path]:
        """The paths that lead from one call into a function."""
        if not call.scope.is_function:
            return [Path("unknown")]
        handed = arguments_of(call.node, scope)
        if handed is None:
            return [Path("unknown")]
        argument = handed.get(name)
        tracked = argument.id if isinstance(argument, ast.Name) else ""
        run = self._run(call.scope, tracked, depth + 1)
        if run is None:
            return [Path("unknown")]
        found = []
        for path in run.calls.get(call.node, []):
            if argument is None:
                null: Null = "none" if _default_is_none(scope, name) else "some"
            elif tracked:
                null = path.null
            else:
                null = "none" if _is_none(argument) else "unknown"
            found.append(Path(null, _into(path.conditions, handed)))
        return found


_USES = frozenset(["read", "passed", "returned", "mutation"])


class _Walk:
    """One walk through a function, for one variable."""

    def __init__(self, owner: Nullness, scope: Scope, name: str, depth: int) -> None:
        self.owner = owner
        self.scope = scope
        self.name = name
        self.depth = depth
        self.run = _Run()
        self.place = owner.links.place(scope)
        self.calls = {call.node for call in scope.calls}
        self._loops: list[list[Path]] = []
        self._relevant: dict[ast.AST, bool] = {}

    def go(self, entry: list[Path]) -> _Run:
        out = self.block(self.scope.function_node.body, entry)
        self.run.returns += [(None, path) for path in out]
        return self.run

    def block(self, body: Sequence[ast.stmt], paths: list[Path]) -> list[Path]:
        for statement in body:
            if not paths:
                return []
            paths = _merged(self.walk(statement, paths))
            self.owner.steps += len(paths)
            if len(paths) > _MOST_STATES or self.owner.steps > _MOST_STEPS:
                raise _TooManyPaths
        return paths

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
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                paths = self.use(child, paths)
        return self.forget([node], paths)

    # --- statements ---

    def _if(self, node: ast.If, paths: list[Path]) -> list[Path]:
        paths = self.use(node.test, paths)
        if not (self.matters(node.body) or self.matters(node.orelse)):
            return self.forget([*node.body, *node.orelse], paths)
        yes = [after for path in paths for after in self.assume(node.test, True, path)]
        no = [after for path in paths for after in self.assume(node.test, False, path)]
        return self.block(node.body, _merged(yes)) + self.block(node.orelse, _merged(no))

    def _assign(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, paths: list[Path]) -> list[Path]:
        if node.value is None:
            return paths
        paths = self.use(node.value, paths)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            for inner in ast.walk(target):
                if isinstance(inner, ast.expr) and not isinstance(getattr(inner, "ctx", None), ast.Store):
                    self.note(inner, paths)
        found = [(target, index) for target in targets for index in self._positions(target)]
        if not found:
            return self.forget([node], paths)
        if isinstance(node, ast.AugAssign):
            return [replace(path, null="some") for path in self.forget([node], paths)]
        out: list[Path] = []
        for path in paths:
            for null, after in self.value(node.value, path, found[-1][1]):
                out += [replace(each, null=null) for each in self.forget([node], [after])]
        return out

    def _positions(self, target: ast.expr) -> Iterator[int | None]:
        """Where the variable is in a target: None for all of it."""
        if isinstance(target, ast.Name) and target.id == self.name:
            yield None
        elif isinstance(target, ast.Tuple | ast.List):
            for position, element in enumerate(target.elts):
                if any(isinstance(inner, ast.Name) and inner.id == self.name for inner in ast.walk(element)):
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
            skipped = [replace(path, null="unknown" if path.null == "none" else path.null) for path in paths]
        return self.block(node.orelse, _merged(self.forget(body, skipped + end)))

    def _try(self, node: ast.Try, paths: list[Path]) -> list[Path]:
        inside = self.block(node.body, paths)
        out = self.block(node.orelse, inside)
        failing = self.forget(node.body, paths)
        if self.sets(node.body):
            failing = [replace(path, null="unknown") for path in failing]
        for handler in node.handlers:
            out += self.block(handler.body, failing)
        return self.block(node.finalbody, _merged(out))

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
                for inner in ast.walk(node)
            )
        return self._relevant[node]

    def sets(self, body: Sequence[ast.stmt]) -> bool:
        """Whether statements assign the variable."""
        return any(
            isinstance(inner, ast.Name) and inner.id == self.name and isinstance(inner.ctx, ast.Store)
            for statement in body
            for inner in ast.walk(statement)
        )

    def forget(self, nodes: Sequence[ast.AST], paths: list[Path]) -> list[Path]:
        """What was known about names that are set anew is not known any more."""
        names: set[str] = set()
        for node in nodes:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store | ast.Del):
                    names.add(inner.id)
                elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store | ast.Del):
                    names.add(ast.unparse(inner))
        if not names:
            return paths
        return [
            replace(
                path, conditions=tuple(replace(c, live=c.live and not _mentions(c, names)) for c in path.conditions)
            )
            for path in paths
        ]

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
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.use(child, paths)
            elif isinstance(child, ast.keyword):
                self.use(child.value, paths)
            elif isinstance(child, ast.comprehension):
                self.use(child.iter, paths)
        return paths

    def note(self, node: ast.expr, paths: list[Path]) -> None:
        if isinstance(node, ast.Name) and node.id == self.name and isinstance(node.ctx, ast.Load):
            line = self.scope.outline.lines[node.lineno - 1]
            column = (
                node.col_offset if line.isascii() else len(line.encode()[: node.col_offset].decode(errors="replace"))
            )
            self.run.uses.setdefault((node.lineno, column + 1), []).extend(paths)
        elif isinstance(node, ast.Call) and node in self.calls:
            self.run.calls.setdefault(node, []).extend(paths)

    # --- conditions ---

    def assume(self, test: ast.expr, holds: bool, path: Path) -> list[Path]:
        """The paths on which a condition holds, or does not; none where it cannot."""
        parts = conjuncts(test, holds)
        if len(parts) > 1:
            found = [path]
            for part, wanted in parts:
                found = [after for before in found for after in self.assume(part, wanted, before)]
            return found
        test, holds = parts[0]
        if isinstance(test, ast.BoolOp):  # one of several: the first that does it
            out: list[Path] = []
            rest = [path]
            for value in test.values:
                out += [after for before in rest for after in self.assume(value, holds, before)]
                rest = [after for before in rest for after in self.assume(value, not holds, before)]
            return out
        if isinstance(test, ast.Constant):
            return [path] if bool(test.value) == holds else []
        key, positive = _key(test)
        holds = holds == positive
        known = self._known(test, key, path)
        if known is not None:
            return [path] if known == holds else []
        null = path.null
        if self.name and key == f"{self.name} is None":
            null = "none" if holds else "some"
        elif self.name and key in (self.name, f"isinstance({self.name}") and holds:
            null = "some"
        test = _positive(test) if not positive else test
        names = {inner.id for inner in ast.walk(test) if isinstance(inner, ast.Name)}
        doubtful = bool(names & (self.scope.local_names - self.scope.parameters.keys()))
        after = Path(null, (*path.conditions, Condition(key, test, holds, doubtful=doubtful)))
        return [after] if self._possible(after, test) else []

    def _known(self, test: ast.expr, key: str, path: Path) -> bool | None:
        if self.name and path.null != "unknown":
            if key == f"{self.name} is None":
                return path.null == "none"
            if path.null == "none" and (key == self.name or key.startswith(f"isinstance({self.name},")):
                return False
        return next((c.holds for c in path.conditions if c.live and c.key == key), None)

    def _possible(self, path: Path, test: ast.expr) -> bool:
        """Whether some member of the enum that a condition asks gives all the answers of the path."""
        asked = self.members(path, test)
        return asked is None or bool(asked[2])

    def members(self, path: Path, test: ast.expr) -> tuple[str, Members, tuple[str, ...]] | None:
        """What a condition asks, its enum, and the members that give all the answers of a path.

        None where it asks no enum, or the enum's answer is not known.
        """
        receiver = _asked(test)
        if receiver is None:
            return None
        written = ast.unparse(receiver)
        enum = next(
            (found for cls in self.owner.links.types.of(receiver, self.place) if (found := self._enum(cls))), None
        )
        if enum is None or not enum.members or _answer(enum, enum.members[0], test) is None:
            return None
        asked = [
            (c.test, c.holds)
            for c in path.conditions
            if c.live and (other := _asked(c.test)) is not None and ast.unparse(other) == written
        ]
        left = tuple(
            member
            for member in enum.members
            if all(_answer(enum, member, each) in (None, holds) for each, holds in asked)
        )
        return written, enum, left

    def _enum(self, cls: Class) -> Members | None:
        return self.owner.links.types.enum(cls)

    # --- values ---

    def value(self, node: ast.expr, path: Path, index: int | None) -> list[tuple[Null, Path]]:
        """Whether an expression, or its part at an index, is None."""
        if index is not None:
            if index >= 0 and isinstance(node, ast.Tuple | ast.List) and index < len(node.elts):
                return self.value(node.elts[index], path, None)
            if index >= 0 and isinstance(node, ast.Call):
                return self._called(node, path, index)
            return [("unknown", path)]
        match node:
            case ast.Constant():
                return [("none" if node.value is None else "some", path)]
            case ast.Name(id=name) if name == self.name and self.name:
                return [(path.null, path)]
            case ast.Name() | ast.Attribute():
                known = self._known(node, f"{ast.unparse(node)} is None", path)
                return [("unknown" if known is None else "none" if known else "some", path)]
            case ast.IfExp():
                found = []
                for branch, holds in ((node.body, True), (node.orelse, False)):
                    for after in self.assume(node.test, holds, path):
                        found += self.value(branch, after, None)
                return found
            case ast.BoolOp(op=ast.Or()):
                last = self.value(node.values[-1], path, None)
                return [("some" if null == "some" else "unknown", after) for null, after in last]
            case ast.NamedExpr():
                return self.value(node.value, path, None)
            case ast.Call():
                return self._called(node, path, None)
            case ast.Subscript() | ast.Await() | ast.BoolOp() | ast.Starred():
                return [("unknown", path)]
        return [("some", path)]

    def _called(self, node: ast.Call, path: Path, index: int | None) -> list[tuple[Null, Path]]:
        links = self.owner.links
        callees = links.types.callees(node.func, self.place)
        if len(callees) == 1 and isinstance(callees[0], Class):
            return [("some" if index is None else "unknown", path)]
        if len(callees) != 1 or self.depth >= _DEEPEST:
            meaning = links.types.meaning(node.func, self.place)
            made = isinstance(meaning, External) and meaning.name in _MAKES_TENSOR and index is None
            return [("some" if made else "unknown", path)]
        assert isinstance(callees[0], Def)
        scope = links.read(callees[0].outline, callees[0].block)
        handed = arguments_of(node, scope) if scope is not None and scope.block is callees[0].block else None
        if scope is None or handed is None or _is_generator(scope):
            return [("unknown", path)]
        return self._results(scope, handed, path, index)

    def _results(
        self, scope: Scope, handed: dict[str, ast.expr | None], path: Path, index: int | None
    ) -> list[tuple[Null, Path]]:
        """What a function gives back, on each of its paths that goes with the path of the caller."""
        returned = [inner for inner in ast.walk(scope.function_node) if isinstance(inner, ast.Return)]
        parts = [_part(statement.value, index) for statement in returned]
        names = {part.id for part in parts if isinstance(part, ast.Name)}
        if len(names) > 1 or (scope, "") in self.owner._busy:
            return [("unknown", path)]
        name = next(iter(names), "")
        key = (scope, name)
        if key in self.owner._busy:
            return [("unknown", path)]
        entry = Path("unknown", _into(path.conditions, handed))
        if name in handed:
            given = handed[name]
            null: Null = "unknown"
            if given is None:
                null = "none" if _default_is_none(scope, name) else "some"
            elif isinstance(given, ast.Name) and given.id == self.name:
                null = path.null
            elif _is_none(given):
                null = "none"
            entry = replace(entry, null=null)
        walk = _Walk(self.owner, scope, name, self.depth + 1)
        self.owner._busy.add(key)
        try:
            run = walk.go([entry])
        except (_TooManyPaths, RecursionError):
            return [("unknown", path)]
        finally:
            self.owner._busy.discard(key)
        found: list[tuple[Null, Path]] = []
        for expression, after in run.returns:
            if expression is None:
                answers: list[tuple[Null, Path]] = [("none" if index is None else "unknown", after)]
            else:
                part = _part(expression, index)
                answers = walk.value(part, after, None) if part is not None else [("unknown", after)]
            for null, end in answers:
                found.append((null, Path(path.null, _back(end.conditions, path.conditions, handed, scope))))
        merged = {(null, each.identity): (null, each) for null, each in found}
        return list(merged.values()) or [("unknown", path)]


# --- conditions from one function to another -------------------------------------------------------------------------


def arguments_of(call: ast.Call, scope: Scope) -> dict[str, ast.expr | None] | None:
    """What a call hands to each parameter: None where it leaves it out. None for all where that cannot be told."""
    arguments = scope.arguments
    if arguments is None or arguments.vararg or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    if any(keyword.arg is None for keyword in call.keywords):
        return None
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    decorated = {ast.unparse(item) for item in scope.function_node.decorator_list}
    handed: dict[str, ast.expr | None] = {}
    if scope.block is not None and scope.block.owner is not None and "staticmethod" not in decorated and names:
        first = names.pop(0)
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
            handed[first] = call.func.value if "classmethod" not in decorated else None
    handed |= dict.fromkeys([*names, *(argument.arg for argument in arguments.kwonlyargs)])
    if len(call.args) > len(names):
        return None
    handed.update(zip(names, call.args, strict=False))
    handed.update({keyword.arg: keyword.value for keyword in call.keywords if keyword.arg in handed})
    return handed


class _Renaming(ast.NodeTransformer):
    def __init__(self, names: dict[str, ast.expr]) -> None:
        self.names = names

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr):
            found = self.names.get(ast.unparse(node))
            if found is not None:
                return copy.deepcopy(found)
        return super().generic_visit(node)

    visit_Name = generic_visit


def _renamed(condition: Condition, names: dict[str, ast.expr]) -> Condition:
    test = _Renaming(names).visit(copy.deepcopy(condition.test))
    return replace(condition, key=_key(test)[0], test=test)


def _into(conditions: tuple[Condition, ...], handed: dict[str, ast.expr | None]) -> tuple[Condition, ...]:
    """Conditions of a caller in the words of the function it calls; others stay, for the record."""
    names: dict[str, ast.expr] = {
        ast.unparse(given): ast.Name(name, ast.Load()) for name, given in handed.items() if given is not None
    }
    found = []
    for condition in conditions:
        renamed = _renamed(condition, names)
        inside = all(inner.id in handed for inner in ast.walk(renamed.test) if isinstance(inner, ast.Name))
        found.append(renamed if inside else replace(condition, live=False))
    return tuple(found)


def _back(
    after: tuple[Condition, ...], before: tuple[Condition, ...], handed: dict[str, ast.expr | None], scope: Scope
) -> tuple[Condition, ...]:
    """Conditions found in a function in the words of its caller, after those that the caller had."""
    names = {name: given for name, given in handed.items() if given is not None}
    own = scope.local_names - names.keys()
    found = list(before)
    for condition in after[len(before) :]:
        used = {inner.id for inner in ast.walk(condition.test) if isinstance(inner, ast.Name)}
        renamed = _renamed(condition, names)
        found.append(renamed if not used & own else replace(renamed, live=False))
    return tuple(found)


# --- expressions -----------------------------------------------------------------------------------------------------


def _key(test: ast.expr) -> tuple[str, bool]:
    """A condition as a text, and whether it says so or the opposite: ``x is not None`` is not ``x is None``."""
    plain = _positive(test)
    return ast.unparse(plain), plain is test


def _positive(test: ast.expr) -> ast.expr:
    opposite: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.IsNot: ast.Is, ast.NotEq: ast.Eq, ast.NotIn: ast.In}
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in opposite:
        return ast.Compare(test.left, [opposite[type(test.ops[0])]()], test.comparators)
    return test


def _asked(test: ast.expr) -> ast.expr | None:
    """What a condition asks that may be an enum: ``mode`` in ``mode.is_full()`` and ``mode == Mode.FULL``."""
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute):
        return test.func.value
    if isinstance(test, ast.Compare) and not isinstance(test.comparators[0], ast.Constant):
        return test.left
    return None


def _answer(enum: Members, member: str, test: ast.expr) -> bool | None:
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute):
        return None if test.args or test.keywords else enum.answer(member, test.func.attr)
    return enum.compare(test, member) if isinstance(test, ast.Compare) else None


def _mentions(condition: Condition, names: set[str]) -> bool:
    for inner in ast.walk(condition.test):
        if isinstance(inner, ast.Name) and inner.id in names:
            return True
        if isinstance(inner, ast.Attribute) and ast.unparse(inner) in names:
            return True
    return False


def _part(node: ast.expr | None, index: int | None) -> ast.expr | None:
    if index is None or node is None:
        return node
    if isinstance(node, ast.Tuple | ast.List) and 0 <= index < len(node.elts):
        return node.elts[index]
    return None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _default_is_none(scope: Scope, name: str) -> bool:
    arguments = scope.arguments
    if arguments is None:
        return False
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs: list[tuple[ast.arg, ast.expr | None]] = list(
        zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)
    )
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return any(a.arg == name and d is not None and _is_none(d) for a, d in pairs)


def _is_generator(scope: Scope) -> bool:
    return any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(scope.function_node))


def _merged(paths: list[Path]) -> list[Path]:
    """Paths that know the same are one; the one with the fewest conditions stands for them."""
    found: dict[object, Path] = {}
    for path in paths:
        known = found.get(path.identity)
        if known is None or len(path.conditions) < len(known.conditions):
            found[path.identity] = path
    return list(found.values())
