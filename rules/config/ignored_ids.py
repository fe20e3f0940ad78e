"""The draft's config holds layer ids at a place where the engine never looks, so that it serves its default."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.draft import DraftConfig, DraftLayerIds
from eaglelint.finding import Edit, Finding, Safety, Severity
from eaglelint.rule import Facts, Rule, Served
from eaglelint.wiring import Wiring, compare

from .._edits import insert_ids
from .._messages import (
    all_known,
    any_known,
    confidence_of,
    engine_of,
    identity_of,
    joined_with_and,
    key_phrase,
    served_rows,
    switched_off,
    trained_row,
)
from ._rival_readers import rival_readers

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    if draft is None:
        yield from rival_readers(rule, facts)
        return
    if switched_off(draft):
        return
    for served in facts.servings:
        # Where no slot is known, nothing is known of what was looked for either.
        if served.wiring.layer_ids != "default" or not any_known(served.wiring):
            continue
        unread = _unread(draft, served)
        if unread:
            yield _ignored(rule, facts, draft, served, unread)


def _unread(draft: DraftConfig, served: Served) -> tuple[DraftLayerIds, ...]:
    """The lists in the config, the most likely one first; none where the engine looks at one of their places."""
    if any(ids.key_path in served.looks_in for ids in draft.layer_ids):
        return ()
    wanted = {path[-1] for path in served.looks_in}
    return tuple(sorted(draft.layer_ids, key=lambda ids: ids.key_path[-1] not in wanted))


def _ignored(
    rule: Rule, facts: Facts, draft: DraftConfig, served: Served, unread: tuple[DraftLayerIds, ...]
) -> Finding:
    wiring, engine, training = served.wiring, engine_of(served.wiring), facts.training
    if training is not None and (not all_known(training) or (training.inferred and training.status != "exact")):
        training = None
    ids = unread[0]
    places = joined_with_and((key_phrase(path) for path in served.looks_in), "or") if served.looks_in else ""
    looks = f"it looks in {places}, finds nothing there" if places else "it finds no ids"
    message = (
        f"{joined_with_and(key_phrase(item.key_path) for item in unread)}"
        f" {'is' if len(unread) == 1 else 'are'} never read by {engine}: {looks} and serves its default {wiring}"
    )
    confidence = confidence_of(wiring)
    severity: Severity = "warning" if confidence == "possible" else "error"
    if training is not None:
        if compare(training, wiring):
            message += f", not {training} as trained"
        else:
            severity = "warning"
            message += ", which happens to be what was trained"
    elif (reading := _reading_that_agrees(unread, wiring)) is not None:
        severity = "warning"
        message += f", which happens to be what {reading}"
    edit = _edit(facts, draft, served, ids)
    return rule.finding(
        message,
        ids.key_span,
        confidence=confidence,
        severity=severity,
        annotation=f"{engine} looks in {places}" if places else f"never read by {engine}",
        related=(*(() if training is None else trained_row(training)), *served_rows(wiring)),
        help=_help(served, ids),
        edits=() if edit is None else (edit,),
        identity=identity_of(ids.key_path, wiring, str(list(ids.values))),
    )


def _reading_that_agrees(unread: tuple[DraftLayerIds, ...], wiring: Wiring) -> str | None:
    """How the ids would have to be counted for the default to be right; the ids alone do not tell whether they "
    "are."""
    boundaries = tuple(slot.boundary if slot.form == "stream" else None for slot in wiring.slots)
    for ids in unread:
        if ids.values == boundaries:
            return f"{list(ids.values)} means where ids count boundaries"
        if tuple(value + 1 for value in ids.values) == boundaries:
            return f"{list(ids.values)} means where ids count layer outputs"
    return None


def _help(served: Served, ids: DraftLayerIds) -> str | None:
    if not served.looks_in:
        if served.option is not None:
            return f"Start it with {served.option[0]} {list(served.option[1])}."
        return "Serve with an engine that reads the draft's ids."
    place = key_phrase(served.looks_in[0])
    if served.mended_ids is not None:
        return f"Write {list(served.mended_ids)} in {place}."
    return (
        f"Write the ids in {place}, counted as {engine_of(served.wiring)} counts them there: "
        f"whether {list(ids.values)} is counted so is not known."
    )


def _edit(facts: Facts, draft: DraftConfig, served: Served, ids: DraftLayerIds) -> Edit | None:
    """The list at the place where the engine looks first; by hand where its meaning there is not known."""
    if not served.looks_in:
        return None
    place = served.looks_in[0]
    engine = engine_of(served.wiring)
    if served.mended_ids is None:
        text = f"{'.'.join(place)} = {list(ids.values)}, if the ids are counted as {engine} counts them there"
        return insert_ids(draft, place, ids.values, "display", text)
    safety: Safety = "display" if len(facts.servings) > 1 else "unsafe"
    text = f"{'.'.join(place)} = {list(served.mended_ids)}, ids that {engine} turns into {facts.training}"
    return insert_ids(draft, place, served.mended_ids, safety, text)


RULE = Rule(
    code="CFG001",
    name="ignored-ids",
    summary="Layer ids stand in the config where the engine never looks.",
    severity="error",
    check=_check,
)
