"""What stands in for a draft's final norm gives the state that it is handed without the residual."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._messages import joined_with_and

if TYPE_CHECKING:
    from eaglelint.survey.facts import NormStub

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    if facts.draft is None:
        found = [(engine.label, stub) for engine in facts.engines for stub in engine.norm_stubs]
    else:
        found = [(cls.engine, stub) for cls in facts.draft_classes for stub in cls.norm_stubs]
    for engine, stub in found:
        yield _finding(rule, engine, stub)


def _finding(rule: Rule, engine: str, stub: NormStub) -> Finding:
    names = joined_with_and(stub.drafts)
    return rule.finding(
        f"{stub.cls} stands in for the final norm of {names} and drops the residual: the draft's output is that of its "
        "last branch alone",
        stub.gives.span,
        confidence="likely",
        annotation="without the residual",
        help="Return the sum of the two, which is what the norm would have normalised.",
        identity=(engine, stub.cls, names),
    )


RULE = Rule(
    code="VAL004",
    name="stub-without-residual",
    summary="What stands in for a draft's final norm drops the residual.",
    severity="warning",
    check=_check,
)
