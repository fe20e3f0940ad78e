"""Which class an expression's value is of, as far as annotations, constructors and the class hierarchy say."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from eaglelint.source.nodes import all_nodes
from eaglelint.source.outline import Block, Outline, Unparsable
from eaglelint.trace.conditions import Members
from eaglelint.trace.project import Class, Def, External, Meaning, Module, Project, imports_of

__all__ = ["Place", "Types"]

_ENUMS = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"})
_TRANSPARENT = frozenset({"Optional", "Union", "Annotated", "Final", "ClassVar"})
_DEEPEST = 6
_SET = re.compile(r"\bself\.(\w+)\s*(?::[^=\n]+)?=(?!=)")
_TELLING = (ast.Assign, ast.AnnAssign, ast.withitem, ast.Call, ast.Return, ast.FunctionDef, ast.AsyncFunctionDef)


class Place:
    """Where an expression stands: the file, the function around it and that function's class."""

    __slots__ = ("block", "outline", "tree")

    def __init__(self, outline: Outline, block: Block | None, tree: ast.AST | None) -> None:
        self.outline = outline
        self.block = block
        self.tree = tree

    @property
    def cls(self) -> Class | None:
        block = self.block
        while block is not None and block.kind == "def":
            if block.owner is not None:
                return Class(self.outline, block.owner)
            block = block.parent
        return None


