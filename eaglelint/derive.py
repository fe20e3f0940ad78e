"""Wirings from source: run an engine's resolver, setter, forward pass and concatenation, and read off the slots."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from eaglelint.deployment import DEFAULT, Deployment
from eaglelint.engines.base import DraftReads, Engine, EngineSource, config_object
from eaglelint.finding import Span
from eaglelint.recursion import deep_recursion
from eaglelint.source.assumptions import stated
from eaglelint.source.identify import Stream
from eaglelint.source.lookup import get_attribute
from eaglelint.source.machine import Budget, BudgetExceeded, Event, LayerLoop, Machine, Outcome, Raised, TooLong
from eaglelint.source.operators import whole
from eaglelint.source.slices import Site
from eaglelint.source.stubs import load_stubs
from eaglelint.source.tree import Binding
from eaglelint.source.values import Cat, Instance, Opaque, Tensor, TensorBuffer
from eaglelint.wiring import Condition, Evidence, Fault, LayerIds, Slot, Stage, Wiring

__all__ = ["Derivation", "Deriver", "ServingRequest", "definition", "derive_serving", "reads_ids_at"]


_NO_STATE = "no captured state was found"
# What a setter raises for ids that the model cannot take. Elsewhere an exception may as well be our own misreading.
_SETTER_FAULTS = frozenset(["IndexError", "NoSetter"])


@dataclass(frozen=True, slots=True)
class ServingRequest:
    """What to derive: a target class of an engine, fed by a draft's config, by given ids, or by the default list.

    ``target_class`` is what the serving end calls the class: its definition in the source, its name in a profile.
    """

    target_class: Binding | str
    num_layers: int
    target_data: dict[str, Any]
    kind: str = "eagle3"
    draft_data: dict[str, Any] | None = None
    layer_ids: LayerIds = "default"
    deployment: Deployment = DEFAULT


@dataclass(frozen=True, slots=True)
class _Run:
    """One path's result, comparable: what makes two paths the same wiring."""

    slots: tuple[Slot, ...]
    reasons: tuple[str, ...]
    captures: bool
    missing: tuple[tuple[str, Site, bool], ...] = ()  # attributes that were read and that nothing sets: Machine.missing
    uncopied: tuple[int, ...] = ()  # slots that share their memory with what a norm may have added to since
    in_place: tuple[str, ...] = ()  # those norms
    layers_ran: bool = False
    stages: tuple[Stage, ...] = ()
    final: Slot | None = field(default=None, compare=False)  # what the logits are computed from


def _for_stages(budget: Budget, count: int) -> Budget:
    return replace(budget, steps=budget.steps * min(count, 8))


@dataclass(frozen=True, slots=True)
class _Trail:
    """What one path left behind, for evidence."""

    events: list[Event]
    faults: list[tuple[str, Site, int]]
    parts: list[Tensor]


@dataclass(frozen=True, slots=True)
class _Built:
    """A model on each stage of the pipeline, and the calls that the engine answers itself; none if it takes choices."""

    key: tuple[Binding, str, dict[str, Any]]
    intercepts: dict[str, Any]
    models: tuple[Instance, ...]


@dataclass(frozen=True, slots=True)
class _Passed:
    """What one stage of the pipeline did."""

    order: list[tuple[int, int]]
    events: list[Event]
    result: Any


def _final(machine: Machine, stream: Stream) -> Slot | None:
    """The state that the engine hands to what computes its logits, where it was seen."""
    given = [whole(event.value) for event in machine.events if event.kind == "final"]
    slot = stream.slot(given[-1])[0] if given and isinstance(given[-1], Tensor) else None
    return slot if slot is not None and slot.known else None


def _stage(machine: Machine, passed: _Passed, stream: Stream) -> Stage:
    layers = [layer for _, layer in passed.order] or [-1]
    captured = [event.value for event in passed.events if event.kind == "capture" and isinstance(event.value, Tensor)]
    tensors = None
    if isinstance(passed.result, Instance) and not passed.result.closed:
        tensors = get_attribute(machine, passed.result, "tensors")
    names = tuple(str(name) for name in tensors) if isinstance(tensors, dict) else ()
    return Stage((layers[0], layers[-1]), tuple(stream.slot(tensor)[0] for tensor in captured), names)


