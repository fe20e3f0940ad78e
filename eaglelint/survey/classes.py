"""Each target class of an engine, run without ids and with ids that reach for its ends."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from eaglelint.artifacts.target import TargetConfig
from eaglelint.deployment import DEFAULT, Deployment, parse_assumptions
from eaglelint.derive import Derivation, Deriver, ServingRequest
from eaglelint.engines.base import Engine, EngineSource
from eaglelint.source.index import ClassInfo
from eaglelint.source.lookup import find_method
from eaglelint.source.machine import Budget, Event, Machine
from eaglelint.source.tree import Binding
from eaglelint.source.values import ClassValue
from eaglelint.survey.facts import ClassFacts, Counting, Place, Run, Stored
from eaglelint.survey.injected import injected_late
from eaglelint.survey.places import place_of, place_of_definition
from eaglelint.wiring import LayerIds

__all__ = ["SURVEY_LAYERS", "base_of", "class_facts", "own_names", "run_of", "survey_classes"]

SURVEY_LAYERS = 12
_MIDDLE = SURVEY_LAYERS // 2
# Lists by which setters have been seen to tell how ids are counted: the first id, the largest one, the order.
_LISTS = ((1, 5, 8), (2, 5, 8), (2, _MIDDLE, SURVEY_LAYERS - 1), (8, 5, 2))
# Beyond it lies the full budget of one class: measured on SGLang 0.5.9, this follows 28 of 30 in a third more time.
_BUDGET = Budget(steps=40_000, attribute_steps=8_000)
_OVERLAPS = re.compile(rb"\bcan_run_tbo\b")  # SGLang's name for a batch in two halves
# What a config says besides its depth. With one dense layer, as DeepSeek has it, two halves overlap from the second on.
_REFERENCE = {"first_k_dense_replace": 1}


def survey_classes(engine: Engine, source: EngineSource, bindings: Sequence[Binding]) -> list[ClassFacts]:
    """The facts of these classes. One that adds nothing to its base that is asked for is that base by another name."""
    known: dict[ClassInfo, ClassFacts] = {}
    found: list[ClassFacts] = []
    stages_refused = False
    for binding in bindings:
        info = binding.item
        assert isinstance(info, ClassInfo)
        base = base_of(source, binding)
        if base is not None and base.item in known and own_names(info).isdisjoint(source.tree.asked[base.item]):
            facts = _under_another_name(known[base.item], binding, source)
            source.tree.asked[info] = source.tree.asked[base.item]
        else:
            facts = _survey(engine, source, binding, stages=not stages_refused)
            # What an engine's own check refuses, it refuses for all classes.
            staged = facts.staged
            stages_refused = stages_refused or (staged is not None and staged.refused and not staged.stored)
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


def _survey(engine: Engine, source: EngineSource, binding: Binding, *, stages: bool) -> ClassFacts:
    deriver = Deriver(engine, source, SURVEY_LAYERS, budget=_BUDGET)
    home = binding.module.path.parent

    def run(ids: LayerIds) -> Run:
        return run_of(deriver.derive(_request(binding, ids)), ids, source.tree.display(home))

    def elsewhere(assumption: str, other: Deriver | None = None) -> Run:
        request = _request(binding, "default", parse_assumptions([assumption]))
        other = other or Deriver(engine, source, SURVEY_LAYERS, deployment=request.deployment, budget=_BUDGET)
        return run_of(other.derive(request), "default", source.tree.display(home))

    default = run("default")
    counting = tuple(_counting(deriver, binding, ids) for ids in _LISTS)
    last = middle = None
    for offset in dict.fromkeys((engine.usual_offset, 1 - engine.usual_offset)):
        ids = (_MIDDLE - offset, SURVEY_LAYERS - offset)
        if default.cut_short and deriver.stored(_request(binding, ids)):
            break  # another run would take as long; but a setter that stops does so at once
        last = run(ids)
        if not last.slots and last.stopped is not None and not last.wiring.faults:
            middle = run(ids[:1])
        first = (last.slots or (middle.slots if middle else ()))[:1]
        if not first or first[0].boundary in (None, _MIDDLE):
            break
        last = middle = None
    works = bool(default.slots) and all(slot.known for slot in default.slots)
    if works and default.wiring.status == "exact":
        every = _request(binding, tuple(boundary - engine.usual_offset for boundary in range(1, SURVEY_LAYERS)))
        default = replace(default, injected_late=injected_late(engine, source, every, deriver.loops, _BUDGET))
    return replace(
        class_facts(source, engine, binding),
        default=default,
        last=last,
        middle=middle,
        counting=counting,
        unread=deriver.unread,
        overlapped=elsewhere("tbo", deriver) if works and _may_overlap(source, default) else None,
        staged=elsewhere("pp=2") if works and stages else None,
    )


def _request(binding: Binding, ids: LayerIds, deployment: Deployment = DEFAULT) -> ServingRequest:
    data = TargetConfig.synthetic(SURVEY_LAYERS).data
    sections = {name: {**section, **_REFERENCE} for name, section in data.items() if isinstance(section, dict)}
    data = {**data, **sections, **_REFERENCE}
    return ServingRequest(binding, SURVEY_LAYERS, data, layer_ids=ids, deployment=deployment)


def _may_overlap(source: EngineSource, run: Run) -> bool:
    """Whether a file that captures asks for a batch in two halves."""
    files = {source.tree.relative_to / place.span.path for place in run.captures}
    return any(_OVERLAPS.search(source.tree.read(file)) for file in files if source.tree.is_file(file))


def _counting(deriver: Deriver, binding: Binding, ids: tuple[int, ...]) -> Counting:
    events = deriver.stored(_request(binding, ids))
    lists = [stored for event in events if (stored := _stored(event)) is not None]
    return Counting(ids, lists[-1] if lists else None)


def run_of(derivation: Derivation, ids: LayerIds, home: str) -> Run:
    """A derivation as rules see it; ``home`` is the directory of the models, as it is shown."""
    raised = derivation.raised
    return Run(
        ids=ids,
        wiring=derivation.wiring,
        stored=tuple(stored for event in derivation.events if (stored := _stored(event)) is not None),
        captures=tuple(_captured_at(event, home) for event in derivation.events if event.kind == "capture"),
        handed_over=tuple(
            (event.name, event.value, place_of(event.site)) for event in derivation.events if event.kind == "elsewhere"
        ),
        stopped=place_of(raised.site) if raised is not None and raised.site is not None else None,
        refused=raised is not None and raised.explicit,
        cut_short=derivation.cut_short,
        error=f"{raised.kind}: {raised.message}" if raised is not None else None,
        complete=derivation.layers_ran,
        missing=tuple((name, place_of(site)) for name, site in derivation.missing),
        uncopied=derivation.uncopied,
    )


def _stored(event: Event) -> Stored | None:
    if event.kind != "set" or "layer" not in event.name:
        return None
    values = event.value
    is_set = isinstance(values, set | frozenset)
    return Stored(event.name, tuple(sorted(values) if is_set else values), not is_set, place_of(event.site))


def _captured_at(event: Event, home: str) -> Place:
    """The line in a model's own file, where a helper of another one did the work."""
    via = event.via
    if event.site.path.startswith(f"{home}/") or via is None:
        return place_of(event.site)
    return place_of(via)


# --- classes that only rename another ------------------------------------------------------------------------------


def base_of(source: EngineSource, binding: Binding) -> Binding | None:
    """The class that this one may be another name of: its only base."""
    info = binding.item
    assert isinstance(info, ClassInfo)
    if info.decorators or len(info.bases) != 1:
        return None
    base = source.tree.resolve(binding.module, info.bases[0])
    return base if isinstance(base, Binding) and isinstance(base.item, ClassInfo) else None


def own_names(info: ClassInfo) -> frozenset[str]:
    """What a class defines itself."""
    return frozenset((*info.methods, *info.assignments, *info.setters))


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
        overlapped=renamed(facts.overlapped),
        staged=renamed(facts.staged),
    )
