"""A draft is served other hidden states than it was trained on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from eaglelint.artifacts.draft import DraftConfig, DraftLayerIds
from eaglelint.finding import Confidence, Finding, Related, Severity, Span
from eaglelint.rule import Facts, Rule, Served
from eaglelint.wiring import Mismatch, Wiring, compare

from .._edits import mended_list, rivals_of
from .._messages import (
    all_known,
    any_known,
    confidence_of,
    engine_of,
    identity_of,
    ids_read_by,
    joined_with_and,
    key_phrase,
    served_rows,
    setter_of,
    switched_off,
    trained_row,
    version_order,
)

__all__ = ["RULE"]

_MOST_SLOTS_SHOWN = 12


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, training = facts.draft, facts.training
    if draft is None or switched_off(draft):
        return
    if training is None or not any_known(training):
        yield from _disagreement(rule, draft, facts.servings)
        return
    for served in facts.servings:
        mismatches = _proven(training, served.wiring)
        if mismatches and not _only_lacks_the_uncaptured(training, served):
            yield _mismatch(rule, facts, draft, training, served, mismatches)


def _mismatch(
    rule: Rule, facts: Facts, draft: DraftConfig, training: Wiring, served: Served, mismatches: tuple[Mismatch, ...]
) -> Finding:
    wiring = served.wiring
    ids = ids_read_by(draft, wiring)
    first = mismatches[0]
    confidence = _confidence(training, wiring)
    guessed = training.inferred and confidence != "certain"
    message = "by the config alone, " * guessed + "; ".join(map(_sentence, mismatches))
    if len(training.slots) != len(wiring.slots):
        message += f" (trained on {len(training.slots)} states, served {len(wiring.slots)})"
    other = _other_release(facts, wiring)
    related = trained_row(training) + served_rows(wiring, first.index)
    if other is not None:
        older, newer = sorted((wiring, other), key=version_order)
        message += (
            f". The same ids mean {_meaning(older)} and {_meaning(newer)}: the config changes meaning with the upgrade"
        )
        related = trained_row(training) + served_rows(wiring) + served_rows(other)
    edit = mended_list(facts, served)
    severity: Severity = "warning" if guessed or confidence == "possible" else "error"
    state = "nothing" if first.served is None else str(first.served)
    return rule.finding(
        message,
        _place(draft, wiring, ids, first.index),
        confidence=confidence,
        severity=severity,
        annotation=f"{state} in {wiring.name}",
        related=related,
        help=_help(facts, training, served, mismatches, ids),
        edits=() if edit is None else (edit,),
        identity=identity_of(ids.key_path if ids else ("default",), wiring, str(training)),
    )


def _proven(training: Wiring, wiring: Wiring) -> tuple[Mismatch, ...]:
    """The slots that differ; where a wiring is not known for sure, its number of slots proves nothing."""
    if not any_known(wiring):
        return ()
    counted = all(end.status != "unknown" or end.faults for end in (training, wiring))
    mismatches = compare(training, wiring)
    return mismatches if counted else tuple(m for m in mismatches if m.trained is not None and m.served is not None)


def _sentence(mismatch: Mismatch) -> str:
    if mismatch.served is None:
        assert mismatch.trained is not None
        return f"slot {mismatch.index} was trained on {mismatch.trained.describe()} and is served nothing"
    if mismatch.trained is None:
        return f"slot {mismatch.index} is served {mismatch.served.describe()} and was not trained"
    return (
        f"slot {mismatch.index} was trained on {mismatch.trained.describe()} and is served {mismatch.served.describe()}"
    )


def _confidence(training: Wiring, wiring: Wiring) -> Confidence:
    # A slot at which the code would stop leaves the others as proven as they were.
    if wiring.status == "unknown" and wiring.faults and training.status != "unknown":
        return "likely"
    return confidence_of(training, wiring)


def _place(draft: DraftConfig, wiring: Wiring, ids: DraftLayerIds | None, slot: int) -> Span:
    """The id of the slot where one can be named, else the list; the file's start where the config has none."""
    if ids is None:
        ignored = next((draft.ids_at(*path) for path in wiring.ignored), None)
        unread = ignored or next(iter(draft.layer_ids), None)
        return draft.span() if unread is None else unread.span
    in_order = all(left < right for left, right in zip(ids.values, ids.values[1:], strict=False))
    return ids.item_spans[slot] if in_order and slot < len(ids.values) else ids.span