class Types:
    """Answers are remembered. An empty answer means that the class is not known."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._attributes: dict[tuple[Class, str], tuple[Class, ...]] = {}
        self._variables: dict[tuple[Outline, Block, str], tuple[Class, ...]] = {}
        self._outside: set[tuple[Class, str]] = set()
        self._set: dict[Block, frozenset[str]] = {}
        self._told: dict[ast.AST, list[ast.AST]] = {}
        self._enums: dict[Class, Members | None] = {}

    def of(self, node: ast.expr | None, place: Place, depth: int = 0) -> tuple[Class, ...]:
        """The classes that the value of an expression may be of."""
        if depth > _DEEPEST or node is None:
            return ()
        try:
            return self._of(node, place, depth)
        except Unparsable as error:
            self.project.skip(place.outline.display, error)
            return ()

    def _of(self, node: ast.expr, place: Place, depth: int) -> tuple[Class, ...]:
        match node:
            case ast.Name():
                return self._variable(node.id, place, depth)
            case ast.Attribute():
                owners = self.of(node.value, place, depth + 1)
                found: dict[Class, None] = {}
                for owner in owners[:4]:
                    found.update(dict.fromkeys(self.attribute(owner, node.attr, depth + 1)))
                return tuple(found)
            case ast.Call():
                meanings = self.callees(node.func, place, depth + 1)
                found = {}
                for meaning in meanings[:4]:
                    if isinstance(meaning, Class):
                        found[meaning] = None
                    elif isinstance(meaning, Def):
                        found.update(dict.fromkeys(self._returned(meaning, depth + 1)))
                return tuple(found)
            case ast.Await():
                return self.of(node.value, place, depth + 1)
            case ast.IfExp():
                return tuple(
                    dict.fromkeys((*self.of(node.body, place, depth + 1), *self.of(node.orelse, place, depth + 1)))
                )
            case ast.BoolOp():
                return tuple(dict.fromkeys(c for value in node.values for c in self.of(value, place, depth + 1)))
            case ast.NamedExpr():
                return self.of(node.value, place, depth + 1)
        return ()

    def _returned(self, function: Def, depth: int) -> tuple[Class, ...]:
        """The classes that a function says that it returns; where it says nothing, those that it makes there."""
        tree = function.node
        if tree.returns is not None:
            return self.annotation(tree.returns, function.outline)
        place = Place(function.outline, function.block, tree)
        nodes = self._nodes(tree)
        inner = [
            node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node is not tree
        ]
        others = {each for nested in inner for each in self._nodes(nested)}
        made = [node.value for node in nodes if isinstance(node, ast.Return) and node not in others]
        return tuple(found for each in made if isinstance(each, ast.Call) for found in self.of(each, place, depth))

    def callees(self, function: ast.expr, place: Place, depth: int = 0) -> list[Def | Class]:
        """What a call calls, where its receiver's class or its name is known."""
        if isinstance(function, ast.Name):
            meaning = self.meaning(function, place)
            if isinstance(meaning, Def | Class):
                return [meaning]
            instances = self._variable(function.id, place, depth) if depth <= _DEEPEST else ()
            return [found for cls in instances[:4] for found in self._called(cls)]
        if not isinstance(function, ast.Attribute):
            return []
        meaning = self.meaning(function, place)
        if isinstance(meaning, Def | Class):
            return [meaning]
        if _is_super(function.value) and place.cls is not None:
            bases = self.project.mro(place.cls)[1:]
            inherited = next((f for base in bases if (f := self.project.method(base, function.attr)) is not None), None)
            return [inherited] if inherited is not None else []
        owner = self.meaning(function.value, place)
        classes = (owner,) if isinstance(owner, Class) else self.of(function.value, place, depth + 1)
        answers: dict[Def | Class, None] = {}
        for cls in classes[:4]:
            found = self.project.method(cls, function.attr)
            if found is not None:
                answers[found] = None
            for below in self.project.subclasses(cls)[:40]:
                for block in below.block.children:
                    if block.kind == "def" and block.name == function.attr:
                        answers[Def(below.outline, block)] = None
            if found is None:
                for instance in self.attribute(cls, function.attr, depth + 1)[:4]:
                    answers.update(dict.fromkeys(self._called(instance)))
        return list(answers)

    def _called(self, cls: Class) -> Iterator[Def]:
        """What calling an instance runs: ``__call__``, or a torch module's ``forward``."""
        for name in ("__call__", "forward"):
            found = self.project.method(cls, name)
            if found is not None:
                yield found
                return

    def meaning(self, node: ast.expr, place: Place) -> Meaning | None:
        """What a name or ``module.name`` means where it stands; None for a function's own variables."""
        if isinstance(node, ast.Name):
            block = place.block
            while block is not None and block.kind == "def":
                for inner in block.children:
                    if inner.name == node.id:
                        return Def(place.outline, inner) if inner.kind == "def" else Class(place.outline, inner)
                bound = self._import_inside(place.outline, block, node.id)
                if bound is not None:
                    return bound
                block = block.parent
            return self.project.meaning(place.outline, node.id)
        if isinstance(node, ast.Attribute):
            owner = self.meaning(node.value, place)
            if isinstance(owner, Module):
                return self.project.meaning(owner.outline, node.attr)
            if isinstance(owner, Class):
                return self.project.method(owner, node.attr)
        return None

    def _import_inside(self, outline: Outline, block: Block, name: str) -> Meaning | None:
        text = outline.text(block)
        if "import" not in text:
            return None
        for node in outline.imports_inside(block):
            for bound, found in imports_of(node):
                if bound == name:
                    return self.project.imported(outline, *found)
        return None

    # --- variables and attributes ---

    def _variable(self, name: str, place: Place, depth: int) -> tuple[Class, ...]:
        block = place.block
        if block is None or block.kind != "def":
            return ()
        key = (place.outline, block, name)
        if key not in self._variables:
            self._variables[key] = ()
            self._variables[key] = tuple(dict.fromkeys(self._find_variable(name, place, block, depth)))
        found = self._variables[key]
        if not found and block.parent is not None and block.parent.kind == "def":
            return self._variable(name, Place(place.outline, block.parent, None), depth)
        return found

    def _find_variable(self, name: str, place: Place, block: Block, depth: int) -> Iterator[Class]:
        tree = (
            place.outline.function(block.outermost) if block.outermost is block else self._inner(place.outline, block)
        )
        if tree is None:
            return
        arguments = tree.args
        positional = [*arguments.posonlyargs, *arguments.args]
        if positional and positional[0].arg == name and place.cls is not None and block.owner is not None:
            yield place.cls
            return
        for argument in (*positional, *arguments.kwonlyargs):
            if argument.arg == name:
                yield from self.annotation(argument.annotation, place.outline)
        for node in self._nodes(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                    yield from self.of(value, place, depth + 1)
                case ast.AnnAssign(target=ast.Name(id=target), annotation=annotation) if target == name:
                    yield from self.annotation(annotation, place.outline)
                case ast.withitem(context_expr=value, optional_vars=ast.Name(id=target)) if target == name:
                    yield from self.of(value, place, depth + 1)
                case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=target), kind]) if target == name:
                    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
                    for each in kinds:
                        meaning = self.meaning(each, place)
                        if isinstance(meaning, Class):
                            yield meaning

    def _inner(self, outline: Outline, block: Block) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        for node in self._nodes(outline.function(block.outermost)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno == block.line:
                return node
        return None

    def _nodes(self, tree: ast.AST) -> list[ast.AST]:
        """What may say of which class something is: assignments, ``with``, ``isinstance``; and functions inside."""
        if tree not in self._told:
            self._told[tree] = [node for node in all_nodes(tree) if isinstance(node, _TELLING)]
        return self._told[tree]

    def attribute(self, cls: Class, name: str, depth: int = 0) -> tuple[Class, ...]:
        """The classes that an attribute of a class's instances may be of."""
        key = (cls, name)
        if key not in self._attributes:
            self._attributes[key] = ()
            try:
                self._attributes[key] = tuple(dict.fromkeys(self._find_attribute(cls, name, depth)))
            except Unparsable as error:
                self.project.skip(cls.outline.display, error)
        return self._attributes[key]

    def _find_attribute(self, cls: Class, name: str, depth: int) -> Iterator[Class]:
        if depth > _DEEPEST:
            return
        for owner in self.project.mro(cls):
            found = False
            for statement in owner.node.body:
                if isinstance(statement, ast.AnnAssign) and _is_name(statement.target, name):
                    found = True
                    yield from self.annotation(statement.annotation, owner.outline)
            for block in owner.block.children:
                if block.kind != "def":
                    continue
                if block.name == name:
                    found = True
                    node = owner.outline.function(block)
                    if any(isinstance(d, ast.Name) and "property" in d.id for d in node.decorator_list):
                        yield from self.annotation(node.returns, owner.outline)
                elif name in self._set_in(owner.outline, block):
                    found = True
                    yield from self._assigned(owner, block, name, depth)
            if found:
                return

    def _set_in(self, outline: Outline, block: Block) -> frozenset[str]:
        """The attributes of ``self`` that a method sets."""
        if block not in self._set:
            self._set[block] = frozenset(_SET.findall(outline.text(block)))
        return self._set[block]

    def _assigned(self, owner: Class, block: Block, name: str, depth: int) -> Iterator[Class]:
        tree = owner.outline.function(block)
        place = Place(owner.outline, block, tree)
        for node in self._nodes(tree):
            match node:
                case ast.Assign(targets=targets, value=value):
                    if any(isinstance(t, ast.Attribute) and t.attr == name and _is_self(t.value) for t in targets):
                        if isinstance(value, ast.Call) and self.is_outside(value.func, place):
                            self._outside.add((owner, name))
                        yield from self.of(value, place, depth + 1)
                case ast.AnnAssign(target=ast.Attribute(value=receiver, attr=attr), annotation=annotation) if (
                    attr == name and _is_self(receiver)
                ):
                    yield from self.annotation(annotation, owner.outline)

    def is_outside(self, function: ast.expr, place: Place) -> bool:
        """Whether a name, with attributes or without, is one of a package that is not among the files."""
        while isinstance(function, ast.Attribute):
            function = function.value
        return isinstance(function, ast.Name) and isinstance(self.meaning(function, place), External)

    def made_outside(self, node: ast.Attribute, place: Place) -> bool:
        """Whether an attribute is an object of such a package: ``self.fc = nn.Linear(...)``."""
        for cls in self.of(node.value, place)[:4]:
            self.attribute(cls, node.attr)
            if any((owner, node.attr) in self._outside for owner in self.project.mro(cls)):
                return True
        return False

    def annotation(self, node: ast.expr | None, outline: Outline) -> tuple[Class, ...]:
        """The classes that an annotation names: ``Optional["X"]`` is X."""
        match node:
            case ast.Constant(value=str() as text):
                try:
                    return self.annotation(ast.parse(text, mode="eval").body, outline)
                except (SyntaxError, ValueError):
                    return ()
            case ast.Name() | ast.Attribute():
                meaning = self.project.dotted(outline, node)
                return (meaning,) if isinstance(meaning, Class) else ()
            case ast.BinOp(op=ast.BitOr()):
                return (*self.annotation(node.left, outline), *self.annotation(node.right, outline))
            case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _TRANSPARENT:
                parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                return tuple(found for part in parts for found in self.annotation(part, outline))
        return ()

    # --- enums ---

    def enum(self, cls: Class) -> Members | None:
        """The members of a class that is an enum; None for every other."""
        if cls not in self._enums:
            self._enums[cls] = self._members(cls) if self.project.base_names(cls) & _ENUMS else None
        return self._enums[cls]

    def _members(self, cls: Class) -> Members:
        members: list[str] = []
        values: dict[str, int] = {}
        for statement in cls.node.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                name = statement.targets[0].id
                if name.startswith("_"):
                    continue
                members.append(name)
                if isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, int):
                    values[name] = statement.value.value
                elif isinstance(statement.value, ast.Call) and not statement.value.args:  # auto()
                    values[name] = max(values.values(), default=0) + 1
        methods = {}
        for block in cls.block.children:
            if block.kind == "def":
                node = cls.outline.function(block)
                if isinstance(node, ast.FunctionDef):
                    methods[block.name] = node
        return Members(cls.name, tuple(members), methods, values)


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
