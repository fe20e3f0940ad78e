"""Graphs that an engine records for prefills of the target, and that no such prefill ever runs on.

A graph is recorded for one mode of keeping states, and its runner refuses a batch in another one. Everything is run:
the worker's prefill for the mode that it asks for, the runner's own gate for what it lets in, and the function that
makes the runner for whether it makes it at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import libcst as cst

from eaglelint.engines.base import Engine, EngineSource
from eaglelint.engines.graphs import GraphsForModes
from eaglelint.engines.workers import Request
from eaglelint.source.calls import call_value, run_here
from eaglelint.source.construct import function_node
from eaglelint.source.index import ClassInfo
from eaglelint.source.lookup import class_mro
from eaglelint.source.machine import Budget, BudgetExceeded, Machine, TooLong
from eaglelint.source.slices import Site
from eaglelint.source.stubs import load_stubs
from eaglelint.source.tree import Binding
from eaglelint.source.values import BoundMethod, ClassValue, Function, Instance, Unknown
from eaglelint.source.walk import walk
from eaglelint.survey.facts import Place, RefusedGraphs
from eaglelint.survey.places import place_of, place_of_definition, place_of_node
from eaglelint.survey.readers import functions_of

__all__ = ["refused_graphs"]

_BUDGET = Budget(call_steps=60_000)


class _Made(Exception):
    """The runner is made: what follows does not matter."""

    def __init__(self, site: Site | None) -> None:
        self.site = site


class _LetIn(Exception):
    """A mode that is asked for is let in on a path: the others do not matter."""


@dataclass(frozen=True, slots=True)
class _Maker:
    """A function that makes a runner of graphs."""

    runner: ClassValue
    gate: Function
    function: Function
    owner: ClassValue | None


def refused_graphs(engine: Engine, source: EngineSource) -> tuple[RefusedGraphs, ...]:
    """Each runner that is made for an EAGLE-3 target and lets no prefill in that any of its workers asks for."""
    if not isinstance(engine, GraphsForModes):
        return ()
    requests = [
        request
        for request in _given_up(lambda: list(engine.requests(_machine(engine, source), source))) or ()
        if isinstance(request.mode, Instance)
    ]
    if not requests:
        return ()
    found: dict[tuple[str, int], RefusedGraphs] = {}
    options = engine.graph_options(_machine(engine, source), source)
    for maker in _makers(engine, source):
        for option in options:
            case = _case(engine, source, maker, option, requests)
            if case is not None:
                found.setdefault((case.made.span.path, case.made.span.start.line), case)
    return tuple(found.values())


def _case(
    engine: GraphsForModes, source: EngineSource, maker: _Maker, option: str | None, requests: list[Request]
) -> RefusedGraphs | None:
    asked_for = {request.mode.attrs["name"] for request in requests}
    answer = _given_up(lambda: _ask(engine, source, maker, option, asked_for))
    lets_in, attributes = answer or ((), set())
    if not lets_in:
        return None
    settings = list(_settings(engine, source, maker.runner, attributes))
    if any(method != "__init__" for method, _ in settings):
        return None  # it may be recorded anew, for another mode
    made = _given_up(lambda: _made(engine, source, maker, option))
    if made is None:
        return None
    request = requests[0]
    places = [place for _, place in settings]
    named = (place for place in places if any(re.search(rf"\b{name}\b", place.code) for name in lets_in))
    return RefusedGraphs(
        runner=maker.runner.info.name,
        recorded=next(named, places[0] if places else None),
        made=place_of(made),
        option=option,
        lets_in=lets_in,
        gate=place_of_definition(maker.gate.module, maker.gate.info),
        worker=request.worker,
        asks_for=request.mode.attrs["name"],
        asked=place_of(request.site),
    )


def _ask(
    engine: GraphsForModes, source: EngineSource, maker: _Maker, option: str | None, asked_for: set[str]
) -> tuple[tuple[str, ...], set[str]]:
    """The modes that are let in on some path, if those that are asked for are refused on all; none if they are not.

    And the runner's attributes that hold a mode.
    """
    machine = _machine(engine, source)
    modes = engine.modes(machine, source)
    attributes: set[str] = set()

    def run(mode: Instance, *, asked: bool) -> Any:
        runner = engine.target_runner(machine, source, option, None)
        graphs = machine.new_instance(Instance(maker.runner, (runner,), name=maker.runner.info.name))
        batch = engine.prefill(machine, source, mode)
        answer = run_here(machine, maker.gate, (graphs, batch))
        held = {**graphs.lazy, **graphs.attrs}
        attributes.update(name for name, value in held.items() if any(value is member for member in modes.values()))
        if asked and answer is not False:
            raise _LetIn
        return answer

    def refused(mode: Instance, *, asked: bool = False) -> bool:
        machine.begin()
        outcomes = machine.explore(partial(run, mode, asked=asked), None)
        return all(outcome.raised is None and outcome.value is False for outcome in outcomes)

    try:
        if not all(refused(modes[name], asked=True) for name in asked_for):
            return (), attributes
    except _LetIn:
        return (), attributes
    return tuple(name for name, mode in modes.items() if name not in asked_for and not refused(mode)), attributes


def _settings(
    engine: Any, source: EngineSource, runner: ClassValue, attributes: set[str]
) -> Iterator[tuple[str, Place]]:
    """Where one of these attributes is set, with the method's name."""
    machine = _machine(engine, source)
    for cls in class_mro(machine, runner):
        if isinstance(cls, str):
            continue
        for method in cls.info.methods.values():
            piece = cls.module.slice(method.line, method.end_line)
            for node in walk(piece.body[0]):
                match node:
                    case cst.Assign(targets=[cst.AssignTarget(target=target)]) | cst.AnnAssign(target=target):
                        if any(piece.code(target) == f"self.{name}" for name in attributes):
                            yield method.name, place_of_node(piece, node)


