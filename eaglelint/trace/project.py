"""What a name means in the files of a trace: functions, classes and their bases, modules, variables."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from eaglelint.forks import begin
from eaglelint.source.nodes import all_nodes
from eaglelint.source.outline import Block, Function, Outline, Unparsable
from eaglelint.source.snapshot import Snapshot
from eaglelint.trace.files import Files
from eaglelint.trace.headers import Headers, headers_in

__all__ = ["Class", "Def", "External", "Module", "Project", "Variable", "imports_of"]

_LARGE = 20_000_000  # bytes of source: for less, a process of its own takes longer than it saves


@dataclass(frozen=True, slots=True)
class Def:
    """A function, and the file that has it."""

    outline: Outline
    block: Block

    @property
    def node(self) -> Function:
        return self.outline.function(self.block)


@dataclass(frozen=True, slots=True)
class Class:
    """A class, and the file that has it."""

    outline: Outline
    block: Block

    @property
    def node(self) -> ast.ClassDef:
        return self.outline.cls(self.block)

    @property
    def name(self) -> str:
        return self.block.name


@dataclass(frozen=True, slots=True)
class Module:
    """A module that was imported as such."""

    outline: Outline


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a module."""

    outline: Outline
    name: str


@dataclass(frozen=True, slots=True)
class External:
    """Something from a package that is not among the files: ``torch.cat``."""

    name: str


Meaning = Def | Class | Module | Variable | External


