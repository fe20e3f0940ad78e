"""A runner's start-up, read in the order of its calls: when it records graphs, and when it hands the model its ids.

The order of calls is a syntactic fact: methods of the runner, functions and constructors are followed where their text
speaks of graphs or of the setter, and everything else is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from eaglelint.engines.base import Engine, EngineSource
from eaglelint.source.construct import function_node
from eaglelint.source.index import ClassInfo, FunctionInfo
from eaglelint.source.lookup import find_method
from eaglelint.source.machine import Machine
from eaglelint.source.slices import Site, Slice
from eaglelint.source.tree import Binding
from eaglelint.source.values import ClassValue, Function
from eaglelint.source.walk import children
from eaglelint.survey.facts import GraphsBeforeIds, StartUp
from eaglelint.survey.places import place_of

__all__ = ["read_startup"]

_DEPTH = 8
# torch's own ways to record a graph: torch.cuda.graph(...), torch.cuda.CUDAGraph(), torch.npu.graph(...)
_RECORDS = re.compile(r"torch\.(?:cuda|npu|xpu|musa)\.(?:graph|\w+Graph)")
_SPEAKS_OF_GRAPHS = re.compile(r"\bCUDAGraph\b|\bNPUGraph\b|\.graph\(|\w+GraphRunner\b")
_SAYS_SO = re.compile(r"graph|captur|hidden_state", re.I)  # in the name of a function of another file
_CALLS_ITSELF = re.compile(r"\bself\.(\w+)\(|\b([a-z]\w+)\(")


@dataclass(frozen=True, slots=True)
class _Step:
    """Something that the start-up does: ``ids`` with ids, ``defaults`` without, ``record`` a graph.

    ``path`` holds the calls that lead to it, the outermost first.
    """

    what: str
    site: Site
    path: tuple[Site, ...] = ()


@dataclass(slots=True)
class _Walk:
    machine: Machine
    setters: tuple[str, ...]
    names: re.Pattern[str]
    running: list[FunctionInfo] = field(default_factory=list)
    relevant: dict[tuple[FunctionInfo, ClassInfo | None], bool] = field(default_factory=dict)
    done: dict[tuple[FunctionInfo, ClassInfo | None], list[_Step]] = field(default_factory=dict)


def read_startup(engine: Engine, source: EngineSource) -> StartUp:
    """The start-up of each of an engine's runners, from ``__init__`` on."""
    found = StartUp()
    for runner in engine.runners(source):
        assert isinstance(runner.item, ClassInfo)
        cls = ClassValue(runner.module, runner.item)
        machine = Machine(source.tree)
        start = find_method(machine, cls, "__init__")
        if start is None:
            continue
        names = re.compile(r"\.(?:" + "|".join(map(re.escape, engine.setters)) + r")\(")
        steps = _steps(_Walk(machine, engine.setters, names), start, cls)
        case = _order(steps)
        without = () if any(s.what == "ids" for s in steps) else tuple(s.site for s in steps if s.what == "defaults")
        found = StartUp(
            found.graphs_before_ids + (() if case is None else (case,)),
            found.calls_without_ids + tuple(dict.fromkeys(map(place_of, without))),
        )
    return found


def _order(steps: list[_Step]) -> GraphsBeforeIds | None:
    with_ids = next((index for index, step in enumerate(steps) if step.what == "ids"), None)
    record = next((index for index, step in enumerate(steps) if step.what == "record"), None)
    if record is None or with_ids is None or record > with_ids:
        return None
    defaults = next((step.site for step in reversed(steps[:record]) if step.what == "defaults"), None)
    return GraphsBeforeIds(
        place_of(_parting(steps[record], steps[with_ids])),
        place_of(steps[with_ids].site),
        None if defaults is None else place_of(defaults),
        place_of(steps[record].site),
    )


def _parting(step: _Step, other: _Step) -> Site:
    """The first call on the way to a step that is not on the way to the other: where the order could be mended."""
    way = (*step.path, step.site)
    theirs = (*other.path, other.site)
    return next((site for site, its in zip(way, theirs, strict=False) if site != its), step.site)