def _made(engine: GraphsForModes, source: EngineSource, maker: _Maker, option: str | None) -> Site | None:
    """Where the runner is made for an EAGLE-3 target on the first path that does so; None where no path does."""
    machine = _machine(engine, source)

    def make(m: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
        raise _Made(site)

    def run() -> None:
        runner = engine.target_runner(machine, source, option, maker.owner)
        callee: Any = maker.function if maker.owner is None else BoundMethod(maker.function, runner)
        given = {name: Unknown(name, present=True) for name in _required(maker.function)}
        if runner.name in given:
            call_value(machine, callee, (), {**given, runner.name: runner}, None)
        else:
            call_value(machine, callee, (), given, None)

    machine.intercepts[f"{maker.runner.info.name}()"] = make
    try:
        machine.explore(run, None)
    except _Made as made:
        return made.site
    return None


def _required(function: Function) -> list[str]:
    """The parameters that a caller must give, without ``self``."""
    _, node = function_node(function)
    parameters = (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params)
    return [p.name.value for p in parameters if p.default is None and p.name.value != "self"]


def _machine(engine: Any, source: EngineSource) -> Machine:
    machine = Machine(source.tree, stubs=load_stubs(engine.name), budget=_BUDGET)
    engine.prepare(machine, source, "eagle3")
    return machine


def _given_up(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except (BudgetExceeded, RecursionError, TooLong):
        return None


# --- which runners there are, and who makes them ---------------------------------------------------------------------


def _makers(engine: Any, source: EngineSource) -> Iterator[_Maker]:
    """Each call of a class with a gate, in the files that make the target's runners."""
    files = engine.graph_files(source)
    gated = dict(_gated(engine, source, files))
    if not gated:
        return
    makes = re.compile(r"\b(" + "|".join(map(re.escape, gated)) + r")\(")
    calls = [f"{name}(".encode() for name in gated]
    for path in files:
        content = source.tree.read(path)
        if not any(call in content for call in calls):
            continue
        module = source.tree.module_at(path)
        for name, info in functions_of(module) if module is not None else ():
            assert module is not None
            text = module.text(info.line, info.end_line)
            for made in dict.fromkeys(makes.findall(text)):
                owner = module.index.classes.get(name.partition(".")[0]) if "." in name else None
                bound = source.tree.resolve(module, made)
                if isinstance(bound, Binding) and isinstance(bound.item, ClassInfo):
                    runner, gate = gated[made]
                    cls = None if owner is None else ClassValue(module, owner)
                    yield _Maker(runner, gate, Function(module, info, cls), cls)


def _gated(engine: Any, source: EngineSource, files: list[Path]) -> Iterator[tuple[str, tuple[ClassValue, Function]]]:
    """The classes of runners that have a gate of their own, by name; a file that names no mode compares none."""
    mentions = re.compile("|".join(rf"def {gate}\b" for gate in engine.gates).encode())
    member = next(iter(engine.modes(_machine(engine, source), source).values()), None)
    if member is None:
        return
    for path in files:
        text = source.tree.read(path)
        speaks = mentions.search(text) and member.cls.info.name.encode() in text
        module = source.tree.module_at(path) if speaks else None
        for info in module.index.classes.values() if module is not None else ():
            assert module is not None
            gate = next((info.methods[name] for name in engine.gates if name in info.methods), None)
            if gate is not None:
                cls = ClassValue(module, info)
                yield info.name, (cls, Function(module, gate, cls))