@dataclass(frozen=True, slots=True)
class Derivation:
    """A wiring and what was seen on the way to it.

    Attributes:
        events: What the first path stored, captured and joined.
        missing: Attributes that were read and that nothing sets, nor anything to which their object is handed.
        uncopied: Slots that share their memory with what a norm may have added to since.
        layers_ran: Whether each decoder layer was seen to run once, in order.
        raised: The exception that ended the run, if one did.
        cut_short: Whether the interpretation ended before the run did.
    """

    wiring: Wiring
    events: tuple[Event, ...] = ()
    missing: tuple[tuple[str, Site], ...] = ()
    uncopied: tuple[int, ...] = ()
    layers_ran: bool = False
    raised: Raised | None = None
    cut_short: bool = False

    @property
    def hands_nothing_on(self) -> bool:
        """Whether it is certain that the draft gets no state: an assertion stops it, or all layers ran for nothing."""
        if self.raised is not None:
            return self.raised.explicit and self.raised.kind == "AssertionError"
        return self.layers_ran and self.wiring.reason == _NO_STATE


def derive_serving(
    engine: Engine, source: EngineSource, request: ServingRequest, *, budget: Budget | None = None
) -> Wiring:
    """The wiring of one target class; never raises for what the source does, an unknown wiring says why."""
    deriver = Deriver(engine, source, request.num_layers, deployment=request.deployment, budget=budget)
    return deriver.derive(request).wiring


