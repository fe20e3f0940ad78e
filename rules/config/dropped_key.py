"""A key gets lost on its way: in the exporter that writes the draft's config, or in the engine's adapter of it."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._dropped import dropped
from ._exporter import not_exported

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    yield from not_exported(rule, facts)
    yield from dropped(rule, facts, lambda key: "norm" not in key, "warning")  # those are NRM002's


RULE = Rule(
    code="CFG003",
    name="dropped-key",
    summary="A key gets lost in the trainer's exporter, or in the engine's adapter of the draft's config.",
    severity="warning",
    check=_check,
)
