"""Drafts that hand themselves a state with more or fewer norms than the one that the target hands them.

The first step of a draft like an MTP head takes the target's last state, each later one the draft's own. Both are told
by how many norms there are between them and what the head of the same model reads: the draft's class is run, and so is
the target's, as far as their own files go. What a module of another file computes is some new state.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import libcst as cst

from eaglelint.engines.base import DraftRegistry, Engine, EngineSource
from eaglelint.engines.recycling import RecyclesStates
from eaglelint.source.calls import call_value, is_norm, tensors_in
from eaglelint.source.index import ClassInfo
from eaglelint.source.lookup import MISSING, class_mro, find_method
from eaglelint.source.machine import Budget, BudgetExceeded, Machine, TooLong
from eaglelint.source.operators import whole
from eaglelint.source.slices import Site
from eaglelint.source.stubs import load_stubs
from eaglelint.source.tree import Binding, SourceModule
from eaglelint.source.values import BoundMethod, ClassValue, Function, Instance, Norm, Opaque, Tensor
from eaglelint.source.walk import walk
from eaglelint.survey.facts import Place, UnlikeStates
from eaglelint.survey.places import place_of, place_of_definition, place_of_node

__all__ = ["unlike_states", "unlike_states_of"]

_BUDGET = Budget(steps=1_000, attribute_steps=300, call_steps=800)  # drafts of vLLM 0.33.0 take 70 to 300 steps
_MOST_NORMS = 4
_COUNT = re.compile(r"(?:^|_)num_(?:\w+_)?layers|^n_predict$")  # of a config: a draft of one layer stands for all


def unlike_states(engine: Engine, source: EngineSource) -> tuple[UnlikeStates, ...]:
    """Every such class of drafts that the engine registers."""
    if not isinstance(engine, _Drafting):
        return ()
    files = engine.draft_files(source)
    own = frozenset(files.values())
    cases = [
        source.remember(  # each for itself, so that an edit of one file leaves the others known
            "unlike states of",
            (vars(engine), name, sorted(map(str, own))),
            partial(_unlike, engine, source, name, own),
        )
        for name, path in files.items()
        if engine.may_differ(source, path)
    ]
    return tuple(dict.fromkeys(case for case in cases if case is not None))


def unlike_states_of(
    engine: Engine, source: EngineSource, name: str, target: Binding | None = None
) -> tuple[UnlikeStates, ...]:
    """What is wrong with the class of one draft, for its target where that is known."""
    if not isinstance(engine, _Drafting):
        return ()
    files = engine.draft_files(source)
    models = [] if name not in files else [files[name], *([] if target is None else [target.module.path])]
    if not any(engine.may_differ(source, path) for path in models):
        return ()
    case = _unlike(engine, source, name, frozenset(files.values()), None if target is None else (target,))
    return () if case is None else (case,)


@runtime_checkable
class _Drafting(RecyclesStates, DraftRegistry, Protocol):
    """An engine that registers drafts and hands them states."""


def _unlike(
    engine: _Drafting,
    source: EngineSource,
    name: str,
    own: frozenset[Path],
    targets: tuple[Binding, ...] | None = None,
) -> UnlikeStates | None:
    """What is wrong with one class of drafts, which is followed in its ``own`` files, those of all drafts.

    Where its targets are not given, all count that are made of the layer that it has, or may be.
    """
    draft = engine.draft_binding(source, name)
    if draft is None:
        return None
    later = _handed(engine, source, own, lambda machine: engine.hands_on(machine, source, draft), layers=True)
    if later is None:
        return None
    modules = dict.fromkeys(module for layer in later.layers for module in layer)
    found = targets if targets is not None else (t for module in modules for t in engine.targets_of(source, module))
    first: list[tuple[Binding, _Handed]] = []
    for target in found:
        handed = source.tree.once(("state of", target), partial(_first, engine, source, target))
        # Which of them the draft is for is not known, so that one of another form is enough to say nothing.
        if handed is None or handed.norms == later.norms or (first and handed.norms != first[0][1].norms):
            return None
        first.append((target, handed))
    if not first:
        return None
    (target, handed), *_ = first
    assert isinstance(draft.item, ClassInfo) and isinstance(target.item, ClassInfo)
    forward = find_method(Machine(source.tree), ClassValue(draft.module, draft.item), "forward")
    returned = later.returned or (None if forward is None else _last_return(forward))
    if returned is None:
        return None
    return UnlikeStates(
        cls=draft.item.name,
        returned=returned,
        norms=later.norms,
        normed=later.normed if later.norms else None,
        target=target.item.name,
        target_norms=handed.norms,
        target_normed=handed.normed if handed.norms else None,
        target_defined=place_of_definition(target.module, target.item),
    )


def _first(engine: RecyclesStates, source: EngineSource, target: Binding) -> _Handed | None:
    """What a target hands to the first step; of its layers it does not matter what they do."""
    own = frozenset([target.module.path])
    return _handed(engine, source, own, lambda machine: engine.hands_first(machine, source, target), layers=False)


@dataclass(frozen=True, slots=True)
class _Handed:
    """A state that a model hands on.

    Attributes:
        norms: How many norms there are between it and what the head of that model reads.
        normed: The last of them.
        returned: Where the innermost module of the model's own file returns the state; None where it is the model.
        layers: The files of each module of another file that was run, those of its bases with them.
    """

    norms: int
    normed: Place | None
    returned: Place | None
    layers: tuple[tuple[SourceModule, ...], ...]


@dataclass(slots=True)
class _Seen:
    """What was run: norms and modules on the last path, layers on all."""

    norms: list[Site] = field(default_factory=list)
    returns: list[tuple[Function, Any]] = field(default_factory=list)
    layers: dict[tuple[SourceModule, ...], None] = field(default_factory=dict)


def _handed(
    engine: RecyclesStates,
    source: EngineSource,
    own: frozenset[Path],
    run: Callable[[Machine], tuple[Any, Any] | None],
    *,
    layers: bool,
) -> _Handed | None:
    """One run of a model, followed in its own files alone, and into its ``layers`` if that is asked for.

    None where its paths differ, or nothing is known.
    """
    machine = Machine(source.tree, stubs=load_stubs(source.engine), budget=_BUDGET)
    engine.prepare(machine, source, "eagle3")
    seen = _Seen()

    def call(callee: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
        if not isinstance(callee, Instance) or callee.cls is None:
            return MISSING
        if is_norm(callee):
            if site is not None:
                seen.norms.append(site)
            return MISSING
        if callee.cls.module.path in own and (layers or callee.layer is None):
            forward = find_method(machine, callee.cls, "forward")
            if forward is None:
                return MISSING
            result = call_value(machine, BoundMethod(forward, callee), args, kwargs, site)
            if all(_norms_between(given, result) is None for given in tensors_in((args, kwargs))):  # more than a norm
                seen.returns.append((forward, result))
            return result
        if not tensors_in((args, kwargs)):
            return MISSING
        bases = class_mro(machine, callee.cls)
        seen.layers[tuple(base.module for base in bases if isinstance(base, ClassValue))] = None
        return machine.branch(name)

    def path() -> tuple[Any, Any] | None:
        seen.norms.clear()
        seen.returns.clear()
        return run(machine)

    machine.outside_call = call
    machine.outside = lambda receiver, name: 1 if _COUNT.search(name) else MISSING
    machine.begin()
    try:
        outcomes = machine.explore(path, None)
    except (BudgetExceeded, RecursionError, TooLong):
        return None
    values = [None if outcome.raised is not None else outcome.value for outcome in outcomes]
    counts = {_norms_between(*value) if value is not None else None for value in values}
    (norms, *others) = counts
    if norms is None or others or values[-1] is None:
        return None
    return _Handed(
        norms=norms,
        normed=place_of(seen.norms[-1]) if seen.norms else None,
        returned=_returned(seen, whole(values[-1][0])),
        layers=tuple(seen.layers),
    )


def _norms_between(handed: Any, read: Any) -> int | None:
    """How many norms make one state of the other: fewer than none where the one that is handed on has them."""
    handed, read = whole(handed), whole(read)
    if not isinstance(handed, Tensor) or not isinstance(read, Tensor):
        return None
    if any(isinstance(term, Opaque) and term.serial is None for term in (*handed.terms, *read.terms)):
        return None
    for norms in range(_MOST_NORMS):
        if _under(read, norms) == handed:
            return norms
        if _under(handed, norms) == read:
            return -norms
    return None


def _under(tensor: Tensor, norms: int) -> Tensor | None:
    for _ in range(norms):
        term = tensor.single()
        if not isinstance(term, Norm):
            return None
        tensor = term.of
    return tensor


def _returned(seen: _Seen, state: Tensor) -> Place | None:
    """Where the innermost module that returned the state, alone or with others, does so."""
    for function, result in seen.returns:
        if state in tensors_in(result if isinstance(result, tuple) else (result,)):
            return _last_return(function)
    return None


def _last_return(function: Function) -> Place | None:
    piece = function.module.slice(function.info.line, function.info.end_line)
    returns = [node for node in walk(piece.body[0]) if isinstance(node, cst.Return)]
    return place_of_node(piece, returns[-1]) if returns else None