class Deriver:
    """Derives one target class for several requests; what was learned about its code serves them all.

    Without ``config_defaults`` the answer holds for every config of the depth, whatever its other values are.
    """

    def __init__(
        self,
        engine: Engine,
        source: EngineSource,
        num_layers: int,
        *,
        deployment: Deployment = DEFAULT,
        budget: Budget | None = None,
        config_defaults: bool = True,
    ) -> None:
        self.engine = engine
        self.source = source
        self._machine = Machine(
            source.tree,
            deployment=deployment,
            stubs=load_stubs(engine.name),
            budget=_for_stages(budget or Budget(), deployment.number("pp")),
            num_layers=num_layers,
        )
        self._machine.config_defaults = config_defaults
        self._models: list[Instance] = []  # what was remembered of them must not outlive them
        self._built: _Built | None = None

    @property
    def unread(self) -> tuple[tuple[str, str], ...]:
        """The lists of layers that were stored, by class and attribute, and that no run has read afterwards."""
        return tuple(place for place, read in self._machine.lists.items() if not read)

    @property
    def loops(self) -> dict[str, LayerLoop]:
        """The functions that were seen to call decoder layers, by qualified name."""
        return self._machine.loops

    @property
    def steps(self) -> int:
        """How many steps the last request took."""
        return self._machine.steps

    def derive(self, request: ServingRequest) -> Derivation:
        """The wiring for one request, with the trail; each is derived from the same beginning."""
        machine = self._machine
        machine.begin()
        machine.deploy(request.deployment)
        self._prepare(request)
        mark = machine.heap.mark()
        try:
            return self._derive(request)
        finally:
            machine.heap.rollback(mark)

    def _prepare(self, request: ServingRequest) -> None:
        """Build the model where the last request was not for the same one: what is learned of it serves both."""
        key = (definition(request), request.kind, request.target_data)
        if self._built is not None and self._built.key == key:
            return
        machine = self._machine
        stages = range(request.deployment.number("pp"))
        models = None
        with suppress(BudgetExceeded, RecursionError), deep_recursion():  # which the run meets again, and reports
            models = machine.without_fork(lambda: tuple(self._model(request, stage) for stage in stages))
        machine.steps = 0
        self._built = _Built(key, dict(machine.intercepts), models or ())

    def _model(self, request: ServingRequest, stage: int) -> Instance:
        """The target's model on one stage of the pipeline."""
        machine = self._machine
        machine.enter_stage(stage)
        if not stage:
            self.engine.prepare(machine, self.source, request.kind)
        target = config_object(machine, request.target_data, name="the target's config")
        model = self.engine.build_model(machine, definition(request), target)
        self._models.append(model)
        return model

    def _begin(self, request: ServingRequest, stage: int) -> Instance:
        """The model, as it is before a path goes on with it on one stage of the pipeline."""
        machine, built = self._machine, self._built
        machine.enter_stage(stage)
        if built is None or not built.models:
            return self._model(request, stage)
        if not stage:
            machine.intercepts.clear()
            machine.intercepts.update(built.intercepts)
        return built.models[stage]

    def note_comparisons(self, found: set[tuple[int, int]]) -> None:
        """From here on, note the pairs of numbers that are compared on the way to an answer."""
        self._machine.compared = found

    def _derive(self, request: ServingRequest) -> Derivation:
        engine, source, machine = self.engine, self.source, self._machine
        reads = DraftReads()
        trails: list[_Trail] = []
        configured = False

        def run() -> _Run:
            nonlocal configured
            reads.asked.clear()
            reads.found.clear()
            captured: Any = None
            passed: list[_Passed] = []
            for stage in range(request.deployment.number("pp")):
                model = self._begin(request, stage)
                if not stage:
                    engine.admit(machine, source, request.kind)
                draft = None
                if request.draft_data is not None:
                    draft = config_object(machine, request.draft_data, reads=reads, name="the draft's config")
                ids = list(request.layer_ids) if isinstance(request.layer_ids, tuple) else None
                mark = machine.heap.mark()
                captures = engine.configure(machine, source, model, request.kind, draft, ids)
                machine.give(mark)
                if not captures:
                    return _Run((), ("the engine captures no auxiliary states for this config",), False)
                configured = True
                seen = len(machine.order), len(machine.events)
                captured = engine.forward(machine, source, model, captured)
                passed.append(_Passed(machine.order[seen[0] :], machine.events[seen[1] :], captured))
            joined = engine.concatenate(machine, source, captured)
            stream = Stream(machine, request.num_layers)
            parts = [machine.current(tensor) for tensor in parts_of(joined, captured)]
            found = [stream.slot(tensor) for tensor in parts]
            stages = tuple(_stage(machine, stage, stream) for stage in passed) if len(passed) > 1 else ()
            trails.append(_Trail(list(machine.events), list(machine.faults), parts))
            return _Run(
                tuple(slot for slot, _ in found),
                tuple(reason for _, reason in found if reason),
                True,
                tuple(dict.fromkeys(machine.missing)),
                tuple(index for index, tensor in enumerate(parts) if machine.may_be_overwritten(tensor)),
                tuple(sorted(machine.in_place)),
                stream.complete,
                stages,
                _final(machine, stream),
            )

        try:
            with deep_recursion():
                outcomes = machine.explore(run, None)
        except BudgetExceeded as error:
            where = f" at {error.site}" if error.site is not None else ""
            reason = f"the interpretation stopped: {error.what}{where}"
            return Derivation(_blank(engine, source, request).with_status("unknown", reason), cut_short=True)
        except (RecursionError, TooLong) as error:
            how = "nested too deeply" if isinstance(error, RecursionError) else "one call takes too many steps"
            reason = f"the interpretation stopped: {how}"
            return Derivation(_blank(engine, source, request).with_status("unknown", reason), cut_short=True)
        wiring = _wiring(engine, source, request, machine, outcomes, reads, trails, configuring=not configured)
        first = next((outcome.value for outcome in outcomes if outcome.raised is None), None)
        if first is None:
            return Derivation(wiring, tuple(machine.events), raised=outcomes[0].raised)
        return Derivation(
            wiring,
            tuple(trails[0].events if trails else ()),
            tuple((attribute, site) for attribute, site, outright in first.missing if outright),
            first.uncopied,
            first.layers_ran and configured,
        )

    def stored(self, request: ServingRequest) -> tuple[Event, ...]:
        """The lists of layers that the setter stores for given ids, without running the model."""
        engine, source, machine = self.engine, self.source, self._machine
        machine.begin()
        machine.deploy(request.deployment)
        self._prepare(request)
        mark = machine.heap.mark()

        def run() -> tuple[Event, ...]:
            model = self._begin(request, 0)
            ids = list(request.layer_ids) if isinstance(request.layer_ids, tuple) else None
            engine.configure(machine, source, model, request.kind, None, ids)
            return tuple(event for event in machine.events if event.kind == "set")

        try:
            with deep_recursion():
                outcomes = machine.explore(run, None)
        except (BudgetExceeded, RecursionError, TooLong):
            return ()
        finally:
            machine.heap.rollback(mark)
        return outcomes[0].value if len(outcomes) == 1 and outcomes[0].raised is None else ()


