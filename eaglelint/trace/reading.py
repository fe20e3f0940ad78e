"""The functions that a trace has read, each once, and the graph that they make."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from eaglelint.source.outline import Block, Outline, Unparsable
from eaglelint.trace.graph import Graph, Scope
from eaglelint.trace.project import Class, Project
from eaglelint.trace.scopes import read_scope
from eaglelint.trace.types import Place, Types

__all__ = ["MOST_FUNCTIONS", "Reading"]

MOST_FUNCTIONS = 600  # functions read for the sake of one name


class Reading:
    """Reads functions, class bodies and modules' own statements on demand."""

    def __init__(self, project: Project, words: frozenset[str]) -> None:
        self.project = project
        self.words = words
        self.graph = Graph()
        self.types = Types(project)
        self.cut: dict[str, None] = {}
        self._scopes: dict[tuple[Outline, Block | None], Scope | None] = {}
        self.returned: dict[int, list[Scope]] = {}

    # --- reading ---

    def scope_at(self, outline: Outline, line: int) -> Scope | None:
        """The function, class body or module's statements that a line belongs to, read."""
        return self.read(outline, outline.innermost(line))

    def read(self, outline: Outline, block: Block | None) -> Scope | None:
        """A block, read; a nested function together with the one around it. None where it cannot be parsed."""
        wanted = block
        if block is not None and block.kind == "def":
            block = block.outermost
        elif block is not None and block.outermost is not block:
            block = block.outermost  # a class in a function
        key = (outline, block)
        if key not in self._scopes:
            self._scopes[key] = None
            try:
                self._scopes[key] = self._read(outline, block)
            except Unparsable as error:
                self.project.skip(outline.display, error)
        if wanted is not None and wanted is not block:
            return self.graph.scopes.get(wanted, self._scopes[key])
        return self._scopes[key]

    def _read(self, outline: Outline, block: Block | None) -> Scope:
        tree: ast.AST
        cls = None
        if block is None:
            tree = outline.module()
        elif block.kind == "class":
            tree, cls = outline.cls(block), Class(outline, block)
        else:
            tree = outline.function(block)
            cls = Class(outline, block.owner) if block.owner is not None else None
        scope = Scope(outline, block, tree, cls)
        if block is not None:
            self.graph.scopes[block] = scope
        read_scope(self.graph, scope, self.words)
        for each in self.family(scope):
            for start, _ in each.returns:
                self.returned.setdefault(start, []).append(each)
        return scope

    def family(self, scope: Scope) -> Iterable[Scope]:
        yield scope
        for inner in scope.inner.values():
            yield from self.family(inner)

    def read_lines(self, found: dict[Outline, list[int]]) -> list[Scope]:
        """Everything that has one of the lines found for a word."""
        scopes: dict[Scope, None] = {}
        for outline, lines in found.items():
            for line in lines:
                scope = self.scope_at(outline, line)
                if scope is not None:
                    scopes[scope] = None
                if len(scopes) > MOST_FUNCTIONS:
                    return list(scopes)
        return list(scopes)

    def place(self, scope: Scope) -> Place:
        return Place(scope.outline, scope.block, scope.tree)
