"""Whether an engine registers the class that a draft's config names, read from the engine's source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.survey.facts import Join

if TYPE_CHECKING:
    from eaglelint.engines.base import DraftRegistry
    from eaglelint.serving import EngineHandle

__all__ = ["DraftClass", "draft_class"]


@dataclass(frozen=True, slots=True)
class DraftClass:
    """What one engine makes of a draft's ``architectures``.

    Attributes:
        engine: The engine and its release, ``vllm 0.33.0``.
        names: The names under which it looks for the class, the config's own first.
        registered: Whether it finds one of them.
        known: The classes of drafts that it registers.
        join: In which order the class joins the token's embedding and the hidden state; None where that is not plain.
    """

    engine: str
    names: tuple[str, ...]
    registered: bool
    known: tuple[str, ...]
    join: Join | None = None


def draft_class(handle: EngineHandle, draft: DraftConfig) -> DraftClass | None:
    """Look the draft's class up; ``None`` where the config names none, or the source registers no draft at all."""
    if not draft.architectures or draft.dialect == "speculators" or draft.embedded:
        return None
    from eaglelint.engines.base import DraftRegistry

    engine = handle.engine
    if not isinstance(engine, DraftRegistry):
        return None
    every, known = engine.registered(handle.source)
    if not known:
        return None
    names = engine.draft_names(draft.architectures)
    found = [name for name in names if name in every]
    join = handle.source.remember("draft's join", (vars(engine), found[:1]), lambda: _join(handle, engine, found))
    return DraftClass(handle.source.label, names, bool(found), known, join)


def _join(handle: EngineHandle, engine: DraftRegistry, names: list[str]) -> Join | None:
    from eaglelint.survey.join_order import join_of

    binding = engine.draft_binding(handle.source, names[0]) if names else None
    return None if binding is None else join_of([binding.module])
