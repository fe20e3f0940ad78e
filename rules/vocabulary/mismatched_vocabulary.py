"""Draft and target count their tokens differently, or a head or embedding has other rows than the config says."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Edit, Finding
from eaglelint.rule import Facts, Rule

from .._edits import replace_value
from .._header import Stated, config_row, stated_by, stated_by_target, tensor_row

__all__ = ["RULE"]

# A vocabulary is padded for the sake of kernels, by less than this.
_MOST_PADDING = 1024


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    if draft is None or draft.embedded:
        return
    full, small = stated_by(draft, "vocab_size"), stated_by(draft, "draft_vocab_size")
    other = stated_by_target(facts.target, "vocab_size")
    if full is not None and other is not None and full.value != other.value:
        yield _against_target(rule, draft, full, small, other)
    yield from _rows(rule, facts, full, small)


def _against_target(rule: Rule, draft: DraftConfig, full: Stated, small: Stated | None, other: Stated) -> Finding:
    near = abs(full.value - other.value) <= _MOST_PADDING
    is_draft_size = small is not None and small.value == full.value < other.value and not near
    message = f"vocab_size is {full.value}, and the target has {other.value} tokens"
    if is_draft_size:
        message += f": {full.value} may be the size of the draft's own vocabulary, which is draft_vocab_size"
    elif near:
        message += ": one of them is padded, and what indexes one with tokens of the other goes out of bounds"
    node = draft.text_node("vocab_size")
    assert node is not None
    edits: tuple[Edit, ...] = ()
    if is_draft_size or near:
        edits = (replace_value(node, other.value, "unsafe", "the target's vocab_size"),)
    return rule.finding(
        message,
        full.span,
        confidence="likely" if near else "certain",
        severity="warning" if near else "error",
        annotation=f"the target has {other.value}",
        related=(config_row("target", other),),
        help="vocab_size is the target's, and draft_vocab_size the number of tokens that the draft can propose."
        if is_draft_size or near
        else "Check that draft and target were made for the same tokenizer.",
        edits=edits,
        identity=(str(full.value), str(other.value)),
    )


def _rows(rule: Rule, facts: Facts, full: Stated | None, small: Stated | None) -> Iterator[Finding]:
    if facts.checkpoint is None:
        return
    for name, stated in (("lm_head.weight", small or full), ("embed_tokens.weight", full)):
        tensor = facts.checkpoint.find(name)
        if stated is None or tensor is None or not tensor.is_plain or len(tensor.shape) != 2:
            continue
        if tensor.shape[0] != stated.value:
            yield rule.finding(
                f"{tensor.name} has {tensor.shape[0]} rows, and {stated.key} is {stated.value}",
                stated.span,
                confidence="certain",
                annotation=f"{tensor.shape[0]} rows in the checkpoint",
                related=(tensor_row(tensor),),
                help="Write the size that the draft was trained with."
                + (
                    " Without draft_vocab_size the head is taken to have all tokens of the target."
                    if name.startswith("lm_head") and small is None
                    else ""
                ),
                identity=(name, str(tensor.shape[0]), str(stated.value)),
            )


RULE = Rule(
    code="VOC003",
    name="mismatched-vocabulary",
    summary="Draft, target and checkpoint count the tokens of the vocabulary differently.",
    severity="error",
    check=_check,
)
