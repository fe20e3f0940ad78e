"""Lists that are handed to a function which appends to them: what they hold after the call."""

from __future__ import annotations

from eaglelint.source.outline import Block, Outline
from eaglelint.trace.graph import CallSite, Edge, Node, Scope
from eaglelint.trace.outside import Outside
from eaglelint.trace.project import Project

__all__ = ["Filling"]


class Filling(Outside):
    """For a parameter that may be changed, a node without a name stands for what it holds in the end."""

    def __init__(self, project: Project, words: frozenset[str]) -> None:
        super().__init__(project, words)
        self.ends: set[int] = set()
        self._ends: dict[tuple[Scope, str], int | None] = {}

    def _read(self, outline: Outline, block: Block | None) -> Scope:
        scope = super()._read(outline, block)
        nodes = self.graph.nodes
        for each in self.family(scope):
            for name in each.parameters:
                if any(nodes[number].kind == "mutation" for number in each.loads.get(name, ())):
                    self._end_of(each, name)
        return scope

    def link_filled(self, call: CallSite, scope: Scope, parameter: str, start: int, *, certain: bool) -> None:
        """Connect what a parameter holds in the end with the variable that a call hands over, where it is used next."""
        end = self._end_of(scope, parameter)
        if end is None:
            return
        graph = self.graph
        handed = graph.nodes[start]
        if handed.constant:  # a keyword: the variable is what it is given
            variables = [graph.nodes[each] for each, edge in graph.into[start] if not edge.push and not edge.pop]
        else:
            variables = [handed]
        for variable in variables:
            if variable.scope is not call.scope or variable.attribute or not variable.real:
                continue
            reaching = self._definitions(variable)
            for number in call.scope.loads.get(variable.name, ()):
                load = graph.nodes[number]
                after = (load.line, load.column) > (call.node.end_lineno or 0, call.node.end_col_offset or 0)
                if after and reaching & self._definitions(load):
                    graph.edge(end, Edge(number, leave=call, certain=certain))
            if call.scope.parameters.get(variable.name) in reaching:
                own = self._end_of(call.scope, variable.name)
                if own is not None:
                    graph.edge(end, Edge(own, leave=call, certain=certain))

    def _definitions(self, node: Node) -> set[int]:
        return {start for start, edge in self.graph.into[node.id] if edge.leave is None}

    def _end_of(self, scope: Scope, name: str) -> int | None:
        """The node of what a parameter holds in the end; None where the function does nothing that could change it."""
        key = (scope, name)
        if key not in self._ends:
            self._ends[key] = None
            graph, parameter = self.graph, scope.parameters[name]
            loads = [graph.nodes[number] for number in scope.loads.get(name, ())]
            changes = [load for load in loads if load.kind == "mutation"]
            if changes or any(load.calls for load in loads):
                start = graph.nodes[parameter]
                end = graph.node(scope, start.line, start.column, "", "read", (), f"end@{name}")
                self._ends[key] = end.id
                self.ends.add(end.id)
                self.returned.setdefault(end.id, []).append(scope)
                for change in changes:
                    if graph.comes_from(change.id, frozenset({parameter})):
                        graph.edge(change.id, Edge(end.id))
        return self._ends[key]
