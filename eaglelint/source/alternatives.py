"""Names that several sides of a top-level ``if`` import from different places: one implementation for each platform."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from eaglelint.source.index import Import
from eaglelint.source.machine import Machine, NeedsDecision, Raised
from eaglelint.source.tree import SourceModule
from eaglelint.source.values import Env, Frame

__all__ = ["chosen_import"]


def chosen_import(machine: Machine, module: SourceModule, name: str) -> Import | None:
    """The import that binds the name under what is assumed of the platform; None where that does not decide it."""
    try:
        piece = module.slice(*module.index.alternatives[name])
    except SyntaxError:
        return None
    frame = Frame(piece, module, Env({}), function=module.name)
    statement: cst.CSTNode | None = piece.body[0]
    while isinstance(statement, cst.If):
        side = _truth(machine, statement.test, frame)
        if side is None:
            return None
        if side:
            return _imported(statement.body, frame, name)
        statement = statement.orelse
    return _imported(statement.body, frame, name) if isinstance(statement, cst.Else) else None


def _truth(machine: Machine, test: cst.BaseExpression, frame: Frame) -> bool | None:
    from eaglelint.source.expressions import evaluate, truth

    try:
        attempt = machine.try_out(lambda: truth(evaluate(machine, test, frame)))
    except (NeedsDecision, Raised):
        return None
    return attempt[0] if attempt is not None else None


def _imported(body: cst.BaseSuite, frame: Frame, name: str) -> Import | None:
    for statement in _imports(body):
        module = frame.slice.code(statement.module) if statement.module is not None else ""
        for alias in () if isinstance(statement.names, cst.ImportStar) else statement.names:
            local = alias.asname.name if alias.asname is not None else alias.name
            if isinstance(local, cst.Name) and local.value == name and isinstance(alias.name, cst.Name):
                return Import(module, alias.name.value, len(statement.relative))
    return None


def _imports(body: cst.BaseSuite) -> Iterator[cst.ImportFrom]:
    for line in body.body:
        if isinstance(line, cst.SimpleStatementLine):
            yield from (small for small in line.body if isinstance(small, cst.ImportFrom))
