"""States that are captured before features from outside are added to them.

Models that look at images add features of them to the stream between their first layers, DeepStack's for one. Which
argument brings them is found by running the model: one that is None for a text, that the loop over the layers reads,
and that is there for a prompt with images. It is given a stand-in whose items are terms of their own. A state that is
captured without some of these, though the layer that comes next computes from the sum, is not what that layer sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any

import libcst as cst

from eaglelint.artifacts.target import LAYER_COUNT_KEYS
from eaglelint.derive import ServingRequest, definition, parts_of
from eaglelint.engines.base import DraftReads, Engine, EngineSource, config_object, stand_in
from eaglelint.recursion import deep_recursion
from eaglelint.source.identify import Stream
from eaglelint.source.machine import Budget, BudgetExceeded, LayerLoop, Machine, Raised, TooLong
from eaglelint.source.slices import Site
from eaglelint.source.stubs import load_stubs
from eaglelint.source.values import External, Input, Tensor, Term, Unknown
from eaglelint.source.walk import walk
from eaglelint.survey.facts import InjectedLate, Place
from eaglelint.survey.places import place_of
from eaglelint.wiring import Slot

__all__ = ["Features", "State", "compared", "injected_late"]

_COUNT = 3  # how many features there are, where the code asks: any number that is less than that of the layers
_WIDTH = 64  # of a state, where the target's config does not say
_BELOW = (1, 3)  # how much deeper than the loop over the layers calls are followed on the way to it, at first
_WAY = 1_200  # steps on that way: 700 in SGLang 0.5.12 and vLLM 0.33.0
_ITEM, _LENGTH = "an injected feature", "the number of injected features"


class _Reached(Exception):
    """The argument is there: what follows does not matter."""


@dataclass(slots=True)
class Features:
    """What was taken from the stand-in: each item's term, with the place; and whether its length was asked for."""

    name: str
    taken: dict[Term, Site] = field(default_factory=dict)
    counted: bool = False


@dataclass(frozen=True, slots=True)
class State:
    """h[``boundary``] as it is captured there: the features that it holds, and those that are added to it later."""

    boundary: int
    place: Place
    held: tuple[Term, ...]
    lacking: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class _Seen:
    """A run: the captured states in order, where each was captured, and which it is.

    ``read``: what each layer computes from, by its number, and the final norm, by that of the layers.
    """

    captured: tuple[Tensor, ...]
    places: tuple[Place, ...]
    slots: tuple[Slot, ...]
    read: tuple[tuple[int, Tensor], ...]


def injected_late(
    engine: Engine, source: EngineSource, request: ServingRequest, loops: Mapping[str, LayerLoop], budget: Budget
) -> tuple[InjectedLate, ...]:
    """What a target class captures too early; nothing where that is not certain.

    Args:
        request: The class and the ids.
        loops: The functions that call its layers, as a run on a text left them.
        budget: The bounds of each of the runs that it takes; there are none where no argument is in question.
    """
    found: list[InjectedLate] = []
    for features, states in compared(engine, source, request, loops, budget):
        by_line: dict[Place, list[State]] = {}
        for state in sorted(states, key=attrgetter("boundary")):
            if state.lacking:
                by_line.setdefault(state.place, []).append(state)
        for place, lacking in by_line.items():
            found.append(
                InjectedLate(
                    boundaries=tuple(state.boundary for state in lacking),
                    name=features.name,
                    capture=place,
                    taken=place_of(features.taken[lacking[0].lacking[0]]),
                    counted=_COUNT if features.counted else None,
                )
            )
    return tuple(found)