def _steps(walk: _Walk, function: Function, cls: ClassValue | None) -> list[_Step]:
    """What a function does, in order; ``cls`` is the class of ``self``."""
    key = (function.info, cls.info if cls is not None else None)
    if key in walk.done:
        return walk.done[key]
    if function.info in walk.running or len(walk.running) >= _DEPTH or not _relevant(walk, function, cls):
        return []
    try:
        piece, node = function_node(function)
    except SyntaxError:
        return []
    walk.running.append(function.info)
    walk.done[key] = list(_inside(walk, node.body, piece, function, cls))
    walk.running.pop()
    return walk.done[key]


def _relevant(walk: _Walk, function: Function, cls: ClassValue | None) -> bool:
    """A quick test on the text of a function and of what it calls: may it record graphs, or call the setter?"""
    key = (function.info, cls.info if cls is not None else None)
    if key not in walk.relevant:
        walk.relevant[key] = False  # a circle adds nothing
        text = function.module.text(function.info.line, function.info.end_line)
        walk.relevant[key] = (
            _SPEAKS_OF_GRAPHS.search(text) is not None
            or walk.names.search(text) is not None
            or any(_relevant(walk, *called) for called in _called(walk, text, function, cls))
        )
    return walk.relevant[key]


def _called(
    walk: _Walk, text: str, function: Function, cls: ClassValue | None
) -> Iterator[tuple[Function, ClassValue | None]]:
    for method, name in dict.fromkeys(_CALLS_ITSELF.findall(text)):
        target = find_method(walk.machine, cls, method) if method and cls is not None else None
        if target is not None:
            yield target, cls
        elif name in function.module.index.functions:
            yield Function(function.module, function.module.index.functions[name]), None


def _inside(
    walk: _Walk, node: cst.CSTNode, piece: Slice, function: Function, cls: ClassValue | None
) -> Iterator[_Step]:
    for child in children(node):
        yield from _inside(walk, child, piece, function, cls)
    if isinstance(node, cst.Call):
        yield from _call(walk, node, piece, function, cls)
    elif isinstance(node, cst.Name):
        yield from _mention(walk, node, piece, function)


def _call(walk: _Walk, node: cst.Call, piece: Slice, function: Function, cls: ClassValue | None) -> Iterator[_Step]:
    called = node.func
    if isinstance(called, cst.Attribute) and called.attr.value in walk.setters:
        yield _Step("ids" if node.args else "defaults", Site(piece, node))
        return
    if isinstance(called, cst.Attribute) and _RECORDS.fullmatch(piece.code(called)):
        yield _Step("record", Site(piece, node))
        return
    target: Function | None = None
    owner: ClassValue | None = None
    if isinstance(called, cst.Attribute) and isinstance(called.value, cst.Name) and called.value.value == "self":
        if cls is not None:
            target, owner = find_method(walk.machine, cls, called.attr.value), cls
    elif isinstance(called, cst.Name) and (
        called.value in function.module.index.functions or _SAYS_SO.search(called.value)
    ):
        bound = walk.machine.tree.resolve(function.module, called.value)
        if isinstance(bound, Binding) and isinstance(bound.item, FunctionInfo):
            target = Function(bound.module, bound.item)
    if target is not None:
        yield from _below(_steps(walk, target, owner), Site(piece, node))


def _mention(walk: _Walk, node: cst.Name, piece: Slice, function: Function) -> Iterator[_Step]:
    """A class that is named is constructed there, be it through a table of classes."""
    if not re.search(r"Runner|Graph", node.value):
        return
    bound = walk.machine.tree.resolve(function.module, node.value)
    if isinstance(bound, Binding) and isinstance(bound.item, ClassInfo):
        cls = ClassValue(bound.module, bound.item)
        start = find_method(walk.machine, cls, "__init__")
        if start is not None:
            yield from _below(_steps(walk, start, cls), Site(piece, node))


def _below(steps: list[_Step], call: Site) -> Iterator[_Step]:
    for step in steps:
        yield _Step(step.what, step.site, (call, *step.path))
