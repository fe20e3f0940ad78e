"""The graph of a trace: places where a value is, and how it gets from one to the next."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from eaglelint.source.outline import Block, Function, Outline
from eaglelint.trace.conditions import Guard
from eaglelint.trace.project import Class

__all__ = ["CallSite", "Edge", "Graph", "Node", "Scope", "Source", "take"]

Source = tuple[int, tuple[str, ...]]
"""A node whose value an expression holds, and where in it: the innermost position of a tuple, list or dict last."""


@dataclass(eq=False, slots=True)
class Node:
    """A place in the code: a name, attribute, keyword or key; or, without a name, the result of a call."""

    id: int
    scope: Scope
    line: int
    column: int
    name: str
    kind: str
    guards: tuple[Guard, ...]
    statement: ast.AST | None = None
    owner: ast.expr | None = None  # of an attribute: what it is an attribute of
    attribute: str = ""  # "load" or "store", of an attribute
    expression: ast.expr | None = None  # of a definition: what is assigned
    call: CallSite | None = None  # of a call's result
    calls: list[CallSite] = field(default_factory=list)  # the calls that it is handed to
    parameter: bool = False
    free: bool = False  # a name that its function does not bind
    local: bool = False  # an attribute whose value was set just before, in the same function
    key: bool = False  # a string that names an attribute or a key
    names_attribute: bool = False  # of a key: one of getattr, setattr, hasattr
    fallback: str | None = None  # of a key: what is taken where it is absent
    container: ast.expr | None = None  # of a key: what it is a key of
    imported: tuple[str, str | None, int] | None = None
    class_field: Class | None = None  # of a keyword or class variable: the class that has it as a field

    @property
    def constant(self) -> bool:
        """Whether it names something that is no variable's value: the keyword of a constant, ``dim=-1``."""
        return self.kind == "passed" and self.expression is not None

    @property
    def real(self) -> bool:
        return bool(self.name)


@dataclass(frozen=True, slots=True)
class Edge:
    """How a value gets from one place to the next.

    ``push`` are positions in a tuple, list or dict that it is put into, innermost first; ``pop`` those that it is
    taken from. ``enter`` and ``leave`` are calls that it goes into and comes back from. ``reset``: what it was
    inside of is not known any more. ``certain`` is false where the receiver of an attribute or a method is only
    guessed by its name.
    """

    to: int
    push: tuple[str, ...] = ()
    pop: tuple[str, ...] = ()
    enter: CallSite | None = None
    leave: CallSite | None = None
    reset: bool = False
    certain: bool = True
    how: str = ""


@dataclass(eq=False, slots=True)
class CallSite:
    """A call: what is called, and which sources are handed to it."""

    scope: Scope
    node: ast.Call
    result: int
    arguments: list[tuple[int | str, list[Source]]] = field(default_factory=list)
    keywords: dict[str, int] = field(default_factory=dict)  # the node of a keyword's name
    receiver: list[Source] = field(default_factory=list)
    linked: bool = False
    changes_receiver: bool = False  # a container's method such as append, unless the class is known


@dataclass(eq=False, slots=True)
class Scope:
    """A function, a class body or a module's own statements, read once."""

    outline: Outline
    block: Block | None
    tree: ast.AST
    cls: Class | None = None
    outer: Scope | None = None
    parameters: dict[str, int] = field(default_factory=dict)
    returns: list[Source] = field(default_factory=list)
    definitions: dict[str, list[int]] = field(default_factory=dict)
    loads: dict[str, list[int]] = field(default_factory=dict)
    free: dict[str, list[int]] = field(default_factory=dict)
    calls: list[CallSite] = field(default_factory=list)
    attributes: dict[str, list[int]] = field(default_factory=dict)
    keys: dict[str, list[int]] = field(default_factory=dict)
    imports: dict[str, tuple[str, str | None, int]] = field(default_factory=dict)
    inner: dict[str, Scope] = field(default_factory=dict)
    local_names: frozenset[str] = frozenset()

    @property
    def function(self) -> str | None:
        """The qualified name of the function; None for a module's or class's own statements."""
        return self.block.qualname if self.block is not None and self.block.kind == "def" else None

    @property
    def is_function(self) -> bool:
        return isinstance(self.tree, ast.FunctionDef | ast.AsyncFunctionDef)

    @property
    def arguments(self) -> ast.arguments | None:
        return self.tree.args if isinstance(self.tree, ast.FunctionDef | ast.AsyncFunctionDef) else None

    @property
    def function_node(self) -> Function:
        assert isinstance(self.tree, ast.FunctionDef | ast.AsyncFunctionDef)
        return self.tree