def compared(
    engine: Engine, source: EngineSource, request: ServingRequest, loops: Mapping[str, LayerLoop], budget: Budget
) -> Iterator[tuple[Features, tuple[State, ...]]]:
    """Each argument that brings features, with the captured states that are what is read next but for features."""
    candidates = {function: names for function, seen in loops.items() if (names := _arguments(seen))}
    if not candidates or request.deployment.number("pp") > 1:
        return
    depth = max(loops[function].depth for function in candidates)
    given: tuple[tuple[str, str], ...] | None = ()
    # An encoder of images takes longer to follow than all the rest: it is left aside where that is enough.
    for below in _BELOW:
        shallow = replace(budget, steps=_WAY, depth=min(depth + below, budget.depth))
        given = _given(engine, source, request, candidates, shallow)
        if given is None or given:
            break  # with deeper calls it takes no fewer steps
    if not given:
        return
    machine = _machine(engine, source, request, budget)
    run = partial(_run, engine, source, machine, request)
    plain = _only(machine, run)
    for function, name in given if plain is not None else ():
        assert plain is not None
        features = Features(name)
        machine.entering = {function: partial(_hand, machine, features)}
        seen = _only(machine, run)
        if seen is not None and len(seen.captured) == len(plain.captured):
            yield features, tuple(_alike(plain, seen, features))


def _alike(plain: _Seen, seen: _Seen, features: Features) -> Iterator[State]:
    """The states that are the same sum as in the plain run, and as what is computed from next, but for features."""
    read, own = dict(seen.read), features.taken.keys()
    for before, slot, place, state in zip(plain.captured, plain.slots, plain.places, seen.captured, strict=True):
        if slot.form != "stream" or slot.boundary is None or slot.boundary not in read:
            continue
        reader = read[slot.boundary]
        if before.terms == state.terms - own == reader.terms - own:
            held, needed = ([term for term in features.taken if term in t.terms] for t in (state, reader))
            yield State(slot.boundary, place, tuple(held), tuple(term for term in needed if term not in held))


# --- the argument ----------------------------------------------------------------------------------------------------


def _arguments(loop: LayerLoop) -> tuple[str, ...]:
    """The parameters that are None for a text and that the loop reads, by themselves or by what was made of them."""
    function = next((node for node in loop.slice.body if isinstance(node, cst.FunctionDef)), None)
    if function is None:
        return ()
    params = (*function.params.posonly_params, *function.params.params, *function.params.kwonly_params)
    names = [param.name.value for param in params if param.name.value in loop.absent]
    if not names:
        return ()
    loops: list[Any] = [node for node in walk(function.body) if type(node) in (cst.For, cst.While)]
    read = {node.value for loop in loops for node in walk(loop) if type(node) is cst.Name}
    bound = {name for loop in loops for name, _ in _assignments(loop.body)}
    before = [(name, value) for name, value in _assignments(function.body) if name not in bound]
    return tuple(name for name in names if name not in bound and _made_of(name, before) & read)


def _made_of(name: str, assignments: list[tuple[str, set[str]]]) -> set[str]:
    """A name, and those that are assigned something in which it or one of them stands."""
    found = {name}
    for target, value in assignments:
        if value & found:
            found.add(target)
    return found


def _assignments(body: cst.CSTNode) -> Iterator[tuple[str, set[str]]]:
    """Each name that is assigned in a suite, with the names that stand in its value."""
    node: Any
    for node in walk(body):
        kind = type(node)
        if kind is cst.Assign:
            targets = [target.target for target in node.targets]
        elif kind in (cst.AnnAssign, cst.AugAssign) and node.value is not None:
            targets = [node.target]
        else:
            continue
        value = {inner.value for inner in walk(node.value) if type(inner) is cst.Name}
        for target in targets:
            for name in walk(target):
                if type(name) is cst.Name:
                    yield name.value, value


def _given(
    engine: Engine,
    source: EngineSource,
    request: ServingRequest,
    candidates: Mapping[str, tuple[str, ...]],
    budget: Budget,
) -> tuple[tuple[str, str], ...] | None:
    """Those arguments that are there for a prompt with images, None where it takes too long to see.

    The run ends where the loop's function is given one.
    """
    machine = _machine(engine, source, request, budget, images=True)
    found: dict[tuple[str, str], None] = {}

    def note(function: str, variables: dict[str, Any]) -> None:
        given = [name for name in candidates[function] if _is_there(variables[name])]
        found.update({(function, name): None for name in given})
        raise _Reached if given else Raised("Reached", "the loop over the layers", None)

    machine.entering = {function: partial(note, function) for function in candidates}
    with suppress(_Reached):
        _only(machine, partial(_run, engine, source, machine, request))
    return tuple(found) if found or machine.steps <= budget.steps else None


