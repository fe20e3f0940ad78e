"""Texts with numbers in them are sorted as texts, and what belongs together is matched by their order."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._training import row

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    for sort in facts.practice.sorts if facts.practice is not None else ():
        yield rule.finding(
            f"{sort.made.code} has a number that is not padded, and {sort.sorted.code} sorts it as text: 10 comes "
            "before 2, and from the eleventh on states are matched with other samples",
            sort.sorted.span,
            confidence="likely",
            annotation="the order of texts",
            related=row("named", sort.made),
            help="Sort by the number (key=...), or write it with leading zeros.",
            identity=(sort.made.code, sort.sorted.code),
        )


RULE = Rule(
    code="TRN004",
    name="sorted-as-text",
    summary="Samples are matched by an order in which 10 comes before 2.",
    severity="error",
    check=_check,
)
