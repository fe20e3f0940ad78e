"""The draft's checkpoint lacks a tensor that nobody else can provide."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.checkpoint import Checkpoint
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._header import layers_of, state_counts, stated_by, target_width
from .._messages import joined_with_and, switched_off, takes_auxiliary_states

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, checkpoint = facts.draft, facts.checkpoint
    if draft is None or checkpoint is None or not checkpoint.complete or draft.kind in ("unknown", "mtp"):
        return
    missing = list(_missing(facts, draft, checkpoint))
    if not missing:
        return
    names = [name for name, _ in missing]
    yield rule.finding(
        f"{checkpoint.path} has no {joined_with_and(names, 'and no')}: {'; '.join(why for _, why in missing)}",
        draft.key_span("architectures") or draft.span(),
        confidence="certain",
        annotation=f"{len(checkpoint.tensors)} tensors in the checkpoint",
        help="Save the checkpoint with all of the draft's own weights.",
        identity=("missing", *names),
    )


def _missing(facts: Facts, draft: DraftConfig, checkpoint: Checkpoint) -> Iterator[tuple[str, str]]:
    if not layers_of(checkpoint):
        yield "decoder layer", "a draft has at least one of its own"
    if takes_auxiliary_states(draft) and not switched_off(draft) and not _has(checkpoint, "fc"):
        width = target_width(draft, facts.target) or stated_by(draft, "hidden_size")
        own = stated_by(draft, "hidden_size")
        joined = [] if width is None else [count * width.value for count, _, _ in state_counts(draft)]
        # DSpark and its kin name the projection otherwise; where the widths are equal, engines skip it.
        if draft.kind in ("eagle3", "peagle") and (own is None or own.value not in joined):
            yield "fc.weight", "without it the captured states do not reach the draft"
    small, full = stated_by(draft, "draft_vocab_size"), stated_by(draft, "vocab_size")
    if small is not None and full is not None and small.value != full.value and not _has(checkpoint, "lm_head"):
        yield (
            "lm_head.weight",
            f"the draft's vocabulary has {small.value} of {full.value} tokens, so the target's head cannot stand in",
        )


def _has(checkpoint: Checkpoint, module: str) -> bool:
    """Whether there is a module of this name, whatever its weights are called once they are quantised."""
    return any(module in name.split(".") for name in checkpoint.names)


RULE = Rule(
    code="WGT001",
    name="missing-weights",
    summary="The draft's checkpoint lacks weights that nobody else can provide.",
    severity="error",
    check=_check,
)