def _help(
    facts: Facts, training: Wiring, served: Served, mismatches: tuple[Mismatch, ...], ids: DraftLayerIds | None
) -> str:
    engine = engine_of(served.wiring)
    lines = []
    shift = _shift(training, served.wiring, mismatches)
    if shift is not None:
        distance = "one layer" if abs(shift) == 1 else f"{abs(shift)} layers"
        lines.append(f"Every slot is served {distance} too {'late' if shift > 0 else 'early'}.")
    if training.inferred:
        lines.append(f"What was trained is {training.name}{_conditions(training)}. Say it with --trained-by.")
    elif training.declared:
        lines.append(f"What was trained was not read but declared: {training.name.removeprefix('declared: ')}.")
    mended = None if served.mended_ids is None else list(served.mended_ids)
    rivals = rivals_of(facts, served)
    if rivals:
        engines = joined_with_and(sorted({engine, *(engine_of(rival.wiring) for rival in rivals)}))
        lines.append(
            f"No one list serves {'both ' if len(rivals) == 1 else ''}{engines}: choose the engine and the version "
            "that"
            f" serve this draft; {engine} needs {mended}."
        )
    elif mended is None:
        rest = f": change the engine, or train on {served.wiring}" if all_known(served.wiring) else ""
        lines.append(f"No ids were found with which {engine} serves {training}{rest}.")
    elif ids is None:
        where = f" in {key_phrase(served.looks_in[0])}" if served.looks_in else " where it looks for ids"
        lines.append(f"Write {mended}{where}: ids that {engine} turns into {training}.")
    else:
        lines.append(f"Write {mended}: ids that {engine} turns into {training}.")
        if training.declared and not training.inferred:
            lines.append("The list then no longer counts as declared: drop or change the declaration with it.")
    for condition in served.wiring.conditions[:2]:
        short = condition.slots is not None and 0 < len(condition.slots) <= _MOST_SLOTS_SHOWN
        slots = f", {' ⊕ '.join(map(str, condition.slots or ()))}" if short else ""
        lines.append(f"It is served otherwise {condition.text}{slots}.")
    return "\n".join(lines)


def _conditions(training: Wiring) -> str:
    return "".join(f", {condition.text}" for condition in training.conditions)


def _shift(training: Wiring, wiring: Wiring, mismatches: tuple[Mismatch, ...]) -> int | None:
    """By how many layers all slots alike are served too late; ``None`` where they differ in another way."""
    if len(mismatches) != len(training.slots) or len(training.slots) != len(wiring.slots):
        return None
    distances = {
        right.boundary - left.boundary
        for left, right in zip(training.slots, wiring.slots, strict=True)
        if left.boundary is not None and right.boundary is not None and left.form == right.form
    }
    return distances.pop() if len(distances) == 1 else None


def _other_release(facts: Facts, wiring: Wiring) -> Wiring | None:
    """Another release of the same engine that makes something else of the same ids."""
    for other in (served.wiring for served in facts.servings):
        if (
            isinstance(wiring.layer_ids, tuple)
            and (other.engine, other.layer_ids) == (wiring.engine, wiring.layer_ids)
            and other.engine_version != wiring.engine_version
            and all_known(other)
            and compare(other, wiring)
        ):
            return other
    return None


def _meaning(wiring: Wiring) -> str:
    setter = setter_of(wiring)
    return f"{wiring} in {engine_of(wiring)}" + ("" if setter is None else f" ({setter})")


def _only_lacks_the_uncaptured(training: Wiring, served: Served) -> bool:
    """Whether all that is wrong are states that never reach the draft, which is CAP003's to say."""
    kept = tuple(slot for index, slot in enumerate(training.slots) if index not in served.uncaptured)
    return bool(served.uncaptured) and kept == served.wiring.slots


def _disagreement(rule: Rule, draft: DraftConfig, servings: tuple[Served, ...]) -> Iterator[Finding]:
    """Engines that feed the draft different states, of which at most one can be right."""
    # An engine that overlooks the ids is CFG001's to report; that it serves other states follows from that.
    read = [
        served.wiring
        for served in servings
        if any_known(served.wiring) and not (served.wiring.layer_ids == "default" and draft.layer_ids)
    ]
    differing = [wiring for wiring in read if any(_proven(wiring, other) for other in read)]
    if not differing:
        return
    ordered = sorted(differing, key=lambda wiring: (wiring.engine or "", version_order(wiring)))
    ids = next((ids for ids in (ids_read_by(draft, wiring) for wiring in ordered) if ids is not None), None)
    subject = "the same ids mean" if ids is not None else "the config holds no ids, and the defaults are"
    message = f"{subject} {joined_with_and(map(_meaning, ordered))}"
    if any(_is_upgrade(left, right) for left, right in combinations(ordered, 2)):
        message += ": the config changes meaning with the upgrade"
    related: tuple[Related, ...] = ()
    for wiring in ordered:
        related += served_rows(wiring)
    yield rule.finding(
        f"{message}; which of them the draft was trained for is not known",
        draft.span() if ids is None else ids.span,
        confidence="likely" if all(map(all_known, ordered)) else "possible",
        severity="warning",
        related=related[:4],
        help="Say what the draft was trained on: pass --training with the training code, or --trained-by.",
        identity=(
            ".".join(ids.key_path) if ids else "default",
            *(f"{engine_of(wiring)} {wiring}" for wiring in ordered),
        ),
    )


def _is_upgrade(left: Wiring, right: Wiring) -> bool:
    return (
        left.engine == right.engine
        and left.engine_version != right.engine_version
        and left.layer_ids == right.layer_ids
        and bool(compare(left, right))
    )


RULE = Rule(
    code="CAP002",
    name="boundary-mismatch",
    summary="A slot of the draft is served another hidden state than it was trained on.",
    severity="error",
    check=_check,
)