def take(stack: tuple[str, ...], position: str) -> tuple[str, ...] | None:
    """What is left of the places that a value is in, once one is taken out of the outermost; None: it is not there.

    ``*`` is any position; ``?`` any position of a list, and the whole of a tensor that is indexed; ``!`` the whole of
    what is no tuple.
    """
    if not stack:
        return stack
    if position == "!":
        return None if stack[-1].isdigit() else stack
    if position == "?":
        return stack[:-1] if stack[-1] == "*" else stack
    return stack[:-1] if stack[-1] == position or "*" in (stack[-1], position) else None


class Graph:
    """All nodes by their places, and the edges between them."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.out: list[dict[Edge, None]] = []
        self.into: list[dict[tuple[int, Edge], None]] = []
        self.scopes: dict[Block, Scope] = {}
        self.looked_up: dict[tuple[ast.AST, str, int], tuple[int, int]] = {}
        self.taken: set[tuple[Outline, int, int, str]] = set()
        self._places: dict[tuple[Outline, int, int, str], int] = {}

    def node(
        self, scope: Scope, line: int, column: int, name: str, kind: str, guards: tuple[Guard, ...], tag: str = ""
    ) -> Node:
        """The node of a place; made on first sight. ``tag`` tells nodes without a name apart."""
        key = (scope.outline, line, column, name or "\0" + tag)
        found = self._places.get(key)
        if found is not None:
            return self.nodes[found]
        node = Node(len(self.nodes), scope, line, column, name, kind, guards)
        self.nodes.append(node)
        self.out.append({})
        self.into.append({})
        self._places[key] = node.id
        return node

    def has(self, outline: Outline, line: int, column: int, name: str) -> bool:
        """Whether there is a node for a name at a place."""
        return (outline, line, column, name) in self._places

    def place_of(self, tree: ast.Name | ast.Attribute, scope: Scope, name: str) -> int | None:
        """The node of a name in the code, once its function is read."""
        at, end = (
            (tree.lineno, tree.col_offset) if isinstance(tree, ast.Name) else (tree.end_lineno, tree.end_col_offset)
        )
        line = scope.outline.lines[(at or 1) - 1]
        column = end or 0
        if not line.isascii():
            column = len(line.encode()[:column].decode(errors="replace"))
        if isinstance(tree, ast.Attribute):
            column -= len(name)
        return self._places.get((scope.outline, at or 1, column + 1, name))

    def result_of(self, tree: ast.Call, scope: Scope) -> Node | None:
        """The node of a call's result, once the function that it stands in is read."""
        tag = f"\0call@{tree.end_lineno}:{tree.end_col_offset}"
        found = self._places.get((scope.outline, tree.lineno, tree.col_offset + 1, tag))
        return None if found is None else self.nodes[found]

    def edge(self, start: int, edge: Edge) -> None:
        if start == edge.to and not edge.push and not edge.pop:
            return
        self.out[start][edge] = None
        self.into[edge.to][start, edge] = None

    def connect(self, source: Source, to: int, *, pop: tuple[str, ...] = (), how: str = "") -> None:
        """What a source holds goes to a node, or the part of it at ``pop``."""
        start, push = source
        while pop and push:
            taken = take(push, pop[0])
            if taken is None:
                return  # another position of the tuple
            push, pop = taken, pop[1:]
        self.edge(start, Edge(to, push, pop, how=how))

    def comes_from(self, node: int, starts: frozenset[int], limit: int = 300) -> bool:
        """Whether a node's value comes from one of others, by the edges known so far."""
        seen = {node}
        pending = [node]
        while pending and len(seen) < limit:
            for start, _ in self.into[pending.pop()]:
                if start in starts:
                    return True
                if start not in seen:
                    seen.add(start)
                    pending.append(start)
        return False
