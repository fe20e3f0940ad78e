"""A draft with a reduced vocabulary has no map to the target's tokens, or one of another size."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.checkpoint import Checkpoint
from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._header import Stated, config_row, stated_by, stated_by_target, tensor_row

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, checkpoint = facts.draft, facts.checkpoint
    if draft is None or draft.embedded:
        return
    small = stated_by(draft, "draft_vocab_size")
    full = stated_by(draft, "vocab_size") or stated_by_target(facts.target, "vocab_size")
    if small is None or full is None:
        return
    if small.value > full.value:
        yield rule.finding(
            f"draft_vocab_size {small.value} is larger than the vocabulary of {full.value} that it is a part of",
            small.span,
            confidence="certain",
            related=(config_row("vocabulary", full),),
            help="Write the number of rows of the draft's lm_head.",
            identity=("larger", str(small.value), str(full.value)),
        )
        return
    if checkpoint is None:
        return
    lengths = list(_lengths(rule, checkpoint, small, full))
    yield from lengths
    absent = checkpoint.name_of("d2t") is None
    if small.value < full.value and absent and checkpoint.complete and checkpoint.names:
        yield rule.finding(
            f"the draft has {small.value} of {full.value} tokens, and its checkpoint no d2t: engines then take draft "
            f"token k for target token k",
            small.span,
            confidence="certain",
            annotation="no d2t in the checkpoint",
            related=(config_row("vocabulary", full),),
            help="Save d2t (int64 offsets, one for each draft token) and t2d (a mask over the target's tokens) with "
            "the weights, not in a file beside them.",
            identity=("no d2t", str(small.value), str(full.value)),
        )


def _lengths(rule: Rule, checkpoint: Checkpoint, small: Stated, full: Stated) -> Iterator[Finding]:
    for name, stated in (("d2t", small), ("t2d", full)):
        tensor = checkpoint.find(name)
        if tensor is None or tensor.numel == stated.value:
            continue
        yield rule.finding(
            f"{name} has {tensor.numel} entries, and {stated.key} is {stated.value}",
            stated.span,
            confidence="certain",
            annotation=f"{tensor.numel} entries in the checkpoint",
            related=(tensor_row(tensor),),
            help="The map was made for another vocabulary: save the one that the draft was trained with.",
            identity=(name, str(tensor.numel), str(stated.value)),
        )


RULE = Rule(
    code="VOC001",
    name="missing-vocabulary-map",
    summary="A reduced vocabulary has no map to the target's tokens, or one of another size.",
    severity="error",
    check=_check,
)
