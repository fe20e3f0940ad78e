"""Draft and target were made for different tokenizers."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding, Related, Span
from eaglelint.rule import Facts, Rule

__all__ = ["RULE"]

# Tokens that one of two releases of a tokenizer has more are no reason to refuse it.
_FEW = 0.02


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, pair = facts.draft, facts.tokenizers
    if draft is None or pair is None or draft.embedded:
        return
    apart = max(pair.sizes) - pair.common
    if not pair.moved and apart <= _FEW * max(pair.sizes):
        return
    if pair.example is not None:
        token, own, other = pair.example
        message = (
            f"the draft's tokenizer is not the target's: {pair.moved} of {pair.common} tokens that both know have "
            f"other ids, such as {token!r}, {own} in the draft's and {other} in the target's"
        )
    else:
        message = (
            f"the draft's tokenizer is not the target's: of {pair.sizes[0]} and {pair.sizes[1]} tokens "
            f"{pair.common} are the same"
        )
    yield rule.finding(
        message,
        draft.key_span("vocab_size") or draft.key_span("architectures") or draft.span(),
        confidence="certain" if pair.moved else "likely",
        severity="error" if pair.moved else "warning",
        related=(
            Related("draft", f"{pair.sizes[0]} tokens", Span.at(pair.draft, 1)),
            Related("target", f"{pair.sizes[1]} tokens", Span.at(pair.target, 1)),
        ),
        help="Take a draft that was trained for this target's tokenizer: ids are passed on as they are.",
        identity=(str(pair.moved), str(pair.common)),
    )


RULE = Rule(
    code="VOC006",
    name="different-tokenizers",
    summary="Draft and target were made for different tokenizers.",
    severity="error",
    check=_check,
)
