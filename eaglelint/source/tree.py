"""The Python files that an interpretation may reach: modules by name, names across imports, slices on demand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from eaglelint.source.index import ClassInfo, FileIndex, FunctionInfo, Import, index_outline, index_source
from eaglelint.source.slices import Slice, parse_slice
from eaglelint.source.snapshot import Dependency, Snapshot

__all__ = ["Binding", "SourceModule", "SourceTree"]

_Rests = frozenset[Dependency]
_T = TypeVar("_T")


@dataclass(eq=False, slots=True)
class SourceModule:
    """One indexed file. ``display`` is the path as it is shown to people."""

    name: str
    path: Path
    display: str
    lines: list[str]
    index: FileIndex
    is_package: bool
    _slices: dict[tuple[int, int], Slice] = field(default_factory=dict)
    _texts: dict[tuple[int, int], str] = field(default_factory=dict)
    _rebound: frozenset[str] | None = None
    told: dict[Any, Any] = field(default_factory=dict)  # what was told from its text alone, by what that is about
    # Told that the file is no Python after all, where its functions were not looked into.
    _broken: Callable[[SyntaxError], None] | None = None

    def slice(self, line: int, end_line: int) -> Slice:
        """The statements on these lines, parsed by libcst; parsed once.

        A function that is no Python is one that raises a SyntaxError.

        Raises:
            SyntaxError: libcst does not take what Python takes.
        """
        key = (line, end_line)
        if key not in self._slices:
            try:
                self._slices[key] = parse_slice(self.display, self.lines, line, end_line)
            except SyntaxError:
                raising = self._raising(line, end_line)
                if raising is None:
                    raise
                self._slices[key] = raising
        return self._slices[key]

    def _raising(self, line: int, end_line: int) -> Slice | None:
        """What stands for a function in a file that is no Python, which is told now; None where the file is."""
        name = re.search(r"\bdef[ \t]+(\w+)", self.text(line, end_line))
        if self._broken is None or name is None:
            return None
        try:
            index_source("".join(self.lines).encode())
        except SyntaxError as error:
            self._broken(error)
            stub = [f"def {name[1]}(*args, **kwargs):\n", f"    raise SyntaxError({str(error)!r})\n"]
            return parse_slice(self.display, [*[""] * (line - 1), *stub], line, line + 1)
        return None

    @property
    def rebound(self) -> frozenset[str]:
        """The module's variables that some function sets anew."""
        if self._rebound is None:
            statements = re.findall(r"^[ \t]+global\b(.*)$", "".join(self.lines), re.M)
            self._rebound = frozenset(re.findall(r"\w+", " ".join(statements)))
        return self._rebound

    def text(self, line: int, end_line: int) -> str:
        key = (line, end_line)
        if key not in self._texts:
            self._texts[key] = "".join(self.lines[line - 1 : end_line])
        return self._texts[key]

    def absolute(self, found: Import) -> str:
        """The absolute name of an imported module, relative imports resolved."""
        if not found.level:
            return found.module
        parts = self.name.split(".")
        keep = len(parts) - found.level + (1 if self.is_package else 0)
        return ".".join([*parts[: max(keep, 0)], *([found.module] if found.module else [])])


@dataclass(frozen=True, slots=True)
class Binding:
    """What a module-level name stands for, and the module that defines it."""

    module: SourceModule
    item: ClassInfo | FunctionInfo | tuple[int, int] | None
    name: str = ""  # of a variable, as its module knows it

    @property
    def is_module(self) -> bool:
        return self.item is None