def definition(request: ServingRequest) -> Binding:
    """The target class in the source; a name alone, as profiles have it, cannot be interpreted."""
    assert isinstance(request.target_class, Binding)
    return request.target_class


def reads_ids_at(engine: Engine, source: EngineSource, request: ServingRequest, place: tuple[str, ...]) -> bool:
    """Whether the engine's resolver takes ids that stand at this key path of a draft's config, and only there."""
    machine = Machine(
        source.tree, deployment=request.deployment, stubs=load_stubs(engine.name), num_layers=request.num_layers
    )
    marked = [1, 2, 4]  # no default list: h[2] comes first in those
    data = _without_ids(request.draft_data or {})
    section = data
    for key in place[:-1]:
        section[key] = dict(section[key]) if isinstance(section.get(key), dict) else {}
        section = section[key]
    section[place[-1]] = marked

    def run() -> bool:
        engine.prepare(machine, source, request.kind)
        model = engine.build_model(machine, definition(request), config_object(machine, request.target_data))
        draft = config_object(machine, data, reads=DraftReads())
        engine.configure(machine, source, model, request.kind, draft, None)
        stored = [list(event.value) for event in machine.events if event.kind == "set" and "layer" in event.name]
        return bool(stored) and sorted(stored[-1]) in ([1, 2, 4], [2, 3, 5])

    try:
        with deep_recursion():
            outcomes = machine.explore(run, None)
    except (BudgetExceeded, RecursionError, TooLong):
        return False
    return any(outcome.raised is None and outcome.value for outcome in outcomes)


def _without_ids(data: dict[str, Any]) -> dict[str, Any]:
    """A copy of a config without its lists of integers."""
    kept: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, dict):
            kept[key] = _without_ids(value)
        elif not (isinstance(value, list) and all(isinstance(item, int) for item in value)):
            kept[key] = value
    return kept


def parts_of(joined: Any, captured: Any) -> list[Tensor]:
    """The captured states in the order in which they are concatenated."""
    if isinstance(joined, Tensor):
        term = joined.single()
        return list(term.parts) if isinstance(term, Cat) else [joined]
    if isinstance(joined, TensorBuffer):
        places = sorted(place for place in joined.writes if isinstance(place, int))
        places += [place for place in joined.writes if not isinstance(place, int)]
        return [_state(joined.writes[place], sure=isinstance(place, int)) for place in places]
    if isinstance(joined, Instance) and joined.payload is not None:
        joined = joined.payload
    if isinstance(joined, list | tuple):
        return [_state(item) for item in joined]
    return parts_of(captured, None) if captured is not None and captured is not joined else []


def _state(value: Any, *, sure: bool = True) -> Tensor:
    value = whole(value)
    if isinstance(value, Tensor) and sure:
        return value
    return Tensor.of(Opaque("a state that is not known" if sure else "the place of a state in its buffer is not known"))


def _blank(engine: Engine, source: EngineSource, request: ServingRequest) -> Wiring:
    name = definition(request).item.name  # type: ignore[union-attr]
    return Wiring(
        party="serving",
        name=f"{source.label} ({name})",
        slots=(),
        status="unknown",
        engine=engine.name,
        engine_version=source.version,
        target_class=name,
        draft_kind=request.kind,
        layer_ids=request.layer_ids,
        num_layers=request.num_layers,
        source=f"{engine.name}@{source.tree.display(source.package)}",
    )


