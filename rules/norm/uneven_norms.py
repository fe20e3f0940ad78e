"""A state is normed on one path and not on another: what the draft's head reads, or what its steps are handed."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from ._uneven_in_source import uneven_steps

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    yield from uneven_steps(rule, facts)
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
    summary="A norm on one path and none on another: before the draft's head, or between its steps.",
    severity="error",
    check=_check,
)
