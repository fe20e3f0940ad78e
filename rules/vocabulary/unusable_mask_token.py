"""The token that marks places to be filled is missing, outside of the vocabulary, or in use."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._header import Stated, config_row, stated_by, stated_by_target
from .._messages import DFLASH_FAMILY

__all__ = ["RULE"]

_KEYS = ("mask_token_id", "ptd_token_id", "pard_token", "dspark_noise_token_id")
# Names of tokens that tokenizers keep free, and of those that are there for this.
_FREE = re.compile(r"reserv|unused|mask|extra|placeholder|pad|dummy|noise", re.IGNORECASE)
_SECTIONS = ((), ("dflash_config",), ("eagle_config",), ("transformer_layer_config",), ("text_config",))


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    if draft is None or draft.embedded or draft.kind not in DFLASH_FAMILY | {"peagle", "eagle3"}:
        return
    stated = [
        Stated(".".join((*section, key)), node.value, node.span)
        for key in _KEYS
        for section in _SECTIONS
        if (node := draft.node(*section, key)) is not None and type(node.value) is int
    ]
    if not stated:
        yield from _missing(rule, facts)
        return
    full = stated_by(draft, "vocab_size") or stated_by_target(facts.target, "vocab_size")
    for token in stated:
        if token.value < 0 or (full is not None and token.value >= full.value):
            yield rule.finding(
                f"{token.key} {token.value} is no token: the vocabulary has "
                + (f"{full.value}" if full is not None else "none below 0"),
                token.span,
                confidence="certain",
                related=() if full is None else (config_row("vocabulary", full),),
                help="Write the id that the draft was trained with; it indexes the embedding.",
                identity=("outside", token.key, str(token.value)),
            )
            return
    first, *others = stated
    differing = next((token for token in others if token.value != first.value), None)
    if differing is not None:
        yield rule.finding(
            f"{first.key} is {first.value} and {differing.key} is {differing.value}: which one counts depends on the "
            "engine",
            differing.span,
            confidence="likely",
            severity="warning",
            related=(config_row("beside", first),),
            help="Write the id that the draft was trained with in both places.",
            identity=("two", first.key, differing.key),
        )
    yield from _in_use(rule, facts, first)


def _missing(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    assert draft is not None
    named = any(draft.node(*section, "mask_token") is not None for section in _SECTIONS)
    needs = draft.kind in DFLASH_FAMILY or (draft.kind == "peagle" and draft.dialect == "speculators")
    if named or not needs:
        return
    yield rule.finding(
        "the config names no mask_token_id: a draft that fills places in parallel is fed this token in each of them, "
        "and engines stop without it or guess one",
        draft.key_span("dflash_config") or draft.key_span("architectures") or draft.span(),
        confidence="likely",
        help="Write the id that the draft was trained with, in dflash_config or at the top level.",
        identity=("missing",),
    )


def _in_use(rule: Rule, facts: Facts, token: Stated) -> Iterator[Finding]:
    for tokenizer in (facts.tokenizer, facts.target_tokenizer):
        content = None if tokenizer is None else tokenizer.added.get(token.value)
        if content is None:
            continue
        assert tokenizer is not None
        free = _FREE.search(content) is not None
        yield rule.finding(
            f"{token.key} {token.value} is {content} of the tokenizer"
            + (", a token that is kept free" if free else ", which may occur in a text"),
            token.span,
            confidence="possible" if free else "likely",
            severity="note" if free else "warning",
            annotation=f"{content} in {tokenizer.path}",
            help="Check that training and serving use the same id, and that no text contains it.",
            identity=("in use", token.key, str(token.value)),
        )
        return


RULE = Rule(
    code="VOC005",
    name="unusable-mask-token",
    summary="The mask token is missing, outside of the vocabulary, or in use.",
    severity="error",
    check=_check,
)