def _wiring(
    engine: Engine,
    source: EngineSource,
    request: ServingRequest,
    machine: Machine,
    outcomes: list[Outcome],
    reads: DraftReads,
    trails: list[_Trail],
    *,
    configuring: bool,
) -> Wiring:
    wiring = _blank(engine, source, request)
    returned = [outcome for outcome in outcomes if outcome.raised is None]
    if not returned:
        raised = outcomes[0].raised
        assert raised is not None
        return replace(
            wiring,
            reason=_crash(outcomes[0], configuring),
            assumptions=_assumptions(request, machine),
            faults=(_fault(raised),) if configuring and raised.kind in _SETTER_FAULTS else (),
            ids_from=_ids_from(reads),
            layer_ids=_ids(request, reads),
            evidence=_raise_evidence(raised),
        )
    first: _Run = returned[0].value
    trail = trails[0] if trails else _Trail([], [], [])
    events = trail.events
    reasons = list(first.reasons)
    status = "exact"
    conditions = tuple(
        Condition(_condition_text(outcome), outcome.value.slots, _condition_span(outcome))
        for outcome in returned[1:]
        if outcome.value.slots != first.slots or outcome.value.captures != first.captures
    )
    if conditions:
        status = "conditional"
    for attribute, site, _ in first.missing:
        status = "conditional"
        text = f"when something sets {attribute}, which no class among its bases does ({site})"
        conditions += (Condition(text, span=_span(site)),)
    if machine.provisos:
        status = "conditional"
        conditions += tuple(Condition(proviso) for proviso in machine.provisos)
    sharing = next((outcome.value for outcome in returned if outcome.value.uncopied), None)
    if sharing is not None:
        status = "conditional"
        norms = " and ".join(sharing.in_place)
        which = ", ".join(f"slot {index}" for index in sharing.uncopied)
        conditions += (
            Condition(
                f"when {norms} does not add in place: {which} is stored without a copy, and layers go on with it"
            ),
        )
    if (request.deployment.number("tp") > 1 or request.deployment.on("dp-attention")) and first.slots:
        status = "conditional"
        sites = [event.site for event in events if event.kind == "capture"]
        text = "when each state is added up over the devices before it is captured: parts are not told from sums here"
        conditions += (Condition(text, span=_span(sites[0]) if sites else None),)
    unverified = [
        f"summary of {stub.name} not verified for this source ({place} differs from {stub.release})"
        for stub in machine.stubs.values()
        if stub.name in machine.used_stubs and (place := stub.unverified(source.tree)) is not None
    ]
    if unverified:
        status = "conditional"
        conditions += tuple(Condition(text) for text in unverified)
    if not first.slots or any(not slot.known for slot in first.slots):
        status = "unknown"
        if first.captures and not first.slots:
            elsewhere = any(outcome.value.slots for outcome in returned)
            reasons.append(
                "on one path no captured state was found, on another there are some" if elsewhere else _NO_STATE
            )
    return replace(
        wiring,
        slots=first.slots,
        label=first.final,
        stages=first.stages,
        status=status,  # type: ignore[arg-type]
        conditions=conditions,
        assumptions=_assumptions(request, machine),
        reason="; ".join(dict.fromkeys(reasons)) or None,
        summaries=len(machine.used_stubs),
        evidence=_evidence(machine, events, trail.parts),
        faults=tuple(
            Fault(text, site.path, site.line, None, layer if layer >= 0 else 0) for text, site, layer in trail.faults
        ),
        ids_from=_ids_from(reads),
        layer_ids=_ids(request, reads),
    )


def _assumptions(request: ServingRequest, machine: Machine) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*stated(request.deployment), *sorted(machine.used_assumptions))))


def _condition_text(outcome: Outcome) -> str:
    seen = dict.fromkeys(decision.text for decision in outcome.decisions if decision.choice)
    return " and ".join(seen) or "otherwise"