class SourceTree:
    """Modules under one or more roots. A root is the directory that stands *above* a top-level package."""

    def __init__(
        self,
        roots: tuple[Path, ...],
        *,
        relative_to: Path | None = None,
        snapshot: Snapshot | None = None,
        outlines: bool = False,
    ) -> None:
        """``outlines``: functions are looked into when they are asked for, not when a file is read."""
        self.roots = roots
        self.relative_to = relative_to or Path.cwd()
        self.snapshot = snapshot or Snapshot()
        self.outlines = outlines
        self.unreadable: dict[str, str] = {}
        self.asked: dict[ClassInfo, set[str]] = {}  # the names that runs have looked up along a class and its bases
        # What was looked up before, and what it rests on: whoever looks it up again rests on the same.
        self._modules: dict[str, tuple[SourceModule | None, _Rests]] = {}
        self._bindings: dict[tuple[str, str], tuple[Binding | str | None, _Rests]] = {}
        self._once: dict[Any, tuple[Any, _Rests]] = {}
        self._resolving: dict[tuple[str, str], int] = {}
        self._circle = 0

    def display(self, path: Path) -> str:
        try:
            return path.relative_to(self.relative_to).as_posix()
        except ValueError:
            return path.as_posix()

    def once(self, key: Any, compute: Callable[[], _T]) -> _T:
        """What ``compute`` finds in the tree, computed when it is first asked for."""
        if key not in self._once:
            with self.snapshot.noting() as rests:
                found = compute()
            self._once[key] = found, frozenset(rests)
        value, rested = self._once[key]
        self.snapshot.note(rested)
        return value  # type: ignore[no-any-return]

    def module(self, name: str) -> SourceModule | None:
        """The module of that dotted name, or None where no root has it or it does not parse."""
        known = self._modules.get(name)
        if known is not None:
            self.snapshot.note(known[1])
            return known[0]
        with self.snapshot.noting() as rests:
            found = self._search(name)
        self._modules[name] = found, frozenset(rests)
        return found

    def _search(self, name: str) -> SourceModule | None:
        for root in self.roots:
            base = root.joinpath(*name.split("."))
            for path, is_package in ((base.with_suffix(".py"), False), (base / "__init__.py", True)):
                if name and self.snapshot.is_file(path):
                    return self._load(name, path, is_package)
        return None

    def module_at(self, path: Path) -> SourceModule | None:
        """The module in that file, under the name that its place below a root gives it."""
        for root in self.roots:
            try:
                parts = list(path.relative_to(root).with_suffix("").parts)
            except ValueError:
                continue
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            known = self._modules.get(name)
            if known is None or known[0] is None:
                with self.snapshot.noting() as rests:
                    found = self._load(name, path, is_package)
                known = self._modules[name] = found, frozenset(rests)
            self.snapshot.note(known[1])
            return known[0]
        return None

    def resolve(self, module: SourceModule, name: str) -> Binding | str | None:
        """What ``name`` means in ``module``.

        Returns:
            A binding where a root has the definition, the dotted name where it comes from a package that no
            root has (``torch.cat``), None where the module does not know the name.
        """
        key = (module.name, name)
        known = self._bindings.get(key)
        if known is not None:
            self.snapshot.note(known[1])
            return known[0]
        if key in self._resolving:  # an import circle ends here
            self._circle = min(self._circle, self._resolving[key])
            return None
        depth = self._resolving[key] = len(self._resolving)
        outer, self._circle = self._circle, depth
        try:
            with self.snapshot.noting() as rests:
                found = self._resolve(module, name)
        finally:
            del self._resolving[key]
            circle, self._circle = self._circle, min(outer, self._circle)
        if circle >= depth:  # else it is but a part of the circle's answer
            self._bindings[key] = found, frozenset(rests)
        return found

    def _resolve(self, module: SourceModule, name: str) -> Binding | str | None:
        index = module.index
        if name in index.classes:
            return Binding(module, index.classes[name])
        if name in index.functions:
            return Binding(module, index.functions[name])
        if name in index.imports:
            return self.resolve_import(module, index.imports[name])
        if name in index.assignments:
            return Binding(module, index.assignments[name], name)
        for star in index.star_imports:
            source = self.module(module.absolute(star))
            if source is not None and not name.startswith("_"):
                found = self.resolve(source, name)
                if found is not None:
                    return found
        return None

    def resolve_import(self, module: SourceModule, found: Import) -> Binding | str | None:
        """What an import statement of ``module`` brings in; same returns as ``resolve``."""
        name = module.absolute(found)
        if found.attribute is None:
            target = self.module(name)
            return Binding(target, None) if target is not None else name
        source = self.module(name)
        if source is not None:
            bound = self.resolve(source, found.attribute) if source is not module else None
            if bound is not None:
                return bound
        submodule = self.module(f"{name}.{found.attribute}")
        if submodule is not None:
            return Binding(submodule, None)
        if source is not None and not self._has_package(name):
            return None
        return f"{name}.{found.attribute}"

    def read(self, path: Path) -> bytes:
        """The content of a file.

        Raises:
            OSError: It cannot be read.
        """
        return self.snapshot.read(path)

    def is_file(self, path: Path) -> bool:
        return self.snapshot.is_file(path)

    def is_dir(self, path: Path) -> bool:
        return self.snapshot.is_dir(path)

    def files(self, directory: Path) -> Iterator[Path]:
        """All Python files below a directory, in order."""
        yield from map(Path, self.snapshot.files(directory))

    def find_class(self, name: str, directories: tuple[Path, ...]) -> Binding | None:
        """The class of that name defined in one of the directories, by a bytes test before any parsing."""
        return next(self.find_classes(name, directories), None)

    def find_classes(self, name: str, directories: tuple[Path, ...]) -> Iterator[Binding]:
        """All classes of that name defined in the directories."""
        return self._find(name, "class", directories)

    def find_function(self, name: str, directories: tuple[Path, ...]) -> Binding | None:
        """The top-level function of that name defined in one of the directories."""
        return next(self._find(name, "def", directories), None)

    def _find(self, name: str, keyword: str, directories: tuple[Path, ...]) -> Iterator[Binding]:
        for directory in directories:
            for path in self.snapshot.defining(directory, keyword, name):
                module = self.module_at(Path(path))
                if module is None:
                    continue
                item = module.index.classes.get(name) if keyword == "class" else module.index.functions.get(name)
                if item is not None:
                    yield Binding(module, item)

    def _has_package(self, name: str) -> bool:
        return any(self.snapshot.is_dir(root.joinpath(*name.split("."))) for root in self.roots)

    def _load(self, name: str, path: Path, is_package: bool) -> SourceModule | None:
        display = self.display(path)
        try:
            source = self.snapshot.read(path)
            index = index_outline(source) if self.outlines else index_source(source)
            text = source.decode("utf-8-sig", errors="replace")
        except (OSError, SyntaxError) as error:
            self._note_unreadable(display, error)
            return None
        # Not splitlines(): it also splits at form feeds, which Python's own line numbers do not count.
        lines = [line + "\n" for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
        module = SourceModule(name, path, display, lines, index, is_package)
        if self.outlines:
            module._broken = partial(self._note_unreadable, display)
        return module

    def _note_unreadable(self, display: str, error: OSError | SyntaxError) -> None:
        line = getattr(error, "lineno", None)
        where = f"{display}:{line}" if line else display
        self.unreadable[display] = f"{where}: {getattr(error, 'msg', None) or error}"
