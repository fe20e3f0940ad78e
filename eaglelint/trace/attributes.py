"""How values go over attributes: what sets one and what reads it, on receivers that can be the same object."""

from __future__ import annotations

import ast
import re

from eaglelint.trace.calls import Calls, called_name
from eaglelint.trace.graph import Edge, Node
from eaglelint.trace.project import Class, Project
from eaglelint.trace.reading import MOST_FUNCTIONS

__all__ = ["Attributes"]

_COMMON = 80  # lines with an attribute's name


class Attributes(Calls):
    """Links attributes by their names and the classes of their receivers."""

    def __init__(self, project: Project, words: frozenset[str], *, most_calls: int = MOST_FUNCTIONS) -> None:
        super().__init__(project, words, most_calls=most_calls)
        self._linked_attributes: set[int] = set()
        self._attributes: dict[str, list[Node]] = {}
        self._classes: dict[int, tuple[Class, ...]] = {}
        self._fields_of: dict[tuple[Class, str], list[Node]] = {}

    def link_attribute(self, node: Node) -> None:
        """Connect what sets an attribute with what reads it, on receivers that can be the same object."""
        if node.id in self._linked_attributes:
            return
        self._linked_attributes.add(node.id)
        mine = self.classes(node)
        fields = [field for cls in mine[:4] for field in self._field_nodes(cls, node.name)]
        for other in dict.fromkeys([*self.attribute_nodes(node.name), *fields]):
            if other is node:
                continue
            stores = node.attribute == "store" or node.class_field is not None
            if stores and other.attribute == "load" and not other.local:
                start, end = node, other
            elif not stores and (other.attribute == "store" or other.class_field is not None):
                start, end = other, node
            else:
                continue
            match = self._same_receiver(node, mine, other, self.classes(other))
            if match is not None:
                self.graph.edge(start.id, Edge(end.id, certain=match, how="attribute"))

    def classes(self, node: Node) -> tuple[Class, ...]:
        """The classes that the receiver of an attribute may be of; empty where that is not known."""
        if node.class_field is not None:
            return (node.class_field,)
        if node.id not in self._classes:
            owner = node.owner if node.owner is not None else node.container
            self._classes[node.id] = self.types.of(owner, self.place(node.scope)) if owner is not None else ()
        return self._classes[node.id]

    def _same_receiver(
        self, left: Node, mine: tuple[Class, ...], right: Node, theirs: tuple[Class, ...]
    ) -> bool | None:
        """True: they can be the same object; False: perhaps; None: they cannot, or nothing speaks for it."""
        if mine and theirs:
            return True if any(self.project.related(a, b) for a in mine for b in theirs) else None
        if not mine and not theirs:
            return False if _receiver_name(left) == _receiver_name(right) else None
        known = mine or theirs
        unknown = right if mine else left
        receiver = _receiver_name(unknown)
        if receiver in ("self", "cls"):
            return None
        named = receiver.replace("_", "").lower()
        if any(named and (named in cls.name.lower() or cls.name.lower() in named) for cls in known):
            return False
        owners = {cls for node in self.attribute_nodes(left.name) for cls in self.classes(node)}
        return False if len(owners) <= 3 else None

    def is_common(self, name: str) -> bool:
        """Whether an attribute's name is on so many lines that its objects are hardly one thing."""
        common = self.project.is_on_more_lines(_COMMON, name, rf"\.\s*{re.escape(name)}(?!\w)")
        if common:
            self.cut[f"It goes on as .{name}, which is on more than {_COMMON} lines: give --to, or trace {name}"] = None
        return common

    def attribute_nodes(self, name: str) -> list[Node]:
        """All places where an attribute of that name is read or set, constructors' keywords included."""
        if name not in self._attributes:
            self._attributes[name] = []
            escaped = re.escape(name)
            pattern = rf"""\.\s*{escaped}(?!\w)|["']{escaped}["']"""
            if self.project.is_on_more_lines(4 * MOST_FUNCTIONS, name, pattern):
                self.cut[f".{name} stands on more than {4 * MOST_FUNCTIONS} lines; not followed"] = None
                return []
            scopes = self.read_lines(self.project.lines_with(name, pattern))
            nodes = [n for scope in scopes for s in self.family(scope) for n in s.attributes.get(name, ())]
            keys = [n for scope in scopes for s in self.family(scope) for n in s.keys.get(name, ())]
            nodes += [number for number in keys if self.graph.nodes[number].names_attribute]
            listed = [self.graph.nodes[number] for number in dict.fromkeys(nodes)]
            for node in listed:
                if node.key and not node.attribute:
                    node.attribute = "load"
            self._attributes[name] = list(dict.fromkeys(listed))
        return self._attributes[name]

    def _field_nodes(self, cls: Class, name: str) -> list[Node]:
        """Where a class, its bases and those below it declare a field, and the keywords that set it in constructors."""
        if (cls, name) in self._fields_of:
            return self._fields_of[cls, name]
        nodes: list[Node] = []
        self._fields_of[cls, name] = nodes
        declares = False
        for each in dict.fromkeys((*self.project.mro(cls), *self.project.subclasses(cls))):
            if not re.search(rf"(?m)^[ \t]+{re.escape(name)}[ \t]*[:=]", each.outline.text(each.block)):
                continue
            scope = self.read(each.outline, each.block)
            for number in scope.definitions.get(name, ()) if scope is not None and scope.tree is each.node else ():
                nodes.append(self.graph.nodes[number])
                declares = True
        if declares:
            nodes += self._constructed(cls, name)
        return nodes

    def _constructed(self, cls: Class, name: str) -> list[Node]:
        """The keywords of that name in calls of a class's constructor."""
        nodes: list[Node] = []
        for each in (cls, *self.project.subclasses(cls)):
            found = self.project.lines_with(each.name, rf"(?<!\w){re.escape(each.name)}\(")
            for scope in self.read_lines(found):
                for call in [c for s in self.family(scope) for c in s.calls]:
                    if name in call.keywords and called_name(call.node) == each.name:
                        self.link_call(call)
                        node = self.graph.nodes[call.keywords[name]]
                        if node.class_field is not None:
                            nodes.append(node)
        return nodes


def _receiver_name(node: Node) -> str:
    owner = node.owner if node.owner is not None else node.container
    if isinstance(owner, ast.Attribute):
        return owner.attr
    return owner.id if isinstance(owner, ast.Name) else ""
