"""What is served as a draft is the target itself, or a draft of another kind than its config needs to be."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._header import stated_by
from .._messages import switched_off

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    if draft is None or draft.embedded:
        return
    if facts.target is not None and facts.target.path == draft.path and not _has_own_drafter(draft):
        yield rule.finding(
            "draft and target are the same model: the engine loads the target twice and drafts with it",
            draft.key_span("architectures") or draft.span(),
            confidence="certain",
            help="Name the draft's own directory. Only a model that brings layers for prediction along is its own "
            "draft.",
            identity=("same",),
        )
        return
    if draft.kind != "eagle3" or draft.dialect == "speculators" or switched_off(draft):
        return
    if stated_by(draft, "vocab_size") is not None and stated_by(draft, "draft_vocab_size") is None:
        yield rule.finding(
            "an EAGLE-3 draft without draft_vocab_size: readers of EAGLE-3 stop at it, and an EAGLE-1 or EAGLE-2 "
            "checkpoint has none",
            draft.key_span("architectures") or draft.key_span("vocab_size") or draft.span(),
            confidence="possible",
            severity="warning",
            help="Write draft_vocab_size, equal to vocab_size for a full vocabulary, or serve the draft as EAGLE.",
            identity=("no draft_vocab_size",),
        )


def _has_own_drafter(draft: DraftConfig) -> bool:
    keys = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "dspark_target_layer_ids")
    return draft.kind == "mtp" or any(draft.text_node(key) is not None for key in keys)


RULE = Rule(
    code="CFG005",
    name="wrong-kind",
    summary="What is served as a draft is the target itself, or a draft of another kind.",
    severity="error",
    check=_check,
)
