"""A flag that should decide on what is fed back decides on whether logits are made of a normed state."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    if facts.draft is None or facts.practice is None:
        return
    seen = set()
    for head in facts.practice.uneven:
        if head.place in seen:
            continue
        seen.add(head.place)
        yield rule.finding(
            f"{head.condition} the draft's logits are made of its output without the final norm, and with it "
            "otherwise: engines norm before the head in any case",
            head.place.span,
            confidence="likely",
            annotation="normed on one path only",
            help="Norm what the head is given on every path; only what is fed back may depend on the flag "
            "(norm_output).",
            identity=("uneven", head.place.code, head.condition),
        )


RULE = Rule(
    code="NRM005",
    name="uneven-norms",
    summary="The draft's logits are made with the final norm on one path and without it on another.",
    severity="error",
    check=_check,
)
