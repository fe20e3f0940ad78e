"""Learn what classes of drafts a release registers, and what each does whatever a draft's config says."""

from __future__ import annotations

from dataclasses import replace

from eaglelint.engines.base import DraftRegistry
from eaglelint.engines.profile import DraftFacts, Line, Profile
from eaglelint.serving import EngineHandle
from eaglelint.survey.facts import Place
from eaglelint.survey.join_order import join_of
from eaglelint.survey.norm_stubs import stubs_in

__all__ = ["with_drafts"]

_NAME = "Name"


def with_drafts(profile: Profile, handle: EngineHandle) -> Profile:
    """A profile in which the registry and the classes of drafts were learned anew from the source of its release."""
    engine = handle.engine
    if not isinstance(engine, DraftRegistry):
        return profile
    every, drafts = engine.registered(handle.source)
    _, *others = engine.draft_names((_NAME,))
    return replace(
        profile,
        drafts={name: _facts(handle, engine, name) for name in drafts},
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
