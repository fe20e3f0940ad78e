"""What an engine feeds a draft; where it looks for ids, and which ids mend it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.artifacts.draft_kinds import IDS_KEYS
from eaglelint.artifacts.target import TargetConfig
from eaglelint.deployment import Deployment
from eaglelint.exceptions import UnreadableInput, WrongUsage
from eaglelint.rule import Served
from eaglelint.wiring import Wiring

if TYPE_CHECKING:
    from eaglelint.derive import ServingRequest
    from eaglelint.serving import ServingEnd
    from eaglelint.survey.facts import EngineFacts, Run

__all__ = ["End", "engine_of", "ids_places", "judge", "mended_option", "serve", "with_ids"]


@dataclass(frozen=True, slots=True)
class End:
    """One engine's wiring, and what it takes to derive another, or to run its code."""

    source: ServingEnd
    request: ServingRequest
    wiring: Wiring
    run: Run | None  # where source was interpreted


def serve(
    source: ServingEnd,
    kind: str,
    draft: DraftConfig,
    target: TargetConfig,
    target_class: str | None,
    deployment: Deployment,
) -> End:
    from eaglelint.derive import ServingRequest
    from eaglelint.serving import EngineHandle

    binding = _class_of(source, target, target_class)
    request = ServingRequest(binding, target.num_layers, target.data, kind, draft.data, deployment=deployment)
    run = source.run(request) if isinstance(source, EngineHandle) else None
    wiring = source.wiring(request) if run is None else run.wiring
    if isinstance(source, EngineHandle):
        wiring = replace(wiring, fc=source.projection(request, wiring))
    if wiring.layer_ids == "default":
        wiring = replace(wiring, ignored=tuple(found.key_path for found in draft.layer_ids))
    return End(source, request, wiring, run)


def engine_of(end: End) -> EngineFacts | None:
    """What the engine's source says; of its target classes only the one in use, as it was run for the draft."""
    if end.run is None:
        return None
    from eaglelint.derive import definition
    from eaglelint.serving import EngineHandle
    from eaglelint.survey.classes import class_facts
    from eaglelint.survey.work import engine_facts

    assert isinstance(end.source, EngineHandle)
    source, engine = end.source.source, end.source.engine
    served = replace(class_facts(source, engine, definition(end.request)), served=replace(end.run, wiring=end.wiring))
    return engine_facts(end.source, (served,))


def judge(
    source: ServingEnd, request: ServingRequest, wiring: Wiring, draft: DraftConfig, training: Wiring | None
) -> Served:
    """What is to be known about one end besides its wiring: where it looks for ids, and those that mend it."""
    asked = draft.layer_ids or (training is not None and training.slots and training.slots != wiring.slots)
    looks_in: tuple[tuple[str, ...], ...] = ()
    if wiring.layer_ids == "default" and asked:
        looks_in = ids_places(draft, lambda place: source.reads_ids_at(request, place))
    mended = _mended(source, request, wiring, training, looks_in)
    option = mended_option(source, request, wiring, training)
    return Served(wiring, looks_in, mended, _uncaptured(source, request, wiring), source.refusal(request), option)


def _class_of(source: ServingEnd, target: TargetConfig, named: str | None) -> Any:
    names = (named,) if named else (*target.architectures, *target.text_architectures)
    for name in names:
        binding = source.target_class(name)
        if binding is not None:
            return binding
    if not names:
        raise WrongUsage(
            f"{target.path}: the target's config names no architecture. "
            "Say which class serves it with --target-class CLASS."
        )
    raise UnreadableInput(
        f"{source.label} {source.where} has no class {' or '.join(dict.fromkeys(names))}, "
        f"which {target.path} names. "
        "Check that this is the engine and release that serves the target, or name another class with --target-class."
    )


