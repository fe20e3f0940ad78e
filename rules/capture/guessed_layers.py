"""A draft's config does not say which layers it was trained on, so that each engine guesses."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Finding, Severity, Span
from eaglelint.rule import Facts, Rule, Served
from eaglelint.wiring import compare

from .._edits import insert_ids
from .._messages import (
    DFLASH_FAMILY,
    all_known,
    any_known,
    confidence_of,
    engine_of,
    identity_of,
    key_phrase,
    served_rows,
    takes_auxiliary_states,
)

__all__ = ["RULE"]

# Where the widest-read key of each family belongs: SGLang 0.5.9 and 0.5.23, SpecForge 0.2.0, z-lab DFlash.
_USUAL_KEY_PATHS = {
    True: ("dflash_config", "target_layer_ids"),
    False: ("eagle_config", "eagle_aux_hidden_state_layer_ids"),
}


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    if draft is None or draft.layer_ids or not takes_auxiliary_states(draft):
        return
    is_dflash = draft.kind in DFLASH_FAMILY
    severity: Severity = "error" if is_dflash else "warning"
    what = f"the config of this {'DFlash-family' if is_dflash else 'EAGLE-3'} draft holds no layer ids"
    if draft.malformed_ids:
        wrong = draft.malformed_ids[0]
        what += f" ({key_phrase(wrong.key_path)} is {wrong.reason})"
    span = _place(draft, is_dflash)
    known = [served for served in facts.servings if any_known(served.wiring) or _stops(served)]
    if not known:
        yield rule.finding(
            f"{what}, so every engine guesses its own default list",
            span,
            confidence="likely" if is_dflash else "possible",
            severity=severity,
            help=f"Write the ids that the draft was trained on, usually in {key_phrase(_USUAL_KEY_PATHS[is_dflash])}.",
            identity=("no ids",),
        )
    for served in known:
        if not _is_proven_right(facts, served):
            yield _guess(rule, facts, draft, served, what, span, severity)


def _guess(
    rule: Rule, facts: Facts, draft: DraftConfig, served: Served, what: str, span: Span, severity: Severity
) -> Finding:
    wiring, engine = served.wiring, engine_of(served.wiring)
    if wiring.slots:
        message = f"{what}, so {engine} guesses: it serves its default {wiring}"
    else:
        fault = wiring.faults[0]
        message = f"{what}, and {engine} stops without them at {fault.path}:{fault.line}: {fault.message}"
    where = served.looks_in[0] if served.looks_in else _USUAL_KEY_PATHS[draft.kind in DFLASH_FAMILY]
    edit = None
    if served.mended_ids is not None:
        text = f"{'.'.join(where)} = {list(served.mended_ids)}, ids that {engine} turns into {facts.training}"
        edit = insert_ids(draft, where, served.mended_ids, "display" if len(facts.servings) > 1 else "unsafe", text)
    return rule.finding(
        message,
        span,
        confidence=confidence_of(wiring) if wiring.slots else "likely",
        severity=severity,
        annotation=f"{engine} looks for {key_phrase(where)}" if served.looks_in else "",
        related=served_rows(wiring),
        help=f"Write the ids that the draft was trained on in {key_phrase(where)}."
        + (
            " A default is right for the drafts that it was written for, and wrong in silence for all others."
            if wiring.slots
            else ""
        ),
        edits=() if edit is None else (edit,),
        identity=identity_of(("no ids",), wiring),
    )


def _stops(served: Served) -> bool:
    return any(fault.path for fault in served.wiring.faults)


def _is_proven_right(facts: Facts, served: Served) -> bool:
    """Whether the default is exactly what was trained: a guess that is known to be right does no harm."""
    training = facts.training
    return (
        training is not None
        and all_known(training)
        and all_known(served.wiring)
        and not compare(training, served.wiring)
    )


def _place(draft: DraftConfig, is_dflash: bool) -> Span:
    """An empty value under the usual key, else the section that ought to hold one, else the file's start."""
    if draft.malformed_ids:
        return draft.malformed_ids[0].span
    section, key = _USUAL_KEY_PATHS[is_dflash]
    for path in ((section, key), (key,)):
        node = draft.node(*path)
        if node is not None:
            return node.span
    return draft.key_span(section) or draft.span()


RULE = Rule(
    code="CAP001",
    name="guessed-layers",
    summary="The draft's config holds no layer ids, so that each engine guesses its own.",
    severity="warning",
    check=_check,
)
