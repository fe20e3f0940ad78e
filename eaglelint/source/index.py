"""The symbol index of one Python file: which classes, functions, imports and assignments it has, and on which lines.

Built with ``ast`` because it is the fastest parser there is. What is found here is parsed again, function by function
and only on demand, by libcst (slices.py).
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eaglelint.source.nodes import all_nodes, children, dotted
from eaglelint.source.outline import Outline, Unparsable

__all__ = ["ClassInfo", "FileIndex", "FunctionInfo", "Import", "index_outline", "index_source"]

_MAX_SOURCE_BYTES = 8 * 1024 * 1024
# In a comment on one of the first two lines, another encoding than UTF-8.
_ENCODING = re.compile(rb"(?:[^\r\n]*(?:\r\n?|\n))?[^\r\n]*#[^\r\n]*coding[:=][ \t]*(?!(?i:utf-?8)(?![-.\w]))")
# What stands in them sets no variable around them.
_CLOSED = (ast.Constant, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_GOES_ON = re.compile(rb"\\\r?\n[ \t]{0,4}\S")  # after a backslash, at the indentation of a statement


@dataclass(frozen=True, slots=True, eq=False)
class FunctionInfo:
    """A function or method: its name and the lines it stands on, decorators included."""

    name: str
    line: int
    end_line: int
    decorators: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Import:
    """What a name was imported from: ``from module import attribute``, or a module where there is no attribute."""

    module: str
    attribute: str | None
    level: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class ClassInfo:
    """A class: bases as written, methods, properties' setters, and class-level assignments by their lines.

    ``changes`` has, for each class variable, the lines of all statements of the body that set or change it.
    ``shadowed`` is what its own name was imported from before, where that is a base: ``class Layer(Layer)``.
    """

    name: str
    line: int
    end_line: int
    bases: tuple[str, ...]
    methods: dict[str, FunctionInfo]
    assignments: dict[str, tuple[int, int]]
    decorators: tuple[str, ...] = ()
    setters: dict[str, FunctionInfo] = field(default_factory=dict)
    changes: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    shadowed: Import | None = None


@dataclass(slots=True)
class FileIndex:
    """All top-level names of one file.

    A name that is bound in several places has its last unconditional binding, else its first. ``changes`` has, for each
    variable, the lines of all top-level statements that set or change it, in order; ``statements`` those of all that
    do more than define and import. ``alternatives``: the names that several sides of an ``if`` import, and its lines.
    """

    functions: dict[str, FunctionInfo] = field(default_factory=dict)
    classes: dict[str, ClassInfo] = field(default_factory=dict)
    imports: dict[str, Import] = field(default_factory=dict)
    star_imports: list[Import] = field(default_factory=list)
    assignments: dict[str, tuple[int, int]] = field(default_factory=dict)
    changes: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    statements: list[tuple[int, int]] = field(default_factory=list)
    alternatives: dict[str, tuple[int, int]] = field(default_factory=dict)


def index_source(source: bytes) -> FileIndex:
    """Index one file.

    Raises:
        SyntaxError: The source is not Python (of the running interpreter's grammar), or too deeply nested.
    """
    if len(source) > _MAX_SOURCE_BYTES:
        raise SyntaxError(f"larger than {_MAX_SOURCE_BYTES // 1024 // 1024} MiB")
    return _index(source)


def index_outline(source: bytes) -> FileIndex:
    """The same in less than half the time, without a look into functions: one that is no Python is not noticed.

    Raises:
        SyntaxError: What is outside of the functions is not Python.
    """
    if _ENCODING.match(source) or b"\0" in source or _GOES_ON.search(source):
        return index_source(source)
    try:
        source.decode()
        return _index(Outline(Path(), "", source).without_bodies())
    except (SyntaxError, UnicodeDecodeError, Unparsable):
        return index_source(source)  # the cut is not believed


def _index(source: bytes | str) -> FileIndex:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(str(error) or type(error).__name__) from error
    index = FileIndex(statements=[_lines(statement) for statement in tree.body if _runs(statement)])
    _index_block(tree.body, index)
    return index


def _runs(statement: ast.stmt) -> bool:
    """Whether a top-level statement does something when a script runs, besides defining and importing."""
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.If):
        return not _is_type_checking(statement.test)
    kinds = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Try, ast.With, ast.For, ast.While)
    return isinstance(statement, kinds)


def _index_block(body: list[ast.stmt], index: FileIndex, *, conditional: bool = False) -> None:
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                _bind(index, index.functions, statement.name, _function(statement), conditional)
            case ast.ClassDef():
                _bind(index, index.classes, statement.name, _class(statement, index.imports), conditional)
            case ast.Import():
                for alias in statement.names:
                    top = alias.name.split(".", 1)[0]
                    found = Import(alias.name, None) if alias.asname else Import(top, None)
                    _bind(index, index.imports, alias.asname or top, found, conditional)
            case ast.ImportFrom():
                for alias in statement.names:
                    found = Import(statement.module or "", alias.name, statement.level)
                    if alias.name == "*":
                        index.star_imports.append(found)
                    else:
                        _bind(index, index.imports, alias.asname or alias.name, found, conditional)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                _index_assignment(statement, index.assignments)
            case ast.If():
                if not conditional:
                    index.alternatives |= dict.fromkeys(_imported_twice(statement), _lines(statement))
                _index_block(_without_stand_ins(statement), index, conditional=True)
                _index_block(statement.orelse, index, conditional=True)
            case ast.Try():
                _index_block(statement.body, index, conditional=True)
                for handler in statement.handlers:
                    _index_block(handler.body, index, conditional=True)
                _index_block(statement.orelse, index, conditional=True)
                _index_block(statement.finalbody, index, conditional=True)
            case ast.With():
                _index_block(statement.body, index, conditional=conditional)
            case _:
                pass
        if not conditional:
            _note_changes(statement, index.changes)


def _imported_twice(statement: ast.If) -> set[str]:
    """The names that more than one side of an ``if`` imports."""
    sides: list[set[str]] = []
    rest: list[ast.stmt] = [statement]
    while len(rest) == 1 and isinstance(rest[0], ast.If):
        sides.append(_imported_names(rest[0].body))
        rest = rest[0].orelse
    sides.append(_imported_names(rest))
    return {name for index, side in enumerate(sides) for name in side if any(name in other for other in sides[:index])}


def _imported_names(body: list[ast.stmt]) -> set[str]:
    return {
        alias.asname or alias.name
        for statement in body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def _without_stand_ins(statement: ast.If) -> list[ast.stmt]:
    """The body, without classes for type checkers alone, in whose place the other side has the real ones."""
    if not (statement.orelse and _is_type_checking(statement.test)):
        return statement.body
    real = FileIndex()
    _index_block(statement.orelse, real)
    names = {*real.functions, *real.classes, *real.imports, *real.assignments}
    return [inner for inner in statement.body if not (isinstance(inner, ast.ClassDef) and inner.name in names)]


def _bind(index: FileIndex, kind: dict[str, Any], name: str, value: Any, conditional: bool) -> None:
    """Bind a name; a second definition under a condition, or for a failed import, does not replace the first."""
    kinds: tuple[dict[str, Any], ...] = (index.functions, index.classes, index.imports)
    if conditional and any(name in other for other in kinds):
        return
    for other in kinds:
        other.pop(name, None)
    kind[name] = value


def _note_changes(statement: ast.stmt, changes: dict[str, list[tuple[int, int]]]) -> None:
    """Note the variables that a top-level statement sets or changes."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
        return
    if isinstance(statement, ast.If) and _is_type_checking(statement.test):
        for inner in (*statement.body, *statement.orelse):
            _note_changes(inner, changes)
        return
    if isinstance(statement, ast.AnnAssign) and statement.value is None:
        return
    names: set[str] = set()
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                names.add(node.id)
        elif not isinstance(node, _CLOSED):
            held = None
            if isinstance(node, ast.Call):
                held = node.func.value if isinstance(node.func, ast.Attribute) else None
            elif isinstance(node, ast.Subscript):
                held = node.value if not isinstance(node.ctx, ast.Load) else None
            if isinstance(held, ast.Name):
                names.add(held.id)
            pending += children(node)
    for name in names:
        changes.setdefault(name, []).append(_lines(statement))


def _index_assignment(statement: ast.Assign | ast.AnnAssign | ast.AugAssign, into: dict[str, tuple[int, int]]) -> None:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if isinstance(statement, ast.AnnAssign) and statement.value is None:
        return
    for target in targets:
        for node in all_nodes(target):
            if isinstance(node, ast.Name):
                into[node.id] = _lines(statement)


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> FunctionInfo:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return FunctionInfo(node.name, first, node.end_lineno or node.lineno, _decorators(node))


def _class(node: ast.ClassDef, imports: dict[str, Import]) -> ClassInfo:
    methods: dict[str, FunctionInfo] = {}
    setters: dict[str, FunctionInfo] = {}
    assignments: dict[str, tuple[int, int]] = {}
    for statement in _flatten(node.body):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            # A property's setter comes after its getter under the same name: the getter is what reading runs.
            decorators = _decorators(statement)
            if any(name.endswith(".setter") for name in decorators):
                setters[statement.name] = _function(statement)
            elif not any(name.endswith((".deleter", "overload")) for name in decorators):
                methods[statement.name] = _function(statement)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            _index_assignment(statement, assignments)
    written = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]  # Base[T] is Base
    bases = tuple(_written(base) for base in written if isinstance(base, ast.Name | ast.Attribute))
    changes: dict[str, list[tuple[int, int]]] = {}
    for statement in node.body:
        _note_changes(statement, changes)
    end = node.end_lineno or node.lineno
    shadowed = imports.get(node.name) if node.name in bases else None
    decorators = _decorators(node)
    return ClassInfo(node.name, node.lineno, end, bases, methods, assignments, decorators, setters, changes, shadowed)


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
            names.append(_written(target))
    return tuple(names)


def _written(node: ast.expr) -> str:
    return dotted(node) or ast.unparse(node)


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _lines(node: ast.stmt) -> tuple[int, int]:
    return node.lineno, node.end_lineno or node.lineno
