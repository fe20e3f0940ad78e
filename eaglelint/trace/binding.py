"""What a statement binds: names, attributes, parts of tuples, elements of what is gone through, changes in place."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from eaglelint.trace.conditions import Guard
from eaglelint.trace.expressions import evaluate
from eaglelint.trace.graph import Node, Source
from eaglelint.trace.places import Places
from eaglelint.trace.sources import dotted_path, unwrap, wrap

__all__ = ["Binding"]


class Binding(Places):
    """Assigning what is held to a target."""

    def bind_name(self, tree: ast.Name, sources: Sequence[Source], value: ast.expr | None) -> Node:
        node = self.at(tree, tree.id, "assignment")
        node.kind = "assignment"
        node.expression = value
        for source in sources:
            self.graph.connect(source, node.id)
        self.define(tree.id, node)
        return node

    def bind(self, target: ast.expr, sources: list[Source], value: ast.expr | None = None) -> None:
        """Assign what is held to a target."""
        match target:
            case ast.Name():
                self.bind_name(target, sources, value)
            case ast.Attribute():
                evaluate(self, target.value)
                node = self.attribute(target, "assignment", store=True)
                node.kind = "assignment"
                node.expression = value
                for source in sources:
                    self.graph.connect(source, node.id)
                path = dotted_path(target)
                if path is not None:
                    self.define(path, node)
            case ast.Tuple() | ast.List():
                starred = any(isinstance(element, ast.Starred) for element in target.elts)
                for position, element in enumerate(target.elts):
                    if isinstance(element, ast.Starred):
                        self.bind(element.value, sources)
                    else:
                        self.bind(element, unwrap(self, sources, "*" if starred else str(position), target))
            case ast.Subscript():
                index = target.slice
                part_of = "*"
                key: Node | None = None
                if isinstance(index, ast.Constant) and isinstance(index.value, str):
                    part_of = f"k:{index.value}"
                    key = self.key(index, "config-key", container=target.value)
                    if key is not None:
                        key.attribute = "store"
                else:
                    evaluate(self, index)
                if isinstance(index, ast.Slice | ast.Tuple):
                    wrapped = sources
                elif key is not None:
                    for source in sources:
                        self.graph.connect(source, key.id)
                    wrapped = [(key.id, (part_of,))]
                else:
                    wrapped = wrap(sources, part_of)
                if dotted_path(target.value) is not None:
                    node = self.mutate(target.value)
                    node.expression = value
                    for source in wrapped:
                        self.graph.connect(source, node.id)
                    for guard in self.guards:
                        for decider in guard.deciders:
                            self.chooses(decider, node.id)
                else:
                    evaluate(self, target.value)
            case ast.Starred():
                self.bind(target.value, sources, value)
            case _:
                evaluate(self, target)

    def mutate(self, tree: ast.expr) -> Node:
        """The receiver of a change: it holds from here on what it held, and what is added."""
        if isinstance(tree, ast.Attribute):
            evaluate(self, tree.value)
            node = self.attribute(tree, "mutation")
            node.attribute = "store"
            path = dotted_path(tree) or ""
        else:
            assert isinstance(tree, ast.Name)
            node = self.load(tree, "mutation")
            path = tree.id
        node.kind = "mutation"
        self.define(path, node)
        return node

    def bind_elements(self, target: ast.expr, iterated: ast.expr) -> None:
        """A loop's target is bound to the elements of what it goes through."""
        if (
            isinstance(iterated, ast.Call)
            and isinstance(iterated.func, ast.Name)
            and isinstance(target, ast.Tuple)
            and iterated.func.id in ("enumerate", "zip")
            and not any(isinstance(element, ast.Starred) for element in (*target.elts, *iterated.args))
        ):
            evaluate(self, iterated.func)
            held = [evaluate(self, argument, "passed") for argument in iterated.args]
            for keyword in iterated.keywords:
                evaluate(self, keyword.value)
            if iterated.func.id == "enumerate":
                held = [[], held[0] if held else []]
                arguments = [iterated, *iterated.args[:1]]
            else:
                arguments = list(iterated.args)
            for position, element in enumerate(target.elts):
                sources = held[position] if position < len(held) else []
                at = arguments[position] if position < len(arguments) else iterated
                self.bind(element, unwrap(self, sources, "*", at), None)
            return
        self.bind(target, unwrap(self, evaluate(self, iterated), "*", iterated))

    @contextmanager
    def under(self, guard: Guard) -> Iterator[None]:
        self.guards.append(guard)
        yield
        self.guards.pop()