def _is_there(value: Any) -> bool:
    """Whether a value is known not to be None: a config without such features may leave it so."""
    return value.present if isinstance(value, Unknown) else value is not None


def _hand(machine: Machine, features: Features, variables: dict[str, Any]) -> None:
    """Give the argument something with items, each of which is a term of its own where it is known which it is."""

    def item(m: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Tensor:
        if site is None or not _plain(args[0]):
            return m.opaque("a feature of which it is not known which one it is", site)
        term = Input(f"{features.name}[{args[0]!r}]")
        features.taken.setdefault(term, site)
        return Tensor.of(term)

    def length(m: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> int:
        features.counted = True
        return _COUNT

    machine.intercepts.update({_ITEM: item, _LENGTH: length})
    items, size = External(_ITEM), External(_LENGTH)
    variables[features.name] = stand_in(machine, features.name, __getitem__=items, __len__=size)


def _plain(key: Any) -> bool:
    """Whether an index is known: the same one names the same feature."""
    if isinstance(key, slice):
        return all(_plain(bound) for bound in (key.start, key.stop, key.step))
    return all(map(_plain, key)) if isinstance(key, tuple) else isinstance(key, int | str | type(None) | type(...))


# --- the runs --------------------------------------------------------------------------------------------------------


def _machine(
    engine: Engine,
    source: EngineSource,
    request: ServingRequest,
    budget: Budget,
    *,
    images: bool = False,
) -> Machine:
    deployment = replace(request.deployment, given=(*request.deployment.given, ("images", "on" if images else "off")))
    stubs = load_stubs(engine.name)
    return Machine(source.tree, stubs=stubs, budget=budget, num_layers=request.num_layers, deployment=deployment)


def _only(machine: Machine, run: Callable[[], _Seen | None]) -> _Seen | None:
    """What a run comes to on all paths on which it ends; None where they differ, or where it takes too long."""
    machine.begin()
    mark = machine.heap.mark()
    try:
        with deep_recursion():
            outcomes = machine.explore(run, None)
    except (BudgetExceeded, RecursionError, TooLong):
        return None
    finally:
        machine.heap.rollback(mark)
    found: list[_Seen | None] = [outcome.value if outcome.raised is None else None for outcome in outcomes]
    return found[0] if all(seen == found[0] for seen in found) else None


def _run(engine: Engine, source: EngineSource, machine: Machine, request: ServingRequest) -> _Seen | None:
    count = request.num_layers
    engine.prepare(machine, source, request.kind)
    target = config_object(machine, _with_width(request.target_data), name="the target's config")
    model = engine.build_model(machine, definition(request), target)
    draft = None
    if request.draft_data is not None:
        draft = config_object(machine, request.draft_data, reads=DraftReads(), name="the draft's config")
    ids = list(request.layer_ids) if isinstance(request.layer_ids, tuple) else None
    if not engine.configure(machine, source, model, request.kind, draft, ids):
        return None
    handed = engine.forward(machine, source, model)
    captured = tuple(machine.current(state) for state in parts_of(engine.concatenate(machine, source, handed), handed))
    places = tuple(place_of(event.site) for event in machine.events if event.kind == "capture")
    if len(places) != len(captured):
        return None
    stream = Stream(machine, count)
    slots = tuple(stream.slot(state)[0] for state in captured)
    finals = tuple((count, tensor) for layer, tensor in machine.final if layer == count - 1)
    return _Seen(captured, places, slots, (*machine.read.items(), *finals[:1]))


def _with_width(config: Mapping[str, Any]) -> dict[str, Any]:
    """A target's config that says wherever it says how deep a model is how wide it is: where a feature begins."""
    sections = {key: _with_width(value) for key, value in config.items() if isinstance(value, dict)}
    width = {"hidden_size": _WIDTH} if any(key in config for key in LAYER_COUNT_KEYS) else {}
    return {**width, **config, **sections}
