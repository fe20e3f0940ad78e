"""Each target class of an engine, run without ids and with ids that reach for its ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eaglelint.artifacts.target import TargetConfig
from eaglelint.derive import Derivation, Deriver, ServingRequest
from eaglelint.engines.base import Engine, EngineSource
from eaglelint.source.index import ClassInfo
from eaglelint.source.lookup import find_method
from eaglelint.source.machine import Budget, Event, Machine
from eaglelint.source.tree import Binding
from eaglelint.source.values import ClassValue
from eaglelint.survey.facts import ClassFacts, Place, Run, Stored
from eaglelint.survey.places import place_of, place_of_definition
from eaglelint.wiring import LayerIds

__all__ = ["SURVEY_LAYERS", "class_facts", "run_of", "survey_classes"]

SURVEY_LAYERS = 12
_MIDDLE = SURVEY_LAYERS // 2
_BUDGET = Budget(steps=8_000, attribute_steps=3_000)


def survey_classes(engine: Engine, source: EngineSource, bindings: Sequence[Binding]) -> list[ClassFacts]:
    """The facts of these classes. One that only renames another is that other under a second name."""
    known: dict[ClassInfo, ClassFacts] = {}
    found = []
    for binding in bindings:
        info = binding.item
        assert isinstance(info, ClassInfo)
        original = _renamed(source, binding)
        if original is not None and original in known:
            facts = _under_another_name(known[original], binding, source)
        else:
            facts = _survey(engine, source, binding)
        known[info] = facts
        found.append(facts)
    return found


def class_facts(source: EngineSource, engine: Engine, binding: Binding) -> ClassFacts:
    """A class with its places, not run yet."""
    info = binding.item
    assert isinstance(info, ClassInfo)
    setter = find_method(Machine(source.tree), ClassValue(binding.module, info), engine.setters[0])
    return ClassFacts(
        info.name,
        place_of_definition(binding.module, info),
        place_of_definition(setter.module, setter.info) if setter is not None else None,
    )


def _survey(engine: Engine, source: EngineSource, binding: Binding) -> ClassFacts:
    deriver = Deriver(engine, source, SURVEY_LAYERS, budget=_BUDGET)

    def run(ids: LayerIds) -> Run:
        data = TargetConfig.synthetic(SURVEY_LAYERS).data
        return run_of(deriver.derive(ServingRequest(binding, SURVEY_LAYERS, data, layer_ids=ids)), ids)

    facts = class_facts(source, engine, binding)
    default = run("default")
    last = middle = None
    for offset in dict.fromkeys((engine.usual_offset, 1 - engine.usual_offset)):
        last = run((_MIDDLE - offset, SURVEY_LAYERS - offset))
        if not last.slots and last.stopped is not None:
            middle = run((_MIDDLE - offset,))
        first = (last.slots or (middle.slots if middle else ()))[:1]
        if not first or first[0].boundary in (None, _MIDDLE):
            break
        last = middle = None
    if default.cut_short and last is not None and last.slots:
        default = run("default")  # with what the other run has learned, the budget may suffice
    return replace(facts, default=default, last=last, middle=middle)


def run_of(derivation: Derivation, ids: LayerIds) -> Run:
    """A derivation as rules see it."""
    raised = derivation.raised
    return Run(
        ids=ids,
        wiring=derivation.wiring,
        stored=tuple(stored for event in derivation.events if (stored := _stored(event)) is not None),
        captures=tuple(_captured_at(event) for event in derivation.events if event.kind == "capture"),
        stopped=place_of(raised.site) if raised is not None and raised.site is not None else None,
        cut_short=raised is None and not derivation.events and not derivation.wiring.slots,
        error=f"{raised.kind}: {raised.message}" if raised is not None else None,
        uncopied=derivation.uncopied,
    )


def _stored(event: Event) -> Stored | None:
    if event.kind != "set" or "layer" not in event.name:
        return None
    values = event.value
    is_set = isinstance(values, set | frozenset)
    return Stored(event.name, tuple(sorted(values) if is_set else values), not is_set, place_of(event.site))


def _captured_at(event: Event) -> Place:
    """The line in the model's own file, where a helper of another one did the work."""
    via = event.via
    return place_of(via if via is not None and via.path != event.site.path else event.site)


# --- classes that only rename another ------------------------------------------------------------------------------


def _renamed(source: EngineSource, binding: Binding) -> ClassInfo | None:
    """The class that this one is another name of: its only base, to which it adds nothing."""
    info = binding.item
    assert isinstance(info, ClassInfo)
    if info.methods or info.assignments or info.setters or info.decorators or len(info.bases) != 1:
        return None
    base = source.tree.resolve(binding.module, info.bases[0])
    return base.item if isinstance(base, Binding) and isinstance(base.item, ClassInfo) else None


def _under_another_name(facts: ClassFacts, binding: Binding, source: EngineSource) -> ClassFacts:
    info = binding.item
    assert isinstance(info, ClassInfo)

    def renamed(run: Run | None) -> Run | None:
        if run is None:
            return None
        wiring = replace(run.wiring, name=f"{source.label} ({info.name})", target_class=info.name)
        return replace(run, wiring=wiring)

    return replace(
        facts,
        name=info.name,
        place=place_of_definition(binding.module, info),
        default=renamed(facts.default),
        last=renamed(facts.last),
        middle=renamed(facts.middle),
    )
