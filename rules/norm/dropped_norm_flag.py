"""The engine's adapter of the draft's config loses a flag that decides where the draft's class norms."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._dropped import dropped

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    yield from dropped(rule, facts, lambda key: "norm" in key, "error")


RULE = Rule(
    code="NRM002",
    name="dropped-norm-flag",
    summary="A flag that decides where the draft norms gets lost in the engine's adapter of its config.",
    severity="warning",
    check=_check,
)
