"""Whether an engine registers the class that a draft's config names, read from the engine's source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eaglelint.artifacts.draft import DraftConfig

if TYPE_CHECKING:
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
    """

    engine: str
    names: tuple[str, ...]
    registered: bool
    known: tuple[str, ...]


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
    return DraftClass(handle.source.label, names, any(name in every for name in names), known)
