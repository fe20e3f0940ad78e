"""The engine's adapter of the draft's config loses a key that the draft's class reads."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._dropped import dropped

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    yield from dropped(rule, facts, lambda key: "norm" not in key, "warning")  # those are NRM002's


RULE = Rule(
    code="CFG003",
    name="dropped-key",
    summary="A key that the draft's class reads gets lost in the engine's adapter of its config.",
    severity="warning",
    check=_check,
)
