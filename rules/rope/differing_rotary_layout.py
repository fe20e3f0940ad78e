"""The draft was trained with other numbers of a head turned together than the engine turns."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._training import row

__all__ = ["RULE"]

_MEANS = {"half-split": "one number of each half of a head", "interleaved": "two neighbours"}


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    trained = facts.trained_rotary
    if facts.draft is None or trained is None:
        return
    for cls in facts.draft_classes:
        served = cls.rotary
        if served is None or served.layout == trained.layout:
            continue
        yield rule.finding(
            f"the training code turns {_MEANS[trained.layout]} together ({trained.layout}), and {cls.engine} turns "
            f"{_MEANS[served.layout]} ({served.layout}): queries and keys lie otherwise than they were trained",
            trained.place.span,
            confidence="likely",
            annotation=trained.layout,
            related=row("served", served.place),
            help="Train with the engine's layout, or permute the rows of q_proj and k_proj when the draft is saved.",
            identity=(cls.engine, trained.layout, served.layout),
        )


RULE = Rule(
    code="ROP005",
    name="differing-rotary-layout",
    summary="The draft was trained with other numbers of a head turned together than the engine turns.",
    severity="error",
    check=_check,
)
