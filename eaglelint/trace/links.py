"""How values get from one function to another: calls, returns, attributes, variables of modules.

Nothing is linked before a trace comes to it: a link may mean looking for a word in all files.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from eaglelint.trace.attributes import Attributes
from eaglelint.trace.conditions import Guard, holds_for
from eaglelint.trace.graph import Edge, Node, Scope
from eaglelint.trace.project import Class, Project, Variable
from eaglelint.trace.reading import MOST_FUNCTIONS

__all__ = ["Links"]


class Links(Attributes):
    """The graph of one trace, and what it takes to go on from any of its nodes."""

    def __init__(self, project: Project, words: frozenset[str], *, most_calls: int = MOST_FUNCTIONS) -> None:
        super().__init__(project, words, most_calls=most_calls)
        self._linked_variables: set[int] = set()

    def link_calls(self, node: Node) -> None:
        """Link the calls that a node is handed to, and where it comes back to in its own file.

        Calls of constructors say which attribute it becomes.
        """
        for call in node.calls:
            self.link_call(call)
        for scope in self.returned.get(node.id, ()):
            self.link_callers_nearby(scope)

    def has_more(self, node: Node, *, backward: bool) -> bool:
        """Whether there is something to link beyond the calls that a node is handed to."""
        if backward:
            load = node.attribute == "load" and not node.local
            return node.call is not None or node.parameter or load or node.free or node.imported is not None
        stored = node.attribute == "store" or node.class_field is not None
        outside = not node.scope.is_function and node.kind in ("assignment", "mutation")
        return stored or outside or node.id in self.returned

    def forward(self, node: Node) -> None:
        """Link what the value of a node can go to beyond calls; this looks for words in all files."""
        if node.attribute == "store" or node.class_field is not None:
            self.link_attribute(node)
        for scope in self.returned.get(node.id, ()):
            self.link_callers(scope)
        if not node.scope.is_function and node.kind in ("assignment", "mutation"):
            self.link_variable_uses(node)

    def backward(self, node: Node) -> None:
        """Link what the value of a node can come from."""
        if node.call is not None:
            self.link_call(node.call)
        if node.parameter:
            self.link_callers(node.scope)
        if node.attribute == "load" and not node.local:
            self.link_attribute(node)
        if node.free or node.imported is not None:
            self.link_variable(node)

    # --- variables of modules ---

    def link_variable(self, node: Node) -> None:
        """Connect a name that a function does not bind with the module's variable that it means."""
        if node.id in self._linked_variables:
            return
        self._linked_variables.add(node.id)
        meaning = self.project.meaning(node.scope.outline, node.name)
        if node.imported is not None:
            meaning = self.project.imported(node.scope.outline, *node.imported)
        if isinstance(meaning, Variable) and self.project.includes(meaning.outline):
            scope = self.read(meaning.outline, None)
            for start in scope.definitions.get(meaning.name, ()) if scope is not None else ():
                self.graph.edge(start, Edge(node.id, how="module variable"))

    def link_variable_uses(self, node: Node) -> None:
        """Connect a module's variable with the functions that read it, here and where it is imported."""
        if node.id in self._linked_variables or not isinstance(node.scope.tree, ast.Module):
            return
        self._linked_variables.add(node.id)
        for scope in self.read_lines(self.project.lines_with(node.name)):
            for each in self.family(scope):
                for number in each.free.get(node.name, ()):
                    self.link_variable(self.graph.nodes[number])

    # --- modes ---

    def reached_in(self, node: Node, member: str, enums: list[Class]) -> bool:
        """Whether a node can be reached where every value of an enum is that member."""
        return all(self.allows(guard, node.scope, member, enums) for guard in node.guards)

    def allows(self, guard: Guard, scope: Scope, member: str, enums: list[Class]) -> bool:
        if guard.test is None:
            return True
        for cls in enums:
            members = self.types.enum(cls)
            if members is None:
                continue
            answer = holds_for(guard.test, members, member, self.of_enum(cls, scope))
            if answer is not None and answer != guard.holds:
                return False
        return True

    def of_enum(self, cls: Class, scope: Scope) -> Callable[[ast.expr, str], bool]:
        """Tells whether an expression's value is a member of an enum."""

        def is_enum(node: ast.expr, method: str) -> bool:
            classes = self.types.of(node, self.place(scope))
            if classes:
                return cls in classes
            return not method or all(owner == cls for owner, _ in self.project.classes_with(method))

        return is_enum
