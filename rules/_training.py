"""What rules over training code share: which kinds of draft pair ids with states how, and rows for places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Related

from ._messages import DFLASH_FAMILY

if TYPE_CHECKING:
    from eaglelint.survey.facts import Place

__all__ = ["distance", "row"]

# The draft is fed h_t beside token t + 1 and predicts token t + 2: SafeAILab EAGLE, SpecForge 0.2.0, speculators 0.9.0.
_EAGLE_FAMILY = frozenset({"eagle", "eagle3", "peagle"})


def distance(draft: DraftConfig) -> int | None:
    """By how many tokens ids are ahead of the states that they are fed with; None where the kind does not say."""
    if draft.kind in _EAGLE_FAMILY:
        return 1
    # A block draft is fed states and tokens of the same places: z-lab DFlash, speculators 0.9.0 (models/dflash).
    return 0 if draft.kind in DFLASH_FAMILY else None


def row(label: str, place: Place | None) -> tuple[Related, ...]:
    """A row for a place in code; none where there is none."""
    return () if place is None else (Related(label, place.code, place.span),)
