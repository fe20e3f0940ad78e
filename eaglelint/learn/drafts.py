"""Learn what classes of drafts a release registers, and what each joins, builds and loads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.engines.base import DraftRegistry
from eaglelint.engines.profile import Profile
from eaglelint.engines.profile_drafts import Builds, DraftFacts, Line
from eaglelint.learn.modules import REFERENCE, built_alike, learn_builds, names_for, usual_modules
from eaglelint.recalled_modules import templated
from eaglelint.serving import EngineHandle, open_source
from eaglelint.survey.facts import Place
from eaglelint.survey.join_order import join_of
from eaglelint.survey.norm_stubs import stubs_in

__all__ = ["with_drafts"]

_NAME = "Name"
# What loaders are asked about besides, as other drafts have it: llama_eagle3.py and dflash.py (SGLang 0.5.23).
_ELSEWHERE = (
    *(f"model.fc_norm.{number}" for number in range(3)),
    *(f"model.aux_norm_{place}" for place in ("low", "mid", "high")),
    "model.fc",
    "model.norm",
    "model.input_norm",
    "model.hidden_norm",
    *(f"model.layers.0.{place}_layernorm" for place in ("input", "post_attention")),
    *(f"model.layers.0.{name}" for name in ("hidden_norm", "self_attn.q_norm", "self_attn.k_norm")),
)
_ALIKE = {"eagle3": ("peagle",), "dflash": ("domino",)}


def with_drafts(profile: Profile, handle: EngineHandle, *, processes: int = 2, only: tuple[str, ...] = ()) -> Profile:
    """A profile in which the registry and the classes of drafts were learned anew from the source of its release.

    ``only`` names the classes of drafts of which it is learned what they build, all if left out.
    """
    engine = handle.engine
    if not isinstance(engine, DraftRegistry):
        return profile
    every, drafts = engine.registered(handle.source)
    _, *others = engine.draft_names((_NAME,))
    facts = {name: _facts(handle, engine, name) for name in drafts}
    groups = list(_alike(handle, engine, drafts))
    usual = {path for names, kind in groups for path in usual_modules(handle, names[0], kind)}
    names = names_for(sorted({*usual, *_ELSEWHERE}))
    builds: list[Builds] = []
    asked = [group for group in groups if not only or {*only} & {*group[0]}]
    for found, known in _learned(handle, asked, names, processes):
        for name, kinds in known.items():
            facts[name] = replace(facts[name], builds=dict.fromkeys(kinds, len(builds)))
        builds.append(found)
    return replace(
        profile,
        drafts=facts,
        builds=tuple(builds),
        names=tuple(sorted({templated(name) for name in names})) if builds else (),
        registered=tuple(sorted(every.difference(drafts))),
        prefixes=tuple(name.removesuffix(_NAME) for name in others),
    )


def _facts(handle: EngineHandle, engine: DraftRegistry, name: str) -> DraftFacts:
    binding = engine.draft_binding(handle.source, name)
    if binding is None:
        return DraftFacts()
    join = join_of([binding.module])
    stubs = tuple((stub.cls, _line(stub.gives)) for stub in stubs_in(binding.module, (name,)))
    return DraftFacts(None if join is None else (join.order[0], _line(join.place)), stubs)  # type: ignore[arg-type]


def _line(place: Place) -> Line:
    """The place; paths are shown relative to the package, of which they are parts."""
    return Line(str(place), place.code)


def _alike(handle: EngineHandle, engine: DraftRegistry, drafts: tuple[str, ...]) -> Iterator[tuple[list[str], str]]:
    """The names of drafts that are fed states, those of one class together, with the kind that the names tell."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for name in drafts:
        kind = DraftConfig.parse("", json.dumps({**REFERENCE, "architectures": [name]}).encode()).kind
        binding = engine.draft_binding(handle.source, name)
        if binding is not None and kind not in ("mtp", "unknown"):
            groups.setdefault((binding.module.name, getattr(binding.item, "name", ""), kind), []).append(name)
    for (_, _, known), names in groups.items():
        yield names, known


_Known = tuple[Builds, dict[str, tuple[str, ...]]]


def _learned(
    handle: EngineHandle, groups: list[tuple[list[str], str]], names: tuple[str, ...], processes: int
) -> Iterator[_Known]:
    """What each class builds, and under which names and for which kinds of draft."""
    package = str(handle.source.package)
    asked = [(handle.engine.name, package, group, kind, names) for group, kind in groups]
    if processes < 2 or len(groups) < 2:
        found = map(_group, asked)
        yield from (known for known in found if known is not None)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from (known for known in pool.map(_group, asked) if known is not None)


@cache
def _open(engine: str, package: str) -> EngineHandle:
    return open_source(f"{engine}@{package}", root=Path(package), display_root=Path(package))


def _group(asked: tuple[str, str, list[str], str, tuple[str, ...]]) -> _Known | None:
    engine, package, group, kind, names = asked
    handle, (first, *others) = _open(engine, package), group
    builds = learn_builds(handle, first, kind, names)
    if builds is None:
        return None
    kinds = (kind, *(other for other in _ALIKE.get(kind, ()) if built_alike(handle, first, other, builds, names)))
    same = [name for name in others if built_alike(handle, name, kind, builds, names)]
    return builds, dict.fromkeys((first, *same), kinds)
