"""What stands in for a draft's final norm and drops the residual.

The layers of engines hand on a state and a residual, and the final norm adds the two up before it normalises. A draft
that was trained without that norm gets a stub in its place: ``self.model.norm = DummyOutputNorm()``. One that gives
its first argument back, residual or not, gives the last branch alone. A syntactic fact: a class without any call in
its ``forward(self, x, residual)``, put in the place of ``norm`` by the file that defines it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import libcst as cst

from eaglelint.engines.base import DraftRegistry, Engine, EngineSource
from eaglelint.source.tree import SourceModule
from eaglelint.survey.facts import NormStub
from eaglelint.survey.places import place_of_node

__all__ = ["norm_stubs", "stubs_in"]

_PUT_IN_PLACE = re.compile(r"^[ \t]*(?P<code>[\w.]+\.norm\s*(?::[^=\n]+)?=\s*(?P<cls>\w+)\(\s*\))", re.M)


def norm_stubs(engine: Engine, source: EngineSource) -> tuple[NormStub, ...]:
    """Every such stub in a file that defines a class of drafts, with the classes of that file."""
    if not isinstance(engine, DraftRegistry):
        return ()
    files: dict[Path, list[str]] = {}
    for name, path in engine.draft_files(source).items():
        files.setdefault(path, []).append(name)
    found: list[NormStub] = []
    for path, names in files.items():
        text = source.tree.read(path).decode("utf-8", "replace")
        module = source.tree.module_at(path) if _PUT_IN_PLACE.search(text) else None
        found += stubs_in(module, tuple(names)) if module is not None else ()
    return tuple(found)


def stubs_in(module: SourceModule, drafts: tuple[str, ...]) -> Iterator[NormStub]:
    """The stubs of one file, which defines these classes of drafts."""
    text = "\n".join(module.lines)
    for name in dict.fromkeys(match["cls"] for match in _PUT_IN_PLACE.finditer(text)):
        info = module.index.classes.get(name)
        forward = info.methods.get("forward") if info is not None else None
        if forward is None:
            continue
        piece = module.slice(forward.line, forward.end_line)
        function = piece.body[0]
        gives = _gives_without_residual(function) if isinstance(function, cst.FunctionDef) else None
        if gives is not None:
            yield NormStub(name, place_of_node(piece, gives), drafts)


def _gives_without_residual(function: cst.FunctionDef) -> cst.Return | None:
    """What a stub that is handed a residual gives without it; None where that is not plain."""
    names = [parameter.name.value for parameter in function.params.params]
    if len(names) != 3:
        return None
    _, state, residual = names
    given = _when_given(function.body, residual)
    value = given.value if given is not None else None
    first = value.elements[0].value if isinstance(value, cst.Tuple) and value.elements else value
    return given if isinstance(first, cst.Name) and first.value == state else None


def _when_given(body: cst.BaseSuite, residual: str) -> cst.Return | None:
    """The return that is reached with a residual, in a body of returns and of questions whether there is one."""
    for statement in body.body:
        match statement:
            case cst.SimpleStatementLine(body=[cst.Return() as found]):
                return found
            case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString())]):
                continue
            case cst.If(test=test, body=then, orelse=otherwise):
                asks = _asks(test, residual)
                if asks is None:
                    return None
                side = then if asks else otherwise.body if isinstance(otherwise, cst.Else) else None
                if side is not None:
                    return _when_given(side, residual)
            case _:
                return None
    return None


def _asks(test: cst.BaseExpression, residual: str) -> bool | None:
    """Whether a test holds with a residual; None where it asks something else."""
    match test:
        case cst.Comparison(
            left=cst.Name(value=name), comparisons=[cst.ComparisonTarget(operator, cst.Name(value="None"))]
        ) if name == residual:
            return isinstance(operator, cst.IsNot)
    return None
