"""The config ties a head of the reduced vocabulary to an embedding of the whole one."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._edits import replace_value
from .._header import config_row, stated_by

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    tied = None if draft is None else draft.text_node("tie_word_embeddings")
    if draft is None or tied is None or tied.value is not True:
        return
    small, full = stated_by(draft, "draft_vocab_size"), stated_by(draft, "vocab_size")
    if small is None or full is None or small.value == full.value:
        return
    yield rule.finding(
        f"tie_word_embeddings makes one tensor of an lm_head for {small.value} tokens and an embedding of {full.value}",
        tied.span,
        confidence="certain",
        annotation="the two have other sizes",
        related=(config_row("draft", small), config_row("draft", full)),
        help="Write false: a draft with a vocabulary of its own has a head of its own.",
        edits=(replace_value(tied, False, "safe", "a head of its own"),),
        identity=(str(small.value), str(full.value)),
    )


RULE = Rule(
    code="WGT004",
    name="tied-reduced-vocabulary",
    summary="The head of a reduced vocabulary is tied to the whole embedding.",
    severity="error",
    check=_check,
)
