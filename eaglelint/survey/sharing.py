"""Where an engine decides by comparing weights whether the draft borrows a module of the target's.

A syntactic fact: a comparison of two ``.weight`` tensors, in a function that replaces a module of one model by
another's (``del draft.embed_tokens`` and an assignment to it), or in one that such a function asks. Each rank of a
tensor-parallel group compares its own slices; a collective in one of these functions makes the ranks agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from eaglelint.engines.base import Engine, EngineSource
from eaglelint.source.slices import Slice
from eaglelint.source.tree import SourceModule
from eaglelint.source.walk import walk
from eaglelint.survey.facts import SharedByWeight
from eaglelint.survey.places import place_of_node
from eaglelint.survey.readers import functions_of

__all__ = ["shared_by_weight"]

_COMPARISONS = frozenset(["torch.equal", "torch.allclose"])
_MENTIONS = re.compile(rb"\btorch\.(?:equal|allclose)\(")
_AGREES = re.compile(r"\b(?:all_reduce|all_gather|broadcast|reduce)(?:_\w+)?\b")


@dataclass(slots=True)
class _Function:
    """What one function of a module does: the modules it replaces, the weights it compares, and whom it calls."""

    name: str
    piece: Slice
    replaces: dict[str, cst.CSTNode] = field(default_factory=dict)  # by the attribute
    compares: dict[tuple[str, ...], cst.Call] = field(default_factory=dict)  # by the two weights
    calls: set[str] = field(default_factory=set)


def shared_by_weight(engine: Engine, source: EngineSource) -> tuple[SharedByWeight, ...]:
    """Every such comparison in the directories that an engine starts up from, once for each pair of weights."""
    found: list[SharedByWeight] = []
    for path in dict.fromkeys(path for directory in engine.startup(source) for path in source.tree.files(directory)):
        module = source.tree.module_at(path) if _MENTIONS.search(source.tree.read(path)) else None
        if module is not None:
            found += _in_module(module)
    return tuple(found)


def _in_module(module: SourceModule) -> Iterator[SharedByWeight]:
    functions = list(_functions(module))
    for function in functions:
        involved = [function, *(other for other in functions if function.name in other.calls)]
        replaced = {name: place_of_node(one.piece, node) for one in involved for name, node in one.replaces.items()}
        if not replaced or any(_AGREES.fullmatch(called) for one in involved for called in one.calls):
            continue
        for pair, call in function.compares.items():
            meant = next((name for name in replaced if any(name in weight for weight in pair)), next(iter(replaced)))
            yield SharedByWeight(meant, place_of_node(function.piece, call), replaced[meant])


def _functions(module: SourceModule) -> Iterator[_Function]:
    for name, info in functions_of(module):
        try:
            yield _read(name.rpartition(".")[2], module.slice(info.line, info.end_line))
        except SyntaxError:
            continue


def _read(name: str, piece: Slice) -> _Function:
    function = _Function(name, piece)
    deleted, assigned, known = set[str](), dict[str, cst.CSTNode](), dict[str, str]()
    for node in walk(piece.body[0]):
        match node:
            case cst.Del(target=cst.Attribute(attr=cst.Name(value=attribute))):
                deleted.add(attribute)
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name(value=attribute)))]):
                assigned.setdefault(attribute, node)
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=local))], value=cst.Attribute() as value):
                known[local] = piece.code(value)
            case cst.Call(func=func, args=arguments):
                called = piece.code(func)
                function.calls.add(called.rpartition(".")[2])
                if called in _COMPARISONS:
                    pair = tuple(_weight(argument.value, piece, known) for argument in arguments[:2])
                    if all(weight.endswith(".weight") for weight in pair):
                        function.compares.setdefault(pair, node)
    function.replaces = {attribute: node for attribute, node in assigned.items() if attribute in deleted}
    return function


def _weight(node: cst.CSTNode, piece: Slice, known: dict[str, str]) -> str:
    """What a tensor is called in the code, whatever it was moved or cast to."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        node = node.func.value
    code = piece.code(node).removesuffix(".data")
    return known.get(code, code)
