"""What several rules say and ask: engines and key paths by name, the lines that a wiring rests on, how sure it is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import takewhile

from eaglelint.artifacts.draft import DraftConfig, DraftLayerIds
from eaglelint.finding import Confidence, Related, Span
from eaglelint.wiring import Evidence, Wiring

__all__ = [
    "DFLASH_FAMILY",
    "all_known",
    "any_known",
    "captured_at",
    "confidence_of",
    "engine_of",
    "identity_of",
    "ids_read_by",
    "joined_with_and",
    "key_phrase",
    "served_rows",
    "setter_of",
    "switched_off",
    "takes_auxiliary_states",
    "trained_row",
    "version_order",
]

DFLASH_FAMILY = frozenset({"dflash", "dspark", "domino"})
_AUXILIARY_KINDS = DFLASH_FAMILY | {"eagle3", "peagle"}


def takes_auxiliary_states(draft: DraftConfig) -> bool:
    """Whether the draft is of a kind whose ``fc`` takes captured states, and does not say otherwise."""
    return draft.kind in _AUXILIARY_KINDS and not switched_off(draft)


def switched_off(draft: DraftConfig) -> bool:
    """Whether ``use_aux_hidden_state`` is false: such a draft takes the last state alone, and its ids mean nothing."""
    holders = (draft.data, draft.data.get("eagle_config"))
    return any(isinstance(holder, dict) and holder.get("use_aux_hidden_state") is False for holder in holders)


def ids_read_by(draft: DraftConfig, wiring: Wiring) -> DraftLayerIds | None:
    """The list in the draft's config that an engine took its ids from; ``None`` where it took its default."""
    if not isinstance(wiring.layer_ids, tuple):
        return None
    if wiring.ids_from is not None:
        return draft.ids_at(*wiring.ids_from)
    return next((ids for ids in draft.layer_ids if ids.values == wiring.layer_ids), None)


def engine_of(wiring: Wiring) -> str:
    """The engine and its release, ``sglang 0.5.9``."""
    return wiring.name.removesuffix(f" ({wiring.target_class})") if wiring.target_class else wiring.name


def key_phrase(key_path: Iterable[str]) -> str:
    """A key path for a sentence: ``target_layer_ids at the top level``, ``dflash_config.target_layer_ids``."""
    keys = tuple(key_path)
    return f"{keys[0]} at the top level" if len(keys) == 1 else ".".join(keys)


def joined_with_and(words: Iterable[str], last: str = "and") -> str:
    *first, final = words
    return f"{', '.join(first)} {last} {final}" if first else final


def identity_of(key_path: Iterable[str], wiring: Wiring, *more: str) -> tuple[str, ...]:
    """What makes a finding itself: the key path, the engine with its release, the slots; no line numbers."""
    return (".".join(key_path), engine_of(wiring), str(wiring), *more)


def all_known(wiring: Wiring) -> bool:
    return bool(wiring.slots) and all(slot.known for slot in wiring.slots)


def any_known(wiring: Wiring) -> bool:
    """Whether the wiring tells anything; where all is unknown, even the number of slots means nothing."""
    return any(slot.known for slot in wiring.slots)


def confidence_of(*wirings: Wiring) -> Confidence:
    """How sure a statement is that rests on all of these wirings."""
    if all(wiring.status == "exact" for wiring in wirings):
        return "certain"
    return "possible" if any(wiring.status == "unknown" for wiring in wirings) else "likely"


def version_order(wiring: Wiring) -> tuple[int, ...]:
    """Sorts releases of one engine, the oldest first."""
    return tuple(int(number) for number in re.findall(r"\d+", wiring.engine_version or ""))


def setter_of(wiring: Wiring) -> Evidence | None:
    """The line that decides which layers are captured; it stands before those that speak of one slot."""
    return next(takewhile(lambda item: item.slot is None, wiring.evidence), None)


def captured_at(wiring: Wiring, slot: int) -> Evidence | None:
    """The line that captures one slot, the innermost where the collector is handed on."""
    return next((item for item in reversed(wiring.evidence) if item.slot == slot), None)


def trained_row(training: Wiring) -> tuple[Related, ...]:
    """The line that tells most of what was trained; none where the convention was declared."""
    telling = setter_of(training) or next(iter(training.evidence), None)
    return () if telling is None else (_row("trained", telling, training),)


def served_rows(wiring: Wiring, slot: int | None = None) -> tuple[Related, ...]:
    """Where an engine decides on the layers, captures the slot in question, and joins the states."""
    setter = setter_of(wiring)
    rows = [] if setter is None else [_row("served", setter, wiring)]
    capture = None if slot is None else captured_at(wiring, slot)
    if capture is not None:
        rows.append(_row("captured", capture))
    last = wiring.evidence[-1] if wiring.evidence else None
    if slot is not None and last is not None and last.slot is None and last is not setter:
        rows.append(_row("joined", last))
    return tuple(rows)


def _row(label: str, item: Evidence, wiring: Wiring | None = None) -> Related:
    message = item.note if wiring is None else f"{item.note}  ->  {wiring}".lstrip()
    return Related(label, message, Span.at(item.path, item.line))
