"""Training code hands positions to a rotary embedding that counts by itself."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    if facts.draft is None:
        return
    for place in facts.uncounted_positions:
        name = place.code.partition(":")[0]
        yield rule.finding(
            f"{name} is not read: this rotary embedding counts from 0 whatever it is handed, so "
            "that a later step of the draft, and a sequence that does not begin at 0, is turned as if it did",
            place.span,
            confidence="likely",
            annotation="never read",
            help="Turn by the positions that are handed in, as the engine does.",
            identity=("positions", name),
        )


RULE = Rule(
    code="ROP006",
    name="uncounted-positions",
    summary="Training code hands positions to a rotary embedding that counts by itself.",
    severity="warning",
    check=_check,
)
