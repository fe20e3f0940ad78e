"""Where a variable is still None: the paths of a function, one by one, as far as they matter for that variable.

Only what a path shows is said. A condition that cannot hold together with others, by the same test or because no member
of an enum answers all of them so, ends its path. What cannot be told is unknown, and unknown is never called None.
"""

from __future__ import annotations

import ast

from eaglelint.source.nodes import all_nodes
from eaglelint.source.outline import Outline, Unparsable
from eaglelint.trace.conditions import Members, guard_text
from eaglelint.trace.graph import CallSite, Node, Scope
from eaglelint.trace.links import Links
from eaglelint.trace.none_values import DEEPEST, default_is_none
from eaglelint.trace.path_walk import MOST_PATHS, PathWalk, Run, TooManyPaths
from eaglelint.trace.paths import Condition, Handed, Null, Path, Test, handed_to, is_none, merged, opposite
from eaglelint.trace.types import Place

__all__ = ["Nullness"]

_MOST_CALLS = 40  # of a function, past which what one of them hands over says little
_MOST_STEPS = 12_000  # statements walked through, for each path
_MOST_SEARCHED = 300_000_000  # bytes looked through for calls
_USES = frozenset(["read", "passed", "returned", "mutation"])


class Nullness:
    """Answers for the functions of one trace; each function is walked once for each variable."""

    def __init__(self, links: Links, *, most_steps: int = _MOST_STEPS, most_searched: int = _MOST_SEARCHED) -> None:
        self.links = links
        self.steps = 0
        self.most_steps = most_steps
        self.answers: dict[object, list[tuple[Null, tuple[Condition, ...]]]] = {}
        self._most_searched = links.project.searched + most_searched
        self._runs: dict[tuple[Scope, str], Run | None] = {}
        self._busy: set[tuple[Scope, str]] = set()
        self._tests: dict[ast.expr, tuple[Test, bool]] = {}
        self._handed: dict[tuple[ast.Call, Scope], Handed | None] = {}
        self._names_set: dict[ast.AST, frozenset[str]] = {}
        self._enums: dict[tuple[Outline, object, str], Members | None] = {}
        self._told_by: dict[tuple[Members, Test, str], bool | None] = {}
        self._returns: dict[Scope, list[ast.Return] | None] = {}

    def at(self, node: Node) -> tuple[str, ...] | None:
        """The conditions of a path on which a variable is None where it is used; None where no such path is known."""
        if not node.real or node.attribute or not node.scope.is_function or node.kind not in _USES:
            return None
        run = self._run(node.scope, node.name)
        if run is None:
            return None
        paths = [path for path in run.uses.get((node.line, node.column), ()) if path.null == "none"]
        return self._most_usual(paths, node.scope)

    def at_call(self, call: CallSite, name: str) -> tuple[str, ...] | None:
        """As ``at``, for a variable at the time of a call."""
        run = self._run(call.scope, name)
        paths = run.calls.get(call.node, []) if run is not None else []
        return self._most_usual([path for path in paths if path.null == "none"], call.scope)

    # --- in words ---

    def _most_usual(self, paths: list[Path], scope: Scope) -> tuple[str, ...] | None:
        told = [found for path in paths if (found := self._told(path, scope)) is not None]
        return max(told, key=lambda each: each[0])[1] if told else None

    def _told(self, path: Path, scope: Scope) -> tuple[tuple[int, int], tuple[str, ...]] | None:
        """A path's conditions in words; what an enum is asked, by its members. With it, how usual the path is.

        None for a path that proves nothing, and for one that no member of an enum can take.
        """
        if any(condition.doubtful for condition in path.conditions):
            return None
        walk = PathWalk(self, scope, "", 0)
        words: dict[str, None] = {}
        usual: dict[str, int] = {}
        for condition in path.conditions:
            asked = walk.members(path, condition.test) if condition.live else None
            if asked is None:
                words[guard_text(condition.test.node, condition.holds)] = None
            else:
                written, left = condition.test.asked_text, asked[1]
                if not left:
                    return None
                usual[written] = len(left)
                listed = left[0] if len(left) == 1 else f"{', '.join(left[:-1])} or {left[-1]}"
                words[f"{written} is {listed}"] = None
        return (sum(usual.values()), -len(path.conditions)), tuple(words)

    # --- walks ---

    def _run(self, scope: Scope, name: str, depth: int = 0) -> Run | None:
        key = (scope, name)
        if key in self._busy:
            return None
        if key not in self._runs:
            self._busy.add(key)
            try:
                self._runs[key] = PathWalk(self, scope, name, depth).go(self._entry(scope, name, depth))
            except (TooManyPaths, RecursionError, Unparsable):
                self._runs[key] = None
            finally:
                self._busy.discard(key)
        return self._runs[key]

    def walk_once(self, scope: Scope, name: str, entry: Path, depth: int) -> PathWalk | None:
        """A walk on one way into a function; None where it cannot be made, or is being made."""
        key = (scope, name)
        if key in self._busy or (scope, "") in self._busy:
            return None
        walk = PathWalk(self, scope, name, depth)
        self._busy.add(key)
        try:
            walk.go([entry])
        except (TooManyPaths, RecursionError):
            return None
        finally:
            self._busy.discard(key)
        return walk

    def _entry(self, scope: Scope, name: str, depth: int) -> list[Path]:
        """How a function is entered."""
        if name not in scope.parameters or depth >= DEEPEST or self.links.project.searched > self._most_searched:
            return [Path("unknown")]
        if self.links.is_called_often(scope, _MOST_CALLS):
            return [Path("unknown")]
        self.links.link_callers(scope)
        paths: list[Path] = []
        seen: set[CallSite] = set()
        for number in scope.parameters.values():
            for _, edge in self.links.graph.into[number]:
                if edge.enter is not None and edge.enter not in seen and edge.certain:
                    seen.add(edge.enter)
                    paths += self._from_call(edge.enter, scope, name, depth)
                    if len(paths) > MOST_PATHS:
                        raise TooManyPaths
        return merged(paths) or [Path("unknown")]

    def _from_call(self, call: CallSite, scope: Scope, name: str, depth: int) -> list[Path]:
        """The paths that lead from one call into a function."""
        handed = self.handed(call.node, scope) if call.scope.is_function else None
        if handed is None:
            return [Path("unknown")]
        argument = handed.given.get(name)
        tracked = argument.id if isinstance(argument, ast.Name) else ""
        run = self._run(call.scope, tracked, depth + 1)
        if run is None:
            return [Path("unknown")]
        found = []
        for path in run.calls.get(call.node, []):
            if argument is None:
                null: Null = "none" if default_is_none(scope, name) else "some"
            elif tracked:
                null = path.null
            else:
                null = "none" if is_none(argument) else "unknown"
            found.append(Path(null, handed.into(path.conditions)))
        return found

    # --- what is asked again and again ---

    def test(self, node: ast.expr) -> tuple[Test, bool]:
        """A condition in its positive form, and whether that is what it says."""
        if node not in self._tests:
            positive = opposite(node)
            self._tests[node] = Test(positive or node), positive is None
        return self._tests[node]

    def handed(self, call: ast.Call, scope: Scope) -> Handed | None:
        """What a call hands to a function."""
        key = (call, scope)
        if key not in self._handed:
            self._handed[key] = handed_to(call, scope)
        return self._handed[key]

    def names_set(self, node: ast.AST) -> frozenset[str]:
        """The names and attributes that a piece of code sets."""
        if node not in self._names_set:
            names = set()
            for inner in all_nodes(node):
                if isinstance(inner, ast.Name | ast.Attribute) and isinstance(inner.ctx, ast.Store | ast.Del):
                    names.add(inner.id if isinstance(inner, ast.Name) else ast.unparse(inner))
            self._names_set[node] = frozenset(names)
        return self._names_set[node]

    def enum_of(self, test: Test, place: Place) -> Members | None:
        """The enum that a condition asks."""
        key = (place.outline, place.block, test.asked_text)
        if key not in self._enums:
            classes = self.links.types.of(test.asked, place)
            self._enums[key] = next((found for cls in classes if (found := self.links.types.enum(cls))), None)
        return self._enums[key]

    def tells(self, enum: Members, test: Test, member: str) -> bool | None:
        """Whether a condition holds where what it asks is that member of an enum."""
        key = (enum, test, member)
        if key not in self._told_by:
            self._told_by[key] = enum.tell(test.node, member)
        return self._told_by[key]

    def returns_of(self, scope: Scope) -> list[ast.Return] | None:
        """The return statements of a function; None where it yields what it gives back."""
        if scope not in self._returns:
            inside = all_nodes(scope.function_node)
            yields = any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in inside)
            self._returns[scope] = None if yields else [inner for inner in inside if isinstance(inner, ast.Return)]
        return self._returns[scope]
