"""What the bundled releases would feed a draft whose engine nobody named: the newest of each, from profiles alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.artifacts.target import TargetConfig
from eaglelint.engines.profile import Profile
from eaglelint.engines.profile_file import bundled_servers, bundled_versions
from eaglelint.engines.profile_part import bundled_part, bundled_registry
from eaglelint.engines.recall import class_in, names_asked, recall, registers, resolve, takes_ids_at
from eaglelint.rule import Served
from eaglelint.serving_end import ids_places
from eaglelint.wiring import Wiring, compare

__all__ = ["registered_elsewhere", "served_elsewhere"]


def served_elsewhere(
    draft: DraftConfig, kind: str, target: TargetConfig | None, target_class: str | None = None
) -> tuple[Served, ...]:
    """What each engine's newest bundled release feeds the draft, and older ones that read the same ids otherwise.

    Engines that do not serve the target's class are left out. Without a target only where each looks for ids is known.
    """
    names = () if target is None else (*target.architectures, *target.text_architectures)
    names = (target_class,) if target_class else names
    return tuple(served for engine in bundled_servers() for served in _releases(engine, draft, kind, target, names))


def registered_elsewhere(draft: DraftConfig) -> tuple[tuple[str, bool], ...]:
    """Whether each engine's newest bundled release registers the class that the draft names, where that was learned."""
    if not draft.names_a_class:
        return ()
    newest = (bundled_registry(engine, bundled_versions(engine)[-1]) for engine in bundled_servers())
    return tuple(
        (profile.label, any(registers(profile, name) for name in names_asked(profile, draft.architectures)))
        for profile in newest
        if profile.drafts
    )


def _releases(
    engine: str, draft: DraftConfig, kind: str, target: TargetConfig | None, names: tuple[str, ...]
) -> Iterator[Served]:
    *older, newest = bundled_versions(engine)
    served = _served(bundled_part(engine, newest, names, kind), draft, kind, target, names)
    if served is None:
        return
    yield served
    for version in reversed(older) if _reads(served.wiring) else ():
        other = _served(bundled_part(engine, version, names, kind), draft, kind, target, names)
        if other is not None and _reads(other.wiring) and compare(served.wiring, other.wiring):
            yield other


def _reads(wiring: Wiring) -> bool:
    """Whether ids of the config were taken, and what became of all of them is known."""
    return isinstance(wiring.layer_ids, tuple) and bool(wiring.slots) and all(slot.known for slot in wiring.slots)


def _served(
    profile: Profile, draft: DraftConfig, kind: str, target: TargetConfig | None, names: tuple[str, ...]
) -> Served | None:
    wiring = _unserved(profile, draft, kind) if target is None else _wiring(profile, draft, kind, target, names)
    if wiring is None:
        return None
    looks_in: tuple[tuple[str, ...], ...] = ()
    if wiring.layer_ids == "default":
        wiring = replace(wiring, ignored=tuple(found.key_path for found in draft.layer_ids))
        if draft.layer_ids:
            looks_in = ids_places(draft, lambda place: takes_ids_at(profile, kind, draft.data, place))
    return Served(wiring, looks_in)


def _wiring(
    profile: Profile, draft: DraftConfig, kind: str, target: TargetConfig, names: tuple[str, ...]
) -> Wiring | None:
    cls = next((found for name in names if (found := class_in(profile, name)) is not None), None)
    return None if cls is None else recall(profile, cls, kind, target.num_layers, draft_data=draft.data)


def _unserved(profile: Profile, draft: DraftConfig, kind: str) -> Wiring | None:
    """From where an engine takes ids, for whatever target; None where that is not known."""
    leaf = resolve(profile, kind, draft.data)
    if leaf.takes not in ("ids", "default"):
        return None
    ids = draft.ids_at(*leaf.source) if leaf.takes == "ids" else None
    known: dict[str, Any] = (
        {"layer_ids": "default"} if ids is None else {"layer_ids": ids.values, "ids_from": ids.key_path}
    )
    return Wiring(
        "serving",
        profile.label,
        (),
        "unknown",
        engine=profile.engine,
        engine_version=profile.version,
        draft_kind=kind,
        reason="the target is not known",
        **known,
    )
