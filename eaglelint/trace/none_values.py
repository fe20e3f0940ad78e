"""Whether an expression's value is None on a path, over the calls and returns that make it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from eaglelint.trace.graph import Scope
from eaglelint.trace.paths import Condition, Handed, Null, Path, is_none
from eaglelint.trace.project import Class, Def, External

if TYPE_CHECKING:
    from eaglelint.trace.path_walk import PathWalk

__all__ = ["DEEPEST", "default_is_none", "null_of"]

DEEPEST = 3
_MAKES_TENSOR = frozenset(["torch.cat", "torch.stack", "torch.empty", "torch.zeros", "torch.tensor", "torch.concat"])


def null_of(walk: PathWalk, node: ast.expr, path: Path, index: int | None) -> list[tuple[Null, Path]]:
    """Whether an expression, or its part at an index, is None; with what that adds to the path."""
    if index is not None:
        if index >= 0 and isinstance(node, ast.Tuple | ast.List) and index < len(node.elts):
            return null_of(walk, node.elts[index], path, None)
        if index >= 0 and isinstance(node, ast.Call):
            return _called(walk, node, path, index)
        return [("unknown", path)]
    match node:
        case ast.Constant():
            return [("none" if node.value is None else "some", path)]
        case ast.Name(id=name) if name == walk.name and walk.name:
            return [(path.null, path)]
        case ast.Name() | ast.Attribute():
            known = walk.known(f"{ast.unparse(node)} is None", path)
            return [("unknown" if known is None else "none" if known else "some", path)]
        case ast.IfExp():
            found = []
            for branch, holds in ((node.body, True), (node.orelse, False)):
                for after in walk.assume(node.test, holds, path):
                    found += null_of(walk, branch, after, None)
            return found
        case ast.BoolOp(op=ast.Or()):
            last = null_of(walk, node.values[-1], path, None)
            return [("some" if null == "some" else "unknown", after) for null, after in last]
        case ast.NamedExpr():
            return null_of(walk, node.value, path, None)
        case ast.Call():
            return _called(walk, node, path, None)
        case ast.Subscript() | ast.Await() | ast.BoolOp() | ast.Starred():
            return [("unknown", path)]
    return [("some", path)]


def _called(walk: PathWalk, node: ast.Call, path: Path, index: int | None) -> list[tuple[Null, Path]]:
    links = walk.owner.links
    callees = links.types.callees(node.func, walk.place)
    if len(callees) == 1 and isinstance(callees[0], Class):
        return [("some" if index is None else "unknown", path)]
    if len(callees) != 1 or walk.depth >= DEEPEST:
        meaning = links.types.meaning(node.func, walk.place)
        made = isinstance(meaning, External) and meaning.name in _MAKES_TENSOR and index is None
        return [("some" if made else "unknown", path)]
    assert isinstance(callees[0], Def)
    scope = links.read(callees[0].outline, callees[0].block)
    if scope is None or scope.block is not callees[0].block:
        return [("unknown", path)]
    handed = walk.owner.handed(node, scope)
    returned = walk.owner.returns_of(scope)
    if handed is None or returned is None:
        return [("unknown", path)]
    return _results(walk, handed, returned, path, index)


def _results(
    walk: PathWalk, handed: Handed, returned: list[ast.Return], path: Path, index: int | None
) -> list[tuple[Null, Path]]:
    """What a function gives back, on each of its paths that goes with the path of the caller."""
    parts = [_part(statement.value, index) for statement in returned]
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    if len(names) > 1:
        return [("unknown", path)]
    name = next(iter(names), "")
    entry = Path("unknown", handed.into(path.conditions))
    if name in handed.given:
        given = handed.given[name]
        null: Null = "unknown"
        if given is None:
            null = "none" if default_is_none(handed.scope, name) else "some"
        elif isinstance(given, ast.Name) and given.id == walk.name:
            null = path.null
        elif is_none(given):
            null = "none"
        entry = entry.but(null)
    found: dict[object, tuple[Null, Path]] = {}
    for answer, added in _answers(walk, handed.scope, name, entry, index):
        back = Path(path.null, handed.back(path.conditions, added))
        found[answer, back.identity] = answer, back
    return list(found.values()) or [("unknown", path)]


def _answers(
    walk: PathWalk, scope: Scope, name: str, entry: Path, index: int | None
) -> list[tuple[Null, tuple[Condition, ...]]]:
    """Whether what a function gives back is None, with the conditions that its own code adds."""
    key = (scope, name, entry.identity, index, walk.depth)
    known = walk.owner.answers.get(key)
    if known is not None:
        return known
    inner = walk.owner.walk_once(scope, name, entry, walk.depth + 1)
    if inner is None:
        return [("unknown", ())]
    found: list[tuple[Null, tuple[Condition, ...]]] = []
    for expression, after in inner.run.returns:
        part = _part(expression, index)
        if expression is None:
            ends: list[tuple[Null, Path]] = [("none" if index is None else "unknown", after)]
        else:
            ends = null_of(inner, part, after, None) if part is not None else [("unknown", after)]
        found += [(answer, end.conditions[len(entry.conditions) :]) for answer, end in ends]
    walk.owner.answers[key] = found
    return found


def _part(node: ast.expr | None, index: int | None) -> ast.expr | None:
    if index is None or node is None:
        return node
    if isinstance(node, ast.Tuple | ast.List) and 0 <= index < len(node.elts):
        return node.elts[index]
    return None


def default_is_none(scope: Scope, name: str) -> bool:
    """Whether a parameter that a call leaves out is None."""
    arguments = scope.arguments
    if arguments is None:
        return False
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs: list[tuple[ast.arg, ast.expr | None]] = list(
        zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)
    )
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return any(a.arg == name and d is not None and is_none(d) for a, d in pairs)
