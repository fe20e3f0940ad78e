"""Where an engine joins captured states that are still None on a path that leads there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from eaglelint.finding import Position, Span
from eaglelint.source.nodes import all_nodes, dotted
from eaglelint.source.outline import Outline, Unparsable
from eaglelint.source.snapshot import Snapshot
from eaglelint.survey.facts import JoinedWhileNone, Place
from eaglelint.trace.graph import CallSite, Node
from eaglelint.trace.links import Links
from eaglelint.trace.nullness import Nullness
from eaglelint.trace.project import Project

__all__ = ["joined_while_none"]

_JOINS = ("torch.cat", "torch.concat", "torch.stack")
_MOST_STEPS = 100_000
_MOST_SEARCHED = 5_000_000_000
# Captured states are handled in files that speak of them; a join elsewhere is of other things.
_ABOUT = b"aux_hidden_states"
_SPACE = rb"\s|#[^\n]*\n|\\\n"
# Of a variable alone, perhaps in parentheses of its own.
_JOIN = re.compile(rb"torch\.(?:cat|concat|stack)\((?:\(|%b)*[\w\x80-\xff]+(?:%b)*[,)]" % (_SPACE, _SPACE))


def joined_while_none(package: Path, relative_to: Path, snapshot: Snapshot) -> tuple[JoinedWhileNone, ...]:
    """The joins of an engine's captured states, where what is joined may be None: in the order of files and lines."""
    project = Project([package], relative_to=relative_to, snapshot=snapshot)
    links = Links(project, frozenset())
    nullness = Nullness(links, most_steps=_MOST_STEPS, most_searched=_MOST_SEARCHED)
    found: dict[Place, JoinedWhileNone] = {}
    for name, text in project.sources.items():
        outline = project.outline(name) if _ABOUT in text and _JOIN.search(text) else None
        for call, variable in _joins(outline, text) if outline is not None else ():
            assert outline is not None
            scope = links.scope_at(outline, call.lineno)
            site = next((each for each in scope.calls if each.node is call), None) if scope is not None else None
            if scope is None or site is None or not scope.is_function:
                continue
            node = next((n for _, sources in site.arguments for n in _names(links, sources, variable)), None)
            conditions = nullness.at(node) if node is not None else None
            if node is not None and conditions is not None:
                place = _place(site)
                found[place] = JoinedWhileNone(place, node.name, scope.function or "", conditions)
    return tuple(sorted(found.values(), key=lambda item: item.place))


def _joins(outline: Outline, text: bytes) -> Iterator[tuple[ast.Call, ast.Name]]:
    """The joins in the functions of a file of variables that are not plainly lists wherever they are set."""
    lines = (text.count(b"\n", 0, found.start()) + 1 for found in _JOIN.finditer(text))
    blocks = dict.fromkeys(block.outermost for line in lines if (block := outline.innermost(line)) is not None)
    for block in blocks:
        try:
            inside = all_nodes(outline.function(block)) if block.kind == "def" else []
        except Unparsable:
            continue
        for node in inside:
            if isinstance(node, ast.Call):
                variable = _joined(node)
                if variable is not None and not _is_list(variable.id, inside):
                    yield node, variable


def _is_list(name: str, inside: list[ast.AST]) -> bool:
    """Whether a function sets a variable, and to nothing but lists that it writes down."""
    written = {
        target
        for node in inside
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List | ast.ListComp)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    bound = [node for node in inside if _binds(node, name)]
    return bool(bound) and written.issuperset(bound)


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Global | ast.Nonlocal):
        return name in node.names
    places = () if isinstance(node, ast.keyword) else ("name", "asname", "arg")
    return any(getattr(node, place, None) == name for place in places)


def _joined(tree: ast.Call) -> ast.Name | None:
    """The variable that a call of ``torch.cat`` is handed."""
    if dotted(tree.func) not in _JOINS or not tree.args or not isinstance(tree.args[0], ast.Name):
        return None
    return tree.args[0]


def _names(links: Links, sources: list[tuple[int, tuple[str, ...]]], argument: ast.Name) -> list[Node]:
    nodes = [links.graph.nodes[number] for number, _ in sources]
    return [node for node in nodes if node.name == argument.id and node.line == argument.lineno]


def _place(call: CallSite) -> Place:
    tree = call.node
    start = Position(tree.lineno, tree.col_offset + 1)
    end = Position(tree.end_lineno, (tree.end_col_offset or 0) + 1) if tree.end_lineno == tree.lineno else None
    return Place(Span(call.scope.outline.display, start, end), ast.unparse(tree))
