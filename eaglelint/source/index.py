"""The symbol index of one Python file: which classes, functions, imports and assignments it has, and on which lines.

Built with ``ast`` because it is the fastest parser there is; nothing else in eaglelint uses ``ast``. What is
found here is parsed again, function by function and only on demand, by libcst (slices.py).
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, field

__all__ = ["ClassInfo", "FileIndex", "FunctionInfo", "Import", "index_source"]

_MAX_SOURCE_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class FunctionInfo:
    """A function or method: its name and the lines it stands on, decorators included."""

    name: str
    line: int
    end_line: int
    decorators: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ClassInfo:
    """A class: bases as written, methods, and class-level assignments by their lines."""

    name: str
    line: int
    end_line: int
    bases: tuple[str, ...]
    methods: dict[str, FunctionInfo]
    assignments: dict[str, tuple[int, int]]
    decorators: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Import:
    """What a name was imported from: ``from module import attribute``, or a module where there is no attribute."""

    module: str
    attribute: str | None
    level: int = 0


@dataclass(slots=True)
class FileIndex:
    """All top-level names of one file."""

    functions: dict[str, FunctionInfo] = field(default_factory=dict)
    classes: dict[str, ClassInfo] = field(default_factory=dict)
    imports: dict[str, Import] = field(default_factory=dict)
    star_imports: list[Import] = field(default_factory=list)
    assignments: dict[str, tuple[int, int]] = field(default_factory=dict)
    statements: list[tuple[int, int]] = field(default_factory=list)


def index_source(source: bytes) -> FileIndex:
    """Index one file.

    Raises:
        SyntaxError: The source is not Python (of the running interpreter's grammar), or too deeply nested.
    """
    if len(source) > _MAX_SOURCE_BYTES:
        raise SyntaxError(f"larger than {_MAX_SOURCE_BYTES // 1024 // 1024} MiB")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(str(error) or type(error).__name__) from error
    index = FileIndex()
    _index_block(tree.body, index)
    return index


def _index_block(body: list[ast.stmt], index: FileIndex) -> None:
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                index.functions[statement.name] = _function(statement)
            case ast.ClassDef():
                index.classes[statement.name] = _class(statement)
            case ast.Import():
                for alias in statement.names:
                    if alias.asname:
                        index.imports.setdefault(alias.asname, Import(alias.name, None))
                    else:
                        top = alias.name.split(".", 1)[0]
                        index.imports.setdefault(top, Import(top, None))
            case ast.ImportFrom():
                for alias in statement.names:
                    found = Import(statement.module or "", alias.name, statement.level)
                    if alias.name == "*":
                        index.star_imports.append(found)
                    else:
                        index.imports.setdefault(alias.asname or alias.name, found)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                _index_assignment(statement, index.assignments)
                index.statements.append(_lines(statement))
            case ast.If():
                _index_block(statement.body, index)
                _index_block(statement.orelse, index)
                if not _is_type_checking(statement.test):
                    index.statements.append(_lines(statement))
            case ast.Try():
                _index_block(statement.body, index)
                for handler in statement.handlers:
                    _index_block(handler.body, index)
                _index_block(statement.orelse, index)
                _index_block(statement.finalbody, index)
                index.statements.append(_lines(statement))
            case ast.With():
                _index_block(statement.body, index)
                index.statements.append(_lines(statement))
            case ast.For() | ast.While():
                index.statements.append(_lines(statement))
            case ast.Expr() if not isinstance(statement.value, ast.Constant):
                index.statements.append(_lines(statement))
            case _:
                pass


def _index_assignment(statement: ast.Assign | ast.AnnAssign | ast.AugAssign, into: dict[str, tuple[int, int]]) -> None:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if isinstance(statement, ast.AnnAssign) and statement.value is None:
        return
    for target in targets:
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                into[node.id] = _lines(statement)


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> FunctionInfo:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return FunctionInfo(node.name, first, node.end_lineno or node.lineno, _decorators(node))


def _class(node: ast.ClassDef) -> ClassInfo:
    methods: dict[str, FunctionInfo] = {}
    assignments: dict[str, tuple[int, int]] = {}
    for statement in _flatten(node.body):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            # A property's setter comes after its getter under the same name: the getter is what reading runs.
            if not any(name.endswith((".setter", ".deleter")) for name in _decorators(statement)):
                methods[statement.name] = _function(statement)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            _index_assignment(statement, assignments)
    bases = tuple(ast.unparse(base) for base in node.bases if isinstance(base, ast.Name | ast.Attribute))
    return ClassInfo(
        node.name, node.lineno, node.end_lineno or node.lineno, bases, methods, assignments, _decorators(node)
    )


def _flatten(body: list[ast.stmt]) -> list[ast.stmt]:
    flat: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.If):
            flat += _flatten(statement.body) + _flatten(statement.orelse)
        else:
            flat.append(statement)
    return flat


def _decorators(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> tuple[str, ...]:
    names = []
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(target, ast.Name | ast.Attribute):
            names.append(ast.unparse(target))
    return tuple(names)


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _lines(node: ast.stmt) -> tuple[int, int]:
    return node.lineno, node.end_lineno or node.lineno