class Project(Files):
    """Python files, and the modules beside them that their imports name."""

    def __init__(
        self, paths: Sequence[Path], *, relative_to: Path | None = None, snapshot: Snapshot | None = None
    ) -> None:
        super().__init__(paths, relative_to=relative_to, snapshot=snapshot)
        self.roots = tuple(dict.fromkeys(root for path in paths for root in _roots(path)))
        # In a large tree nearly every trace comes to ask for them, but not at once. (One with a snapshot is no trace,
        # but part of a survey, which has other work for the other cores.)
        headers = partial(headers_in, self.sources)
        self._headers = begin(headers) if self.size > _LARGE and snapshot is None else headers
        self._headers_with: dict[str, Headers] = {}
        self._imports: dict[Outline, dict[str, tuple[str, str | None, int]]] = {}
        self._stars: dict[Outline, list[tuple[str, int]]] = {}
        self._assigned: dict[Outline, set[str]] = {}
        self._names: dict[Outline, str] = {}
        self._modules: dict[str, Outline | None] = {}
        self._meanings: dict[tuple[Outline, str], Meaning | None] = {}
        self._mros: dict[Class, tuple[Class, ...]] = {}
        self._subclasses: dict[Class, tuple[Class, ...]] = {}

    # --- names ---

    def meaning(self, outline: Outline, name: str) -> Meaning | None:
        """What a name means at the top of a module; None where it does not say."""
        key = (outline, name)
        if key not in self._meanings:
            self._meanings[key] = None  # an import circle ends here
            self._meanings[key] = self._meaning(outline, name)
        return self._meanings[key]

    def _meaning(self, outline: Outline, name: str) -> Meaning | None:
        block = outline.top(name)
        if block is not None:
            return Def(outline, block) if block.kind == "def" else Class(outline, block)
        self._index(outline)
        found = self._imports[outline].get(name)
        if found is not None:
            return self.imported(outline, *found)
        for module, level in self._stars[outline]:
            source = self.module(self._absolute(outline, module, level))
            meaning = self.meaning(source, name) if source is not None and source is not outline else None
            if meaning is not None:
                return meaning
        return Variable(outline, name) if name in self._assigned[outline] else None

    def imported(self, outline: Outline, module: str, attribute: str | None, level: int) -> Meaning | None:
        """What an import statement in a file brings in."""
        name = self._absolute(outline, module, level)
        if attribute is None:
            target = self.module(name)
            return Module(target) if target is not None else External(name)
        source = self.module(name)
        if source is not None and source is not outline:
            found = self.meaning(source, attribute)
            if found is not None:
                return found
        submodule = self.module(f"{name}.{attribute}")
        if submodule is not None:
            return Module(submodule)
        return External(f"{name}.{attribute}")

    def module(self, name: str) -> Outline | None:
        """The module of a dotted name below one of the roots."""
        if name not in self._modules:
            self._modules[name] = self._module(name) if name else None
        return self._modules[name]

    def _module(self, name: str) -> Outline | None:
        for root in self.roots:
            base = root.joinpath(*name.split("."))
            for path in (base.with_suffix(".py"), base / "__init__.py"):
                if str(path) in self.sources or self.is_file(path):
                    return self.outline(str(path))
        return None

    def _absolute(self, outline: Outline, module: str, level: int) -> str:
        if not level:
            return module
        name = self._module_name(outline)
        parts = name.split(".") if name else []
        keep = len(parts) - level + (1 if outline.path.name == "__init__.py" else 0)
        return ".".join([*parts[: max(keep, 0)], *([module] if module else [])])

    def _module_name(self, outline: Outline) -> str:
        if outline not in self._names:
            name = ""
            for root in self.roots:
                try:
                    parts = list(outline.path.relative_to(root).with_suffix("").parts)
                except ValueError:
                    continue
                name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                break
            self._names[outline] = name
        return self._names[outline]

    def _index(self, outline: Outline) -> None:
        if outline in self._imports:
            return
        imports: dict[str, tuple[str, str | None, int]] = {}
        stars: list[tuple[str, int]] = []
        assigned: set[str] = set()
        self._imports[outline], self._stars[outline], self._assigned[outline] = imports, stars, assigned
        try:
            tree = outline.module()
        except Unparsable as error:
            self.skip(outline.display, error)
            return
        for node in all_nodes(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for name, found in imports_of(node):
                    if name == "*":
                        stars.append((found[0], found[2]))
                    else:
                        imports.setdefault(name, found)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                assigned.add(node.id)

    # --- classes ---

    def mro(self, cls: Class) -> tuple[Class, ...]:
        """A class and its bases, as far as they are among the files, in about the order in which Python looks."""
        if cls not in self._mros:
            self._mros[cls] = (cls,)
            order: dict[Class, None] = {cls: None}
            for base in self._bases(cls):
                for found in self.mro(base):
                    order.pop(found, None)
                    order[found] = None
            self._mros[cls] = tuple(order)
        return self._mros[cls]

    def _bases(self, cls: Class) -> Iterator[Class]:
        for base in cls.node.bases:
            plain = base.value if isinstance(base, ast.Subscript) else base
            found = self.dotted(cls.outline, plain)
            if isinstance(found, Class) and found != cls:
                yield found

    def base_names(self, cls: Class) -> set[str]:
        """The names of all bases as written, those from elsewhere included: ``IntEnum``."""
        names: set[str] = set()
        for each in self.mro(cls):
            for base in each.node.bases:
                plain = base.value if isinstance(base, ast.Subscript) else base
                if isinstance(plain, ast.Name | ast.Attribute):
                    names.add(plain.id if isinstance(plain, ast.Name) else plain.attr)
        return names

    def dotted(self, outline: Outline, node: ast.expr) -> Meaning | None:
        """What ``name`` or ``module.name`` means."""
        if isinstance(node, ast.Name):
            return self.meaning(outline, node.id)
        if isinstance(node, ast.Attribute):
            owner = self.dotted(outline, node.value)
            if isinstance(owner, Module):
                return self.meaning(owner.outline, node.attr)
            if isinstance(owner, External):
                return External(f"{owner.name}.{node.attr}")
        return None

    def method(self, cls: Class, name: str) -> Def | None:
        """The method that a class has or inherits."""
        for owner in self.mro(cls):
            for block in reversed(owner.block.children):
                if block.name == name and block.kind == "def":
                    return Def(owner.outline, block)
        return None

    def subclasses(self, cls: Class) -> tuple[Class, ...]:
        """The classes below a class, among the files that were named."""
        if cls not in self._subclasses:
            self._subclasses[cls] = ()
            found: dict[Class, None] = {}
            for file, name in self._headers_for(cls.name).below.get(cls.name, ()):
                outline = self.outline(file)
                for block in outline.blocks if outline is not None else ():
                    if block.kind == "class" and block.name == name:
                        below = Class(outline, block)  # type: ignore[arg-type]
                        if below != cls and cls in self.mro(below):
                            found[below] = None
            for below in tuple(found):
                found.update(dict.fromkeys(self.subclasses(below)))
            self._subclasses[cls] = tuple(found)
        return self._subclasses[cls]

    def related(self, left: Class, right: Class) -> bool:
        """Whether one of two classes is a base of the other."""
        return left in self.mro(right) or right in self.mro(left)

    def classes_with(self, name: str, most: int = 1_000) -> list[tuple[Class, Def]]:
        """The classes among the files that define a method of that name themselves; none where they are too many."""
        found: list[tuple[Class, Def]] = []
        files = self._headers_for(name).files.get(name, ())
        if len(files) > most:
            return []
        for file in files:
            outline = self.outline(file)
            for block in outline.blocks if outline is not None else ():
                if outline is not None and block.kind == "def" and block.name == name and block.owner is not None:
                    found.append((Class(outline, block.owner), Def(outline, block)))
        return found

    def defined_in(self, name: str) -> int:
        """How many files define a function or class of that name."""
        return len(self._headers_for(name).files.get(name, ()))

    def classes_named(self, name: str) -> list[Class]:
        """All classes of that name among the files."""
        found = []
        for file in self._headers_for(name).files.get(name, ()):
            outline = self.outline(file)
            for block in outline.blocks if outline is not None else ():
                if outline is not None and block.kind == "class" and block.name == name:
                    found.append(Class(outline, block))
        return found

    def _headers_for(self, name: str) -> Headers:
        """Headers among which are all with that name. A trace asks for many, a survey for a few."""
        if self.snapshot is None:
            return self.headers
        if name not in self._headers_with:
            files = self._files_with(name.encode())
            self._headers_with[name] = headers_in({file: self.sources[file] for file in files})
        return self._headers_with[name]

    @cached_property
    def headers(self) -> Headers:
        """The headers of functions and classes in all files."""
        self.searched += 5 * self.size
        return self._headers()


def imports_of(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, tuple[str, str | None, int]]]:
    """The names that an import statement binds, each with module, attribute and level."""
    for alias in node.names:
        if isinstance(node, ast.Import):
            top = alias.name.split(".", 1)[0]
            yield (alias.asname, (alias.name, None, 0)) if alias.asname else (top, (top, None, 0))
        else:
            yield alias.asname or alias.name, (node.module or "", alias.name, node.level)


def _roots(path: Path) -> Iterator[Path]:
    """The directories above top-level packages: for a package or a file in one the one it is imported from."""
    directory = Path(os.path.abspath(path))
    if directory.is_file():
        directory = directory.parent
    top = directory
    for above in (directory, *directory.parents):
        # A package may leave out __init__.py below its top (sglang/srt does).
        if (above / "__init__.py").is_file():
            top = above.parent
    yield top
    if top != directory:
        yield directory
    for name in ("src", "python"):
        if (directory / name).is_dir():
            yield directory / name
