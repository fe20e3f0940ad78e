"""A state is captured before the ranks of a tensor-parallel group have added up their shares of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._messages import joined_with_and
from .._source import ranks, related

if TYPE_CHECKING:
    from eaglelint.survey.facts import UnreducedCapture

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    for engine in facts.engines:
        if facts.draft is not None and ranks(facts, engine) < 2:
            continue
        places: dict[tuple[str, int], list[UnreducedCapture]] = {}
        for case in engine.unreduced:
            places.setdefault((case.capture.span.path, case.capture.span.start.line), []).append(case)
        for group in places.values():
            yield _finding(rule, engine.label, group)


def _finding(rule: Rule, engine: str, group: list[UnreducedCapture]) -> Finding:
    case = group[0]
    names = joined_with_and(dict.fromkeys(one.cls for one in group))
    return rule.finding(
        f"{names} captures the sum before the next layer's norm, and with several tensor-parallel ranks a layer may "
        f"leave its all-reduce to that norm ({case.mark}): what is captured is one rank's share of the layer's output",
        case.capture.span,
        confidence="likely",
        annotation="may be one rank's share",
        related=related("put off", case.mark),
        help="Capture behind the norm that adds up and reduces, or reduce what is marked before it is captured; until "
        "then serve such a target without all-reduce fusion.",
        identity=(engine, names),
    )


RULE = Rule(
    code="VAL003",
    name="unreduced-capture",
    summary="A state is captured while its sum over tensor-parallel ranks is still to come.",
    severity="warning",
    check=_check,
)
