"""Imports of a scanned package: its models are loaded from the tree, and all else but torch is a stand-in.

A file is run statement by statement: what fails, for lack of something, is a stand-in under its name, and is reported.
"""

from __future__ import annotations
import __future__

import ast
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from eaglelint.probe.wiring.building import PASSED_OVER, forgiving, passing_over
from eaglelint.probe.wiring.facts import LANGUAGES, function_fact
from eaglelint.probe.wiring.standin import StandIn

__all__ = ["ScannedPackage"]

_OWN = ("torch", "eaglelint", "typing_extensions", "__main__")


class ScannedPackage(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of one package, and makes stand-ins of those that nobody has.

    ``real`` says which modules, by full name, are loaded from the tree; ``note`` is told what failed. ``functions``
    are taken in the place of those of the same name.
    """

    def __init__(
        self,
        root: Path,
        name: str,
        real: Callable[[str], bool],
        note: Callable[[str, BaseException], None],
        functions: dict[str, Any],
    ) -> None:
        self.root = root
        self.name = name
        self.real = real
        self.functions = functions
        self.note = note
        self.passing_over = passing_over(note)

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        top = fullname.partition(".")[0]
        if top in sys.stdlib_module_names or top in _OWN or _asked_by_torch(sys._getframe(1)):
            return None
        file = self._file(fullname)
        origin = str(file) if file is not None else None
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=origin, is_package=True)
        if file is not None and file.name != "__init__.py":
            spec.submodule_search_locations = None
        return spec

    def _file(self, fullname: str) -> Path | None:
        """The file of a module that is loaded."""
        if fullname.partition(".")[0] != self.name or not self.real(fullname):
            return None
        path = self.root.joinpath(*fullname.split("."))
        for candidate in (path.with_suffix(".py"), path / "__init__.py"):
            if candidate.is_file():
                return candidate
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = _StandInModule(spec.name) if spec.origin is None else ModuleType(spec.name)
        if spec.origin is None:
            module.__dict__.update(self.functions)
        module.__dict__["__path__"] = []
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is None or spec.origin is None:
            return
        path = Path(spec.origin)
        module.__dict__["__file__"] = str(path)
        if path.name != "__init__.py":
            del module.__dict__["__path__"]
        self._run(module, path)

    def _run(self, module: ModuleType, path: Path) -> None:
        tree = ast.parse(path.read_bytes(), str(path))
        flags = _future_flags(tree)
        globals_ = module.__dict__
        globals_[PASSED_OVER] = self.passing_over
        for statement in tree.body:
            if isinstance(statement, ast.ClassDef):
                forgiving(statement)
            code = compile(ast.Module([statement], []), str(path), "exec", flags=flags, dont_inherit=True)
            try:
                exec(code, globals_)
            except MemoryError:
                raise  # what holds the memory goes on holding it
            except Exception as error:
                names = _bound_names(statement)
                if not names:
                    self.note(f"{module.__name__}, line {statement.lineno}", error)
                for name in names:
                    self.note(f"{module.__name__}.{name}", error)
                    globals_.setdefault(name, StandIn(f"{module.__name__}.{name}"))
            for name in _bound_names(statement):
                if name in self.functions:
                    globals_[name] = self.functions[name]
                elif function_fact(name, (), {}) is not NotImplemented and callable(globals_.get(name)):
                    globals_[name] = StandIn(f"{module.__name__}.{name}")


class _StandInModule(ModuleType):
    """A module that nobody has: each name in it is a stand-in."""

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return []
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        value = LANGUAGES if name == "LANGUAGES" else StandIn(f"{self.__name__}.{name}")
        self.__dict__[name] = value
        return value


def _asked_by_torch(frame: FrameType | None) -> bool:
    """Whether torch or the standard library itself imports: a stand-in would mislead it."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith(("importlib", "_frozen_importlib")) and name != __name__:
            top = name.partition(".")[0]
            return top == "torch" or top in sys.stdlib_module_names
        frame = frame.f_back
    return False


def _future_flags(tree: ast.Module) -> int:
    flags = 0
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            for alias in statement.names:
                flags |= getattr(__future__, alias.name).compiler_flag
    return flags


def _bound_names(statement: ast.stmt) -> list[str]:
    """The names that a statement at the top of a file binds."""
    if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).partition(".")[0] for alias in statement.names if alias.name != "*"]
    return [node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
