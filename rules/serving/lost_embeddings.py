"""A worker runs the draft on a prompt without the embeddings that the target made of its images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._messages import joined_with_and
from .._source import related

if TYPE_CHECKING:
    from eaglelint.survey.facts import EngineFacts, LostEmbeddings

__all__ = ["RULE"]

_NAMED = 3


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    if facts.draft is None:
        for engine in facts.engines:
            for case in engine.lost_embeddings:
                yield _finding(rule, engine, case)


def _finding(rule: Rule, engine: EngineFacts, case: LostEmbeddings) -> Finding:
    more = len(case.readers) - _NAMED
    names = joined_with_and([*case.readers[:_NAMED], *([f"{more} more classes"] if more > 0 else [])])
    verb = "reads" if len(case.readers) == 1 else "read"
    though = "" if case.handing is None else f", which {case.handing} does"
    return rule.finding(
        f"{engine.label}: {case.worker} runs the draft on a prompt and does not hand on the embeddings that the target "
        f"made of its images{though}; {names} {verb} {case.name}",
        case.call.span,
        confidence="likely",
        annotation=f"without {case.name}",
        related=(*related("runs", case.forward), *related("reads", case.read), *related("hands on", case.handed)),
        help=f"Hand on {case.name} of the target's answer here, and set it on the batch that the draft is run on.",
        identity=(engine.label, case.worker, case.name),
    )


RULE = Rule(
    "SRV005",
    "lost-embeddings",
    "A worker runs the draft on a prompt without the embeddings of its images.",
    "warning",
    _check,
)