def _condition_span(outcome: Outcome) -> Span | None:
    """The line that decides: that of the first choice that is not the usual one."""
    sites = [decision.site for decision in outcome.decisions if decision.choice and decision.site is not None]
    return _span(sites[0]) if sites else None


def _span(site: Site) -> Span:
    return Span.at(site.path, *site.slice.position(site.node))


def _ids_from(reads: DraftReads) -> tuple[str, ...] | None:
    return reads.found[-1][0] if reads.found else None


def _ids(request: ServingRequest, reads: DraftReads) -> LayerIds:
    if request.draft_data is None:
        return request.layer_ids
    return tuple(reads.found[-1][1]) if reads.found else "default"


def _crash(outcome: Outcome, configuring: bool) -> str:
    raised = outcome.raised
    assert raised is not None
    where = f" at {raised.site}" if raised.site is not None else ""
    if (configuring and raised.kind in _SETTER_FAULTS) or (raised.explicit and not outcome.decisions):
        return f"it would stop with {raised.kind}{where}: {raised.message}"
    return f"the interpretation ended in {raised.kind}{where}: {raised.message}"


def _fault(raised: Raised) -> Fault:
    path, line = (raised.site.path, raised.site.line) if raised.site is not None else ("", 1)
    return Fault(f"{raised.kind}: {raised.message}", path, line)


def _raise_evidence(raised: Raised) -> tuple[Evidence, ...]:
    return (
        ()
        if raised.site is None
        else (Evidence(raised.site.path, raised.site.line, f"raises {raised.kind}: {raised.message}"),)
    )


def _evidence(machine: Machine, events: list[Event], parts: list[Tensor]) -> tuple[Evidence, ...]:
    """The lines that make the wiring: where the list was set, where each state was captured, where they were joined."""
    found: list[Evidence] = []
    setters = [event for event in events if event.kind == "set" and "layer" in event.name]
    if setters:
        last = setters[-1]
        path, line, _ = _place(machine, last.site)
        found.append(Evidence(path, line, f"{last.name} = {_show(last.value)}"))
        if last.via is not None:
            found.append(Evidence(last.via.path, last.via.line, _shortened(last.via.code)))
    for slot, event in _by_slot([event for event in events if event.kind == "capture"], parts):
        via = event.via
        if via is not None and via.path != event.site.path:
            found.append(Evidence(via.path, via.line, _shortened(via.code), slot))
        found.append(Evidence(*_place(machine, event.site), slot))
    for event in events:
        if event.kind == "elsewhere":
            note = f"{event.name} runs the layers from {event.value} on and is not handed the list of captures"
            found.append(Evidence(event.site.path, event.site.line, note))
    joins = [event for event in events if event.kind == "cat"]
    if joins:
        found.append(Evidence(joins[-1].site.path, joins[-1].site.line, joins[-1].site.code))
    return tuple(found)


def _place(machine: Machine, site: Site) -> tuple[str, int, str]:
    """The file, line and code of a place; in a summary, those of the function that it stands for."""
    stub = next((stub for stub in machine.stubs.values() if stub.slice is site.slice), None)
    function = stub.stands_for(machine.tree) if stub is not None else None
    if function is None:
        return site.path, site.line, site.code
    return function[0], function[1], function[2].strip()


def _by_slot(captures: list[Event], parts: list[Tensor]) -> list[tuple[int, Event]]:
    """The captures with the slots that they fill: in order, or by the state where some never reach the draft."""
    if len(captures) <= len(parts):
        return list(enumerate(captures))
    first: dict[Any, Event] = {}
    for event in captures:
        if isinstance(event.value, Tensor):
            first.setdefault(event.value.terms, event)
    return [(slot, first[part.terms]) for slot, part in enumerate(parts) if part.terms in first]


def _shortened(code: str, width: int = 120) -> str:
    return code if len(code) <= width else code[: width - 1] + "…"


def _show(value: Any) -> str:
    return str(sorted(value) if isinstance(value, set | frozenset) else list(value))
