"""Where an engine joins captured states that are still None on a path that leads there."""

from __future__ import annotations

import ast
import re

from eaglelint.engines.base import EngineSource
from eaglelint.finding import Position, Span
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
_ABOUT = "aux_hidden_states"


def joined_while_none(source: EngineSource) -> tuple[JoinedWhileNone, ...]:
    """The joins of an engine's captured states, where what is joined may be None: in the order of files and lines."""
    project = Project([source.package], relative_to=source.tree.relative_to, snapshot=source.tree.snapshot)
    links = Links(project, frozenset())
    nullness = Nullness(links, most_steps=_MOST_STEPS, most_searched=_MOST_SEARCHED)
    found: dict[Place, JoinedWhileNone] = {}
    for outline in project.lines_with(_ABOUT, rf"{_ABOUT}"):
        lines = [number for number, line in enumerate(outline.lines, 1) if re.search(r"\.(?:cat|concat|stack)\(", line)]
        for scope in links.read_lines({outline: lines}):
            for call in scope.calls:
                argument = _joined(call)
                if argument is None or not scope.is_function:
                    continue
                node = next((n for _, sources in call.arguments for n in _names(links, sources, argument)), None)
                conditions = nullness.at(node) if node is not None else None
                if node is not None and conditions is not None:
                    place = _place(call)
                    found[place] = JoinedWhileNone(place, node.name, scope.function or "", conditions)
    return tuple(sorted(found.values(), key=lambda item: item.place))


def _joined(call: CallSite) -> ast.Name | None:
    """The variable that a call of ``torch.cat`` is handed."""
    tree = call.node
    if ast.unparse(tree.func) not in _JOINS or not tree.args or not isinstance(tree.args[0], ast.Name):
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
