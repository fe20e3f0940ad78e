"""Each rank of a tensor-parallel group decides for itself whether the draft borrows a module of the target's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._source import ranks, related

if TYPE_CHECKING:
    from eaglelint.survey.facts import EngineFacts, SharedByWeight

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    for engine in facts.engines:
        for case in engine.shared_by_weight:
            if facts.draft is None or _concerned(facts, engine, case):
                yield _finding(rule, engine.label, case)


def _concerned(facts: Facts, engine: EngineFacts, case: SharedByWeight) -> bool:
    """Whether the draft has such a module of its own, and the command serves it on several ranks."""
    own = facts.checkpoint is not None and facts.checkpoint.name_of(f"{case.module}.weight") is not None
    return own and ranks(facts, engine) > 1


def _finding(rule: Rule, engine: str, case: SharedByWeight) -> Finding:
    return rule.finding(
        f"each tensor-parallel rank of {engine} compares its own slice of the draft's {case.module} with the target's, "
        "and nothing makes the ranks agree: where the two differ in some rows only, one rank borrows the target's and "
        "another keeps the draft's",
        case.comparison.span,
        confidence="likely",
        annotation="compared on each rank",
        related=related("replaced", case.replaced),
        help="Let the ranks agree before one acts (all_reduce with MIN over the group); until then serve such a draft "
        f"on one rank, or leave {case.module} out of its checkpoint where it equals the target's.",
        identity=(engine, case.module, case.comparison.code),
    )


RULE = Rule(
    code="PAR003",
    name="unagreed-sharing",
    summary="Tensor-parallel ranks decide each for itself whether the draft shares a module with the target.",
    severity="warning",
    check=_check,
)
