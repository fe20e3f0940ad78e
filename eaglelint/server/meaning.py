"""What each layer id of a draft's config means to each engine that serves it: for hints, hovers and lenses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from eaglelint.artifacts.draft import DraftLayerIds
from eaglelint.finding import Span
from eaglelint.rule import Facts, Served
from eaglelint.wiring import Slot, Wiring

__all__ = ["IdMeaning", "ListMeaning", "list_meanings"]


@dataclass(frozen=True, slots=True)
class IdMeaning:
    """One id, and the state that each engine serves for it; ``None`` where that is not known or none is served."""

    span: Span
    value: int
    served: tuple[tuple[str, Slot | None], ...]

    @property
    def label(self) -> str:
        """``h[3]``, or ``h[3] | h[2]`` where engines differ; empty where nothing is known."""
        states = dict.fromkeys(str(slot) for _, slot in self.served if slot is not None)
        return " | ".join(states)

    @property
    def sentences(self) -> tuple[str, ...]:
        """A sentence for each engine."""
        return tuple(
            f"{engine} serves {slot.describe()} for it" if slot is not None else f"{engine}: not known"
            for engine, slot in self.served
        )


@dataclass(frozen=True, slots=True)
class ListMeaning:
    """One list of ids: its key, its ids, and the whole wirings at both ends."""

    key_span: Span
    ids: tuple[IdMeaning, ...]
    trained: Wiring | None
    served: tuple[Wiring, ...]

    @property
    def summary(self) -> str:
        """``trained on h[3] ⊕ h[31] · served h[0] ⊕ h[3] by sglang 0.5.9``."""
        parts = [f"trained on {self.trained}"] if self.trained is not None else []
        by_wiring: dict[str, list[str]] = {}
        for wiring in self.served:
            by_wiring.setdefault(str(wiring), []).append(_engine(wiring))
        parts += [f"served {wiring} by {', '.join(engines)}" for wiring, engines in by_wiring.items()]
        return " · ".join(parts)


def list_meanings(all_facts: Iterable[Facts]) -> tuple[ListMeaning, ...]:
    """The lists of a draft that an engine reads."""
    found: dict[tuple[str, ...], ListMeaning] = {}
    for facts in all_facts:
        if facts.draft is None:
            continue
        for ids in facts.draft.layer_ids:
            readers = [served for served in facts.servings if served.wiring.ids_from == ids.key_path]
            if readers and ids.key_path not in found:
                found[ids.key_path] = ListMeaning(
                    ids.key_span, _meanings(ids, readers), facts.training, tuple(served.wiring for served in readers)
                )
    return tuple(found.values())


def _meanings(ids: DraftLayerIds, readers: Sequence[Served]) -> tuple[IdMeaning, ...]:
    columns = [(_engine(served.wiring), _by_position(ids.values, served)) for served in readers]
    return tuple(
        IdMeaning(span, value, tuple((engine, slots.get(position)) for engine, slots in columns))
        for position, (value, span) in enumerate(zip(ids.values, ids.item_spans, strict=True))
    )


def _by_position(values: Sequence[int], served: Served) -> dict[int, Slot]:
    """Which id leads to which slot, where it can be told: each id has its own, in the order of the list."""
    wiring = served.wiring
    positions = [position for position in range(len(values)) if position not in served.uncaptured]
    kept = [values[position] for position in positions]
    ascending = all(left < right for left, right in pairwise(kept))
    if wiring.status == "unknown" or not ascending or len(kept) != len(wiring.slots):
        return {}
    return {position: slot for position, slot in zip(positions, wiring.slots, strict=True) if slot.known}


def _engine(wiring: Wiring) -> str:
    return f"{wiring.engine} {wiring.engine_version}" if wiring.engine_version else str(wiring.engine)