def ids_places(draft: DraftConfig, reads: Callable[[tuple[str, ...]], bool]) -> tuple[tuple[str, ...], ...]:
    """The key paths, of those that hold no ids yet, at which an engine finds ids: tried with its own resolver."""
    parents: tuple[tuple[str, ...], ...] = ((), ("eagle_config",), ("dflash_config",))
    candidates = [(*parent, key) for parent in parents for key in IDS_KEYS]
    taken = {found.key_path for found in draft.layer_ids}
    return tuple(path for path in candidates if path not in taken and reads(path))


def _mended(
    source: ServingEnd,
    request: ServingRequest,
    wiring: Wiring,
    training: Wiring | None,
    looks_in: tuple[tuple[str, ...], ...],
) -> tuple[int, ...] | None:
    """Ids with which this engine serves what was trained: proposed under both conventions, kept if derived so."""
    if training is None or wiring.slots == training.slots or not training.slots:
        return None
    boundaries = [slot.boundary for slot in training.slots if slot.form == "stream" and slot.boundary is not None]
    place = wiring.ids_from or (looks_in[0] if looks_in else None)
    if len(boundaries) != len(training.slots) or place is None or request.draft_data is None:
        return None
    for shift in (1, 0):
        ids = tuple(boundary - shift for boundary in boundaries)
        if ids == wiring.layer_ids:
            continue
        attempt = source.wiring(replace(request, draft_data=with_ids(request.draft_data, place, list(ids))))
        if attempt.slots == training.slots and attempt.status == wiring.status in ("exact", "conditional"):
            return ids
        if attempt.slots == training.slots and attempt.status == "exact":
            return ids
    return None


def mended_option(
    source: ServingEnd, request: ServingRequest, wiring: Wiring, training: Wiring | None
) -> tuple[str, tuple[int, ...]] | None:
    """The option by which an engine is told the layers, and the ids that make it serve what was trained."""
    option = _option_of(source)
    if training is None or option is None or wiring.slots == training.slots:
        return None
    boundaries = [slot.boundary for slot in training.slots if slot.form == "stream" and slot.boundary is not None]
    for shift in (0, 1) if len(boundaries) == len(training.slots) else ():
        ids = tuple(boundary - shift for boundary in boundaries)
        if source.wiring(replace(request, draft_data=None, layer_ids=ids)).slots == training.slots:
            return option, ids
    return None


def _option_of(source: ServingEnd) -> str | None:
    """Where an engine takes layers that it reads in no config."""
    from eaglelint.engines.base import TakesIdsByOption
    from eaglelint.serving import ENGINES, EngineHandle, ProfileHandle

    if isinstance(source, ProfileHandle) and source.profile.by_hand:
        rules = (mapping.rule for mapping in source.profile.mappings if mapping.rule is not None)
        return next((rule.set_name for rule in rules), None)
    engine: object = None
    if isinstance(source, EngineHandle):
        engine = source.engine
    elif isinstance(source, ProfileHandle):
        engine = ENGINES.get(source.profile.engine)
    return engine.ids_option if isinstance(engine, TakesIdsByOption) else None


def _uncaptured(source: ServingEnd, request: ServingRequest, wiring: Wiring) -> tuple[int, ...]:
    """Positions of ids that make no difference to what is served."""
    ids = wiring.layer_ids
    if not isinstance(ids, tuple) or not wiring.slots or len(wiring.slots) >= len(ids) or wiring.ids_from is None:
        return ()
    if request.draft_data is None or len(set(ids)) < len(ids):
        return ()
    lost = []
    for position in range(len(ids)):
        rest = [value for index, value in enumerate(ids) if index != position]
        without = source.wiring(replace(request, draft_data=with_ids(request.draft_data, wiring.ids_from, rest)))
        if without.slots == wiring.slots:
            lost.append(position)
    return tuple(lost)


def with_ids(data: dict[str, Any], place: tuple[str, ...], ids: list[int]) -> dict[str, Any]:
    """A config with these ids at that key path; the original is not changed."""
    key, *rest = place
    if not rest:
        return {**data, key: ids}
    section = data.get(key)
    return {**data, key: with_ids(section if isinstance(section, dict) else {}, tuple(rest), ids)}
