"""What is served as a draft is the target itself, or a draft of another kind than the engine is told."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.checkpoint import Checkpoint
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Edit, Finding, Related
from eaglelint.rule import Facts, Rule

from .._edits import set_value
from .._header import stated_by
from .._messages import switched_off

__all__ = ["RULE"]

# Algorithms of SGLang 0.5.23 (spec_info.py) and methods of vLLM 0.33.0 (config/speculative.py), and what they serve.
_KINDS = {
    "eagle": ("eagle", "mtp"),
    "eagle3": ("eagle3", "peagle"),
    "nextn": ("mtp", "eagle"),
    "mtp": ("mtp", "eagle"),
    "dflash": ("dflash", "domino", "dspark"),
    "dspark": ("dspark",),
}
_NAMES = {"eagle3": "EAGLE-3", "eagle": "EAGLE", "peagle": "P-EAGLE", "dflash": "DFlash", "mtp": "MTP"}
_OWN_DRAFTERS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "dspark_target_layer_ids")


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
    told = list(_told(rule, facts, draft))
    if told:
        yield from told
        return
    if draft.kind != "eagle3" or draft.dialect == "speculators" or switched_off(draft):
        return
    full = stated_by(draft, "vocab_size")
    if full is not None and stated_by(draft, "draft_vocab_size") is None:
        yield rule.finding(
            "an EAGLE-3 draft without draft_vocab_size: readers of EAGLE-3 stop at it, and an EAGLE-1 or EAGLE-2 "
            "checkpoint has none",
            draft.key_span("architectures") or draft.key_span("vocab_size") or draft.span(),
            confidence="possible",
            severity="warning",
            help="Write draft_vocab_size, equal to vocab_size for a full vocabulary, or serve the draft as EAGLE.",
            edits=_with_size(draft, facts.checkpoint, full.value),
            identity=("no draft_vocab_size",),
        )


def _with_size(draft: DraftConfig, checkpoint: Checkpoint | None, full: int) -> tuple[Edit, ...]:
    """The size that the checkpoint's head has; without one to look at, that of the whole vocabulary."""
    head = None if checkpoint is None else checkpoint.find("lm_head.weight")
    if head is not None and len(head.shape) == 2:
        edit = set_value(draft.document, ("draft_vocab_size",), head.shape[0], "safe", f"the rows of {head.name}")
    else:
        edit = set_value(draft.document, ("draft_vocab_size",), full, "unsafe", "the whole vocabulary")
    return () if edit is None else (edit,)


def _told(rule: Rule, facts: Facts, draft: DraftConfig) -> Iterator[Finding]:
    """The command that starts the engine names an algorithm of another kind of draft, or no draft."""
    launch = facts.launch
    algorithm = None if launch is None else launch.get("algorithm")
    if launch is None or algorithm is None or algorithm.value is None:
        return
    kinds = _KINDS.get(algorithm.value.lower())
    if kinds is not None and draft.kind not in (*kinds, "unknown"):
        yield rule.finding(
            f"{launch.engine} is told {algorithm.flag} {algorithm.value}, and the draft is a draft of "
            f"{_NAMES.get(draft.kind, draft.kind)} ({draft.kind_reason}): states of other number or width reach it",
            algorithm.span,
            confidence="likely",
            annotation=f"{_NAMES.get(draft.kind, draft.kind)} in {draft.path}",
            related=(Related("draft", f"architectures {list(draft.architectures)}", draft.span("architectures")),),
            help="Name the algorithm of the draft's kind. Where widths differ by accident only, the projection is "
            "skipped without a word and nothing is accepted.",
            identity=("algorithm", algorithm.value.lower(), draft.kind),
        )
    elif kinds is not None and launch.get("draft") is None and not _has_own_drafter_in(facts):
        yield rule.finding(
            f"{launch.engine} is told {algorithm.flag} {algorithm.value} and no draft: it then takes the target for "
            "one, which brings no layers for prediction along",
            algorithm.span,
            confidence="likely",
            help="Name the draft's directory: --speculative-draft-model-path in SGLang, model in vLLM's "
            "--speculative-config.",
            identity=("no draft", algorithm.value.lower()),
        )


def _has_own_drafter_in(facts: Facts) -> bool:
    return facts.target is None or any(facts.target.text_node(key) is not None for key in _OWN_DRAFTERS)


def _has_own_drafter(draft: DraftConfig) -> bool:
    return draft.kind == "mtp" or any(draft.text_node(key) is not None for key in _OWN_DRAFTERS)


RULE = Rule(
    code="CFG005",
    name="wrong-kind",
    summary="What is served as a draft is the target itself, or a draft of another kind than the engine is told.",
    severity="error",
    check=_check,
)
