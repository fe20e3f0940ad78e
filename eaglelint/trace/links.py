"""How values get from one function to another: calls, returns, attributes, variables of modules.

Nothing is linked before a trace comes to it: a link may mean looking for a word in all files.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterable

from eaglelint.trace.conditions import Guard, holds_for
from eaglelint.trace.graph import CallSite, Edge, Graph, Node, Scope
from eaglelint.trace.outline import Block, Outline, Unparsable
from eaglelint.trace.project import Class, Def, External, Module, Project, Variable
from eaglelint.trace.types import Place, Types
from eaglelint.trace.walk import read_scope

__all__ = ["Links"]

_MOST_CANDIDATES = 40  # methods of one name, where the receiver's class is not known
_MOST_BELOW = 6  # classes below one whose objects are called
_COMMON = 80  # lines with an attribute's name
_MOST_FUNCTIONS = 600  # functions read for the sake of one name

# Functions and methods whose result says something about a value, and is not made of it.
_TELLS = frozenset(
    re.findall(
        r"\w+",
        """abs all any bool callable dir hasattr hash id isinstance issubclass len print range repr str type debug error
        exception info log warn warning count dim element_size endswith get_device index is_contiguous item nelement
        numel size startswith storage_offset stride data_ptr keys join format""",
    )
)
# Methods that tensors, events and files have: on a receiver of unknown class they say nothing about the class.
_OF_TENSORS = frozenset(
    re.findall(
        r"\w+",
        """abs add all any apply chunk clamp clone close contiguous cpu cuda detach div double dim exp expand flatten
        float flush gather half index_select int item long max mean min mul narrow nonzero norm numel numpy permute read
        record repeat reset reshape round run scatter select shape size sort split squeeze start stop sum synchronize t
        to tolist topk transpose type unbind unflatten unfold unsqueeze view wait where write zero""",
    )
)
_SAME = frozenset(["list", "tuple", "sorted", "set", "frozenset", "reversed", "iter", "copy", "deepcopy", "cast"])


class Links:
    """The graph of one trace, and what it takes to go on from any of its nodes."""

    def __init__(self, project: Project, words: frozenset[str], *, most_calls: int = _MOST_FUNCTIONS) -> None:
        self.project = project
        self.most_calls = most_calls
        self.words = words
        self.graph = Graph()
        self.types = Types(project)
        self.cut: dict[str, None] = {}
        self._scopes: dict[tuple[Outline, Block | None], Scope | None] = {}
        self._linked_attributes: set[int] = set()
        self._linked_variables: set[int] = set()
        self._called: set[Scope] = set()
        self._returned: dict[int, list[Scope]] = {}
        self._attributes: dict[str, list[Node]] = {}
        self._classes: dict[int, tuple[Class, ...]] = {}
        self._fields_of: dict[tuple[Class, str], list[Node]] = {}

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
        for each in self._family(scope):
            for start, _ in each.returns:
                self._returned.setdefault(start, []).append(each)
        return scope

    def _family(self, scope: Scope) -> Iterable[Scope]:
        yield scope
        for inner in scope.inner.values():
            yield from self._family(inner)

    def read_lines(self, found: dict[Outline, list[int]]) -> list[Scope]:
        """Everything that has one of the lines found for a word."""
        scopes: dict[Scope, None] = {}
        for outline, lines in found.items():
            for line in lines:
                scope = self.scope_at(outline, line)
                if scope is not None:
                    scopes[scope] = None
                if len(scopes) > _MOST_FUNCTIONS:
                    return list(scopes)
        return list(scopes)

    def place(self, scope: Scope) -> Place:
        return Place(scope.outline, scope.block, scope.tree)

    # --- what a node leads to ---

    def link_calls(self, node: Node) -> None:
        """Link the calls that a node is handed to; those of constructors say which attribute it becomes."""
        for call in node.calls:
            self.link_call(call)

    def has_more(self, node: Node, *, backward: bool) -> bool:
        """Whether there is something to link beyond the calls that a node is handed to."""
        if backward:
            load = node.attribute == "load" and not node.local
            return node.call is not None or node.parameter or load or node.free or node.imported is not None
        stored = node.attribute == "store" or node.class_field is not None
        outside = not node.scope.is_function and node.kind in ("assignment", "mutation")
        return stored or outside or node.id in self._returned

    def forward(self, node: Node) -> None:
        """Link what the value of a node can go to beyond calls; this looks for words in all files."""
        if node.attribute == "store" or node.class_field is not None:
            self.link_attribute(node)
        for scope in self._returned.get(node.id, ()):
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

    # --- calls ---

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
            self._outside(call, function)

    def _by_name(self, name: str) -> list[Def | Class]:
        """All methods of a name, where there are few: what a receiver of unknown class may mean."""
        if (
            name in _OF_TENSORS
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

    def _outside(self, call: CallSite, function: ast.expr) -> None:
        """A function that is not among the files: its result is made of its arguments, in a way not known."""
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in _TELLS or name.startswith(("is_", "has_")):
            return
        keeps = name in _SAME
        certain = self._is_known_outside(function, self.place(call.scope))
        written = ast.unparse(function) if len(name) < 80 else name
        for where, sources in [*call.arguments, ("self", call.receiver)]:
            for start, push in sources:
                if self._is_module(self.graph.nodes[start]):
                    continue
                whole = ("!",) if where == "self" and sources is call.receiver else ()  # no method of a tuple
                placed, how = push if keeps else (), f"through {written}"
                self.graph.edge(start, Edge(call.result, placed, whole, reset=not keeps, certain=certain, how=how))

    def _is_known_outside(self, function: ast.expr, place: Place) -> bool:
        """Whether it is known what is called, though its code is elsewhere: a built-in, ``torch.cat``, ``x.view``."""
        if isinstance(function, ast.Attribute) and (function.attr in _OF_TENSORS or function.attr.endswith("_")):
            return True
        if isinstance(function, ast.Attribute) and self.types.made_outside(function, place):
            return True
        if isinstance(function, ast.Name) and hasattr(builtins, function.id):
            return True
        return isinstance(function, ast.Lambda) or self.types.is_outside(function, place)

    def _is_module(self, node: Node) -> bool:
        """Whether a name stands for a module or something imported from outside: ``torch`` in ``torch.cat``."""
        if not node.free or node.attribute:
            return False
        return isinstance(self.types.meaning(ast.Name(node.name), self.place(node.scope)), Module | External)

    def link_callers(self, scope: Scope) -> None:
        """Find the calls of a function and link them."""
        if scope in self._called or scope.block is None or not scope.is_function:
            return
        self._called.add(scope)
        if scope.outer is not None:  # a function inside a function
            name = scope.block.name
            for call in [c for s in self._family(scope.outer) for c in s.calls]:
                if isinstance(call.node.func, ast.Name) and call.node.func.id == name:
                    self.link_call(call)
            return
        for each in sorted(self._called_as(scope)):
            if self._too_many(each):
                self.cut[f"{each}(…) is called in more than {self.most_calls} places; not followed to them all"] = None
                continue
            for reader in self.read_lines(self.project.lines_with(each, _call_of(each))):
                for call in [c for s in self._family(reader) for c in s.calls]:
                    if _called_name(call.node) == each:
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
            made = re.compile(rf"(\w+)\s*(?::[^=\n]+)?=\s*(?:[\w.]+\.)?{re.escape(each.name)}\(")
            for outline, lines in self.project.lines_with(each.name, made.pattern).items():
                for line in lines:
                    names.update(made.findall(outline.lines[line - 1]))
        return names

    # --- attributes ---

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
            if self.project.is_on_more_lines(4 * _MOST_FUNCTIONS, name, pattern):
                self.cut[f".{name} stands on more than {4 * _MOST_FUNCTIONS} lines; not followed"] = None
                return []
            scopes = self.read_lines(self.project.lines_with(name, pattern))
            nodes = [n for scope in scopes for s in self._family(scope) for n in s.attributes.get(name, ())]
            keys = [n for scope in scopes for s in self._family(scope) for n in s.keys.get(name, ())]
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
                for call in [c for s in self._family(scope) for c in s.calls]:
                    if name in call.keywords and _called_name(call.node) == each.name:
                        self.link_call(call)
                        node = self.graph.nodes[call.keywords[name]]
                        if node.class_field is not None:
                            nodes.append(node)
        return nodes

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
            for each in self._family(scope):
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


def _is_tensor(argument: ast.arg) -> bool:
    """Whether a parameter is declared as a tensor, so that no tuple is handed to it."""
    if argument.annotation is None:
        return False
    written = re.sub(r"Optional|torch\.|None|[\s\[\]|'\"]", "", ast.unparse(argument.annotation))
    return written == "Tensor"


def _call_of(name: str) -> str:
    return rf"(?<!def )(?<!\w){re.escape(name)}\s*\("


def _called_name(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _receiver_name(node: Node) -> str:
    owner = node.owner if node.owner is not None else node.container
    if isinstance(owner, ast.Attribute):
        return owner.attr
    return owner.id if isinstance(owner, ast.Name) else ""
