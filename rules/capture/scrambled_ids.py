"""Ids that stand twice, out of order or below zero, so that fc meets other states than the list says."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.draft import DraftConfig, DraftLayerIds
from eaglelint.finding import Finding, Related, Severity
from eaglelint.rule import Facts, Rule, Served
from eaglelint.wiring import Wiring, compare

from .._edits import mended_list, replace_ids
from .._messages import (
    all_known,
    any_known,
    confidence_of,
    engine_of,
    identity_of,
    ids_read_by,
    joined_with_and,
    served_rows,
    switched_off,
)

__all__ = ["RULE"]

# Here -1 has a meaning of its own: the final normed state (TensorRT-LLM's EAGLE-3 options).
_MINUS_ONE_MEANS_FINAL = "eagle3_layers_to_capture"


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    if draft is None or switched_off(draft):
        return
    read = [
        (served, ids)
        for served in facts.servings
        if _is_followed(served.wiring) and (ids := ids_read_by(draft, served.wiring)) is not None
    ]
    for served, ids in read:
        yield from _repeated_when_served(rule, facts, served, ids)
        yield from _reordered(rule, facts, draft, served, ids)
    if not any(_is_followed(served.wiring) for served in facts.servings):
        for ids in draft.layer_ids:
            yield from _unserved(rule, facts.training, draft, ids)


def _is_followed(wiring: Wiring) -> bool:
    return any_known(wiring) or bool(wiring.faults)


def _repeated_when_served(rule: Rule, facts: Facts, served: Served, ids: DraftLayerIds) -> Iterator[Finding]:
    wiring, engine = served.wiring, engine_of(served.wiring)
    shrinks = bool(wiring.slots) and len(wiring.slots) < len(ids.values)
    fault = next((fault for fault in wiring.faults if fault.path), None)
    if not wiring.slots and fault is None:
        return
    training = facts.training
    if training is not None and all_known(training) and all_known(wiring) and not compare(training, wiring):
        return
    for layer_id, positions in _repeated(ids):
        edit = mended_list(facts, served)
        confidence = confidence_of(wiring)
        severity: Severity = "error" if shrinks and confidence == "certain" else "warning"
        if not wiring.slots and fault is not None:
            confidence, severity = "likely", "error"
            what = f"{engine} stops at {fault.path}:{fault.line}"
        elif shrinks:
            what = (
                f"{engine} captures {len(wiring.slots)} states for {len(ids.values)} ids, and fc is as wide as the ids"
            )
        else:
            what = f"{engine} feeds one state twice"
        yield rule.finding(
            f"id {layer_id} stands at positions {joined_with_and(map(str, positions))}: {what}",
            ids.item_spans[positions[1]],
            confidence=confidence,
            severity=severity,
            annotation=f"already at position {positions[0]}",
            related=served_rows(wiring),
            help="Write each id once, and as many as fc was trained on.",
            edits=() if edit is None else (edit,),
            identity=identity_of(ids.key_path, wiring, f"id {layer_id}"),
        )


def _reordered(rule: Rule, facts: Facts, draft: DraftConfig, served: Served, ids: DraftLayerIds) -> Iterator[Finding]:
    """The list has an order of its own, and the engine captures in the order of the layers."""
    wiring, engine, training = served.wiring, engine_of(served.wiring), facts.training
    boundaries = [slot.boundary for slot in wiring.slots if slot.boundary is not None]
    if _ascending(ids.values) or len(boundaries) < 2 or boundaries != sorted(boundaries):
        return
    if training is not None and training.slots and not compare(training, wiring):
        return
    edit = mended_list(facts, served)
    if edit is None:
        text = "the same ids in the order in which this engine captures them"
        edit = replace_ids(draft, ids, sorted(ids.values), "unsafe", text)
    yield rule.finding(
        f"ids {list(ids.values)} do not ascend, and {engine} captures in the order of the layers: fc gets {wiring}",
        ids.span,
        confidence="likely" if all_known(wiring) else "possible",
        severity="warning",
        annotation=f"order lost in {wiring.name}",
        related=served_rows(wiring, 0),
        help="If the draft was trained on states in the order of this list, the columns of fc meet the wrong ones.\n"
        "If it was trained in the order of the layers, write the ids in that order.",
        edits=(edit,),
        identity=identity_of(ids.key_path, wiring, "order"),
    )


def _unserved(rule: Rule, training: Wiring | None, draft: DraftConfig, ids: DraftLayerIds) -> Iterator[Finding]:
    """What the list alone tells, where no engine's reading of it is known."""
    key = ".".join(ids.key_path)
    for layer_id, positions in _repeated(ids):
        yield rule.finding(
            f"id {layer_id} stands at positions {joined_with_and(map(str, positions))}: "
            "engines capture a state once, and fc is as wide as the ids",
            ids.item_spans[positions[1]],
            confidence="likely",
            severity="warning",
            annotation=f"already at position {positions[0]}",
            related=(Related("first", f"id {layer_id}", ids.item_spans[positions[0]]),),
            help="Write each id once, and as many as fc was trained on.",
            identity=(key, f"id {layer_id} repeated"),
        )
    if not _ascending(ids.values) and not _trained_in_order_of_layers(training):
        text = "the same ids in the order in which most engines capture them"
        yield rule.finding(
            f"ids {list(ids.values)} do not ascend, and most engines capture in the order of the layers",
            ids.span,
            confidence="possible",
            severity="warning",
            help="If the draft was trained on states in the order of this list, the columns of fc meet the wrong ones.",
            edits=(replace_ids(draft, ids, sorted(ids.values), "unsafe", text),),
            identity=(key, "order"),
        )
    if -1 in ids.values and ids.key_path[-1] != _MINUS_ONE_MEANS_FINAL:
        yield rule.finding(
            "id -1 is the embedding where ids count layer outputs, and the last state or nothing elsewhere",
            ids.item_spans[ids.values.index(-1)],
            confidence="possible",
            severity="warning",
            help="Name the engine with --serving to see what it makes of it.",
            identity=(key, "id -1"),
        )


def _repeated(ids: DraftLayerIds) -> Iterator[tuple[int, list[int]]]:
    """Each id that stands more than once, with its positions."""
    for layer_id in dict.fromkeys(ids.values):
        positions = [index for index, value in enumerate(ids.values) if value == layer_id]
        if len(positions) > 1:
            yield layer_id, positions


def _ascending(values: tuple[int, ...]) -> bool:
    return list(values) == sorted(values)


def _trained_in_order_of_layers(training: Wiring | None) -> bool:
    if training is None or not all_known(training) or training.declared:
        return False
    boundaries = [slot.boundary for slot in training.slots if slot.boundary is not None]
    return boundaries == sorted(boundaries)


RULE = Rule(
    code="CAP004",
    name="scrambled-ids",
    summary="Layer ids repeat, do not ascend or are negative, so that fc meets other states than the list says.",
    severity="warning",
    check=_check,
)
