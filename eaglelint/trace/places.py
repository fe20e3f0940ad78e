"""The places of a function's code: a node for each name, attribute, key and call, joined with what reaches it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from eaglelint.source.outline import characters
from eaglelint.trace.conditions import Guard
from eaglelint.trace.graph import CallSite, Edge, Graph, Node, Scope
from eaglelint.trace.sources import dotted_path

__all__ = ["Env", "Places", "note"]

Env = dict[str, frozenset[int]]


class Places:
    """What is known at a point of a function: the definitions that reach it and the conditions that hold."""

    def __init__(self, graph: Graph, scope: Scope, words: frozenset[str]) -> None:
        self.graph = graph
        self.scope = scope
        self.words = words
        self.env: Env = {}
        self.guards: list[Guard] = []
        self.deciders: list[list[int]] = []
        self.statement: ast.AST | None = None

    # --- places ---

    def place(self, line: int, column: int, name: str, kind: str, tag: str = "") -> Node:
        """The node at a place, columns counted from 1."""
        node = self.graph.node(self.scope, line, column, name, kind, tuple(self.guards), tag)
        if node.statement is None:
            node.statement = self.statement
        return node

    def at(self, tree: ast.expr | ast.arg | ast.keyword | ast.alias, name: str, kind: str) -> Node:
        line = self.scope.outline.lines[tree.lineno - 1]
        column = characters(line, tree.col_offset)
        if not line.startswith(name, column):
            return self.found(tree, name, kind)
        return self.place(tree.lineno, column + 1, name, kind)

    def found(self, tree: ast.AST, name: str, kind: str, part: int = -1) -> Node:
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
        column = 0
        if isinstance(tree, ast.alias | ast.pattern | ast.stmt | ast.ExceptHandler):
            column = characters(outline.lines[first - 1], tree.col_offset)
        for number in (first, *range(start, min(end, len(outline.lines)) + 1)):
            for at in _words(outline.lines[number - 1], name, column if number == first else 0):
                key = (outline, number, at + 1, name)
                if key not in self.graph.taken and not self.graph.has(*key):
                    self.graph.taken.add(key)
                    return number, at + 1
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
        start = characters(line, tree.col_offset)
        column = line.find(text, start)
        if column < 0:
            return None
        node = self.place(tree.lineno, column + 1, text, kind)
        node.kind = kind if node.kind == "read" else node.kind
        node.key = True
        node.container = container or node.container
        node.fallback = fallback or node.fallback
        if kind == "config-key":
            note(self.scope.keys, text, node.id)
        return node

    def set_key(self, node: Node) -> None:
        """A key that is written: ``setattr(x, "key", value)``."""
        node.attribute = "store"
        note(self.scope.attributes, node.name, node.id)

    # --- names ---

    def load(self, tree: ast.Name, role: str) -> Node:
        node = self.at(tree, tree.id, role)
        if node.kind == "read":
            node.kind = role
        note(self.scope.loads, tree.id, node.id)
        reaching = self.env.get(tree.id)
        if reaching is not None:
            for start in reaching:
                self.graph.edge(start, Edge(node.id))
        elif tree.id not in self.scope.local_names:
            node.free = True
            note(self.scope.free, tree.id, node.id)
        if self.deciders:
            self.deciders[-1].append(node.id)
        return node

    def attribute(self, tree: ast.Attribute, role: str, *, store: bool = False) -> Node:
        line = self.scope.outline.lines[(tree.end_lineno or tree.lineno) - 1]
        end = tree.end_col_offset or 0
        column = (characters(line, end)) - len(tree.attr)
        if line.startswith(tree.attr, max(column, 0)):
            node = self.place(tree.end_lineno or tree.lineno, column + 1, tree.attr, role)
        else:
            node = self.found(tree, tree.attr, role)
        node.kind = role if node.kind == "read" else node.kind
        node.owner = tree.value
        note(self.scope.attributes, tree.attr, node.id)
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
        inside = f"{name}."
        for path in [path for path in self.env if path.startswith(inside)]:
            del self.env[path]
        self.env[name] = frozenset({node.id})
        if "." not in name:
            note(self.scope.definitions, name, node.id)


def _words(line: str, name: str, start: int) -> Iterator[int]:
    """Where a name stands in a line as a whole word: searched for once each, so not with an expression of its own."""
    at = line.find(name, start)
    while at >= 0:
        end = at + len(name)
        if not (_is_word(line[at - 1 : at]) or _is_word(line[end : end + 1])):
            yield at
        at = line.find(name, at + 1)


def _is_word(character: str) -> bool:
    return character == "_" or character.isalnum()


def note(into: dict[str, list[int]], name: str, node: int) -> None:
    found = into.setdefault(name, [])
    if node not in found:
        found.append(node)
