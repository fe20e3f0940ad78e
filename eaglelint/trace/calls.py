"""How values go into the functions that are called, and come back."""

from __future__ import annotations

import ast
import re

from eaglelint.source.outline import Outline
from eaglelint.trace.filling import Filling
from eaglelint.trace.graph import CallSite, Edge, Scope
from eaglelint.trace.makers import instance_names, loaded_attributes
from eaglelint.trace.outside import OF_TENSORS
from eaglelint.trace.project import Class, Def, Project
from eaglelint.trace.reading import MOST_FUNCTIONS

__all__ = ["Calls", "called_name"]

_MOST_CANDIDATES = 40  # methods of one name, where the receiver's class is not known
_MOST_BELOW = 6  # classes below one whose objects are called


class Calls(Filling):
    """Links calls with what they call, and functions with their calls."""

    def __init__(self, project: Project, words: frozenset[str], *, most_calls: int = MOST_FUNCTIONS) -> None:
        super().__init__(project, words)
        self.most_calls = most_calls
        self._called: set[Scope] = set()
        self._called_nearby: set[Scope] = set()
        self._loaded: dict[Outline, set[str]] | None = None

    def link_call(self, call: CallSite) -> None:
        """Connect a call's arguments with the parameters of what it calls, and the results with the call's."""
        if call.linked:
            return
        call.linked = True
        function = call.node.func
        place = self.place(call.scope)
        callees = [c for c in self.types.callees(function, place) if self.project.includes(c.outline)]
        certain = True
        if not callees and call.changes_receiver:
            return
        if not callees and isinstance(function, ast.Attribute) and not self.types.is_outside(function, place):
            callees = self._by_name(function.attr)
            certain = False
        for callee in callees:
            if isinstance(callee, Class):
                self._construct(call, callee)
            else:
                self._enter(call, callee, certain=certain)
        if not callees:
            self.link_outside(call, function)

    def _by_name(self, name: str) -> list[Def | Class]:
        """All methods of a name, where there are few: what a receiver of unknown class may mean."""
        if (
            name in OF_TENSORS
            or name.startswith("__")
            or name.endswith("_")
            or hasattr(list, name)
            or hasattr(dict, name)
            or hasattr(str, name)
        ):
            return []
        if self.project.defined_in(name) > _MOST_CANDIDATES:
            self.cut[f".{name}(…) is a method of more than {_MOST_CANDIDATES} classes; not followed"] = None
            return []
        return [method for _, method in self.project.classes_with(name)]

    def _enter(self, call: CallSite, callee: Def, *, certain: bool) -> None:
        scope = self.read(callee.outline, callee.block)
        if scope is None or scope.block is not callee.block:
            return
        arguments = scope.arguments
        if arguments is None:
            return
        positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        decorators = {ast.unparse(item) for item in scope.function_node.decorator_list}
        bound = callee.block.owner is not None and "staticmethod" not in decorators
        if bound and isinstance(call.node.func, ast.Attribute) and self._is_class(call.node.func.value, call.scope):
            bound = "classmethod" in decorators
        if bound and positional:
            receiver = positional.pop(0)
            for start, push in call.receiver:
                self.graph.edge(start, Edge(scope.parameters[receiver], push, enter=call, certain=certain))
        others = {argument.arg for argument in (*arguments.args, *arguments.kwonlyargs)}
        tensors = {argument.arg for argument in (*arguments.args, *arguments.kwonlyargs) if _is_tensor(argument)}
        for where, sources in call.arguments:
            parameter, position = None, ""
            if isinstance(where, int):
                if where < len(positional):
                    parameter = positional[where]
                elif arguments.vararg is not None:
                    parameter, position = arguments.vararg.arg, "*"
            elif where in others:
                parameter = where
            elif where not in ("*", "**") and arguments.kwarg is not None:
                parameter, position = arguments.kwarg.arg, f"k:{where}"
            if parameter is not None:
                whole = ("!",) if parameter in tensors else ()
                for start, push in sources:
                    placed = (*push, position) if position else push
                    edge = Edge(scope.parameters[parameter], placed, whole, enter=call, certain=certain)
                    self.graph.edge(start, edge)
                    if not placed and not whole:
                        self.link_filled(call, scope, parameter, start, certain=certain)
            elif where in ("*", "**"):
                self._spread(call, sources, [*positional, *others], scope, str(where), certain=certain)
        for start, push in scope.returns:
            self.graph.edge(start, Edge(call.result, push, leave=call, certain=certain))

    def _spread(
        self,
        call: CallSite,
        sources: list[tuple[int, tuple[str, ...]]],
        names: list[str],
        scope: Scope,
        how: str,
        *,
        certain: bool,
    ) -> None:
        for start, push in sources:
            for number, name in enumerate(dict.fromkeys(names)):
                position = f"k:{name}" if how == "**" else "*"
                taken = push[:-1] if push and (push[-1] == position or push[-1] == "*") else None
                if push and taken is None:
                    continue
                pop = () if push else (position,)
                edge = Edge(scope.parameters[name], taken or (), pop, enter=call, certain=certain and number == 0)
                if push or how == "**":
                    self.graph.edge(start, edge)

    def _is_class(self, node: ast.expr, scope: Scope) -> bool:
        return isinstance(self.types.meaning(node, self.place(scope)), Class)

    def _construct(self, call: CallSite, cls: Class) -> None:
        init = self.project.method(cls, "__init__")
        if init is not None and self.project.includes(init.outline):
            self._enter(call, init, certain=True)
            return
        fields = self._fields(cls)
        for where, sources in call.arguments:
            name = fields[where] if isinstance(where, int) and where < len(fields) else where
            if not isinstance(name, str) or name in ("*", "**"):
                continue
            keyword = call.keywords.get(name)
            if keyword is not None:
                node = self.graph.nodes[keyword]
                node.class_field, node.attribute = cls, "store"
                continue
            owner = next((c for c in self.project.mro(cls) if name in self._own_fields(c)), None)
            scope = self.read(owner.outline, owner.block) if owner is not None else None
            for field in scope.definitions.get(name, ()) if scope is not None else ():
                for start, push in sources:
                    self.graph.edge(start, Edge(field, push, enter=call))

    def _fields(self, cls: Class) -> list[str]:
        names: dict[str, None] = {}
        for owner in reversed(self.project.mro(cls)):
            names.update(dict.fromkeys(self._own_fields(owner)))
        return list(names)

    def _own_fields(self, cls: Class) -> list[str]:
        return [
            statement.target.id
            for statement in cls.node.body
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        ]

    def link_callers(self, scope: Scope) -> None:
        """Find the calls of a function and link them."""
        if scope in self._called or scope.block is None or not scope.is_function:
            return
        self._called.add(scope)
        if scope.outer is not None:  # a function inside a function
            name = scope.block.name
            for call in [c for s in self.family(scope.outer) for c in s.calls]:
                if isinstance(call.node.func, ast.Name) and call.node.func.id == name:
                    self.link_call(call)
            return
        self.link_callers_nearby(scope)
        for each in sorted(self._called_as(scope)):
            if self._too_many(each):
                self.cut[f"{each}(…) is called in more than {self.most_calls} places; not followed to them all"] = None
                continue
            self._link_calls_on(self.project.lines_with(each, _call_of(each)), each)
        owner = scope.block.owner if scope.block.name == "forward" else None
        everywhere = self.most_calls == MOST_FUNCTIONS
        if owner is not None and everywhere and not self._instances(Class(scope.outline, owner)):
            self._link_loaded(scope)

    def link_callers_nearby(self, scope: Scope) -> None:
        """Link the calls of a function or method in its own file, for which no other has to be looked through."""
        if scope in self._called_nearby or scope.outer is not None or scope.block is None or not scope.is_function:
            return
        self._called_nearby.add(scope)
        name = scope.block.name
        if name in ("__call__", "forward", "__init__"):  # called by the names of objects and classes
            return
        called = re.compile(_call_of(name))
        lines = [number for number, line in enumerate(scope.outline.lines, 1) if name in line and called.search(line)]
        self._link_calls_on({scope.outline: lines}, name)

    def _link_calls_on(self, lines: dict[Outline, list[int]], name: str) -> None:
        for reader in self.read_lines(lines):
            for call in [c for s in self.family(reader) for c in s.calls]:
                if called_name(call.node) == name:
                    self.link_call(call)

    def is_called_often(self, scope: Scope, most: int) -> bool:
        """Whether there are more lines than that on which a function may be called, by the names that calls have."""
        if scope.outer is not None or scope.block is None:
            return False
        if self.project.is_on_more_lines(most, scope.block.name, _call_of(scope.block.name)):
            return True
        return any(self.project.is_on_more_lines(most, each, _call_of(each)) for each in self._called_as(scope))

    def _called_as(self, scope: Scope) -> set[str]:
        """The names that calls of a function have: its own, or those of its class and of what holds an instance."""
        assert scope.block is not None
        name, owner = scope.block.name, scope.block.owner
        if name == "__init__" and owner is not None:
            cls = Class(scope.outline, owner)
            return {cls.name, *(below.name for below in self.project.subclasses(cls)), "__init__"}
        if name in ("__call__", "forward") and owner is not None:
            instances = self._instances(Class(scope.outline, owner))
            return instances if self._too_many(name) else {*instances, name}
        return {name}

    def _too_many(self, name: str) -> bool:
        return self.project.is_on_more_lines(self.most_calls, name, _call_of(name))

    def _instances(self, cls: Class) -> set[str]:
        """The names that instances of a class or of one below it are kept under, as far as constructors show."""
        names: set[str] = set()
        below = self.project.subclasses(cls)
        if len(below) > _MOST_BELOW:
            self.cut[
                f"{cls.name} has more than {_MOST_BELOW} classes below it; calls of their objects not followed"
            ] = None
            below = ()
        for each in (cls, *below):
            names |= instance_names(self.project, each)
        return names

    def _link_loaded(self, scope: Scope) -> None:
        """A module that no code makes by its class's name: it may be what a loader gave, and is called as that."""
        if self._loaded is None:
            self._loaded = loaded_attributes(self.project)
        assert scope.block is not None
        for outline, names in self._loaded.items():
            for name in sorted(names):
                called = re.compile(rf"(?<!\w)self\.{re.escape(name)}\s*\(")
                lines = [number for number, line in enumerate(outline.lines, 1) if called.search(line)]
                for reader in self.read_lines({outline: lines}):
                    for call in [c for s in self.family(reader) for c in s.calls]:
                        place = self.place(call.scope)
                        known = called_name(call.node) != name or self.types.callees(call.node.func, place)
                        if not known and _fits(call.node, scope):
                            self._enter(call, Def(scope.outline, scope.block), certain=False)


def _fits(call: ast.Call, scope: Scope) -> bool:
    """Whether a method takes as many arguments as a call hands over, and under these names."""
    taken = scope.function_node.args
    names = [argument.arg for argument in (*taken.posonlyargs, *taken.args)][1:]
    keywords = {keyword.arg for keyword in call.keywords}
    if None in keywords or any(isinstance(argument, ast.Starred) for argument in call.args):
        return True
    others = {argument.arg for argument in taken.kwonlyargs}
    if taken.kwarg is None and not keywords <= {*names, *others}:
        return False
    if taken.vararg is None and len(call.args) > len(names):
        return False
    needed = names[: len(names) - len(taken.defaults)]
    return all(name in keywords for name in needed[len(call.args) :])


def _is_tensor(argument: ast.arg) -> bool:
    """Whether a parameter is declared as a tensor, so that no tuple is handed to it."""
    if argument.annotation is None:
        return False
    written = re.sub(r"Optional|torch\.|None|[\s\[\]|'\"]", "", ast.unparse(argument.annotation))
    return written == "Tensor"


def _call_of(name: str) -> str:
    return rf"(?<!def )(?<!\w){re.escape(name)}\s*\("


def called_name(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
