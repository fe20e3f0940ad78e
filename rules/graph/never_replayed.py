"""An engine records graphs for prefills of the target in a mode in which no prefill of a draft's target runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._messages import joined_with_and
from .._source import related

if TYPE_CHECKING:
    from eaglelint.survey.facts import EngineFacts, RefusedGraphs

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    if facts.draft is None:
        for engine in facts.engines:
            for case in engine.refused_graphs:
                yield _finding(rule, engine, case)


def _finding(rule: Rule, engine: EngineFacts, case: RefusedGraphs) -> Finding:
    modes = joined_with_and(case.lets_in, "or")
    when = "" if case.option is None else f" (back end {case.option})"
    return rule.finding(
        f"{engine.label} records graphs for prefills of an EAGLE-3 target{when}, and {case.runner} lets in batches in "
        f"mode {modes} alone: {case.worker} asks for {case.asks_for}, so that no prefill ever runs on them",
        (case.recorded or case.made).span,
        confidence="likely",
        annotation="recorded in another mode than prefills ask for",
        related=(*related("made", case.made), *related("gate", case.gate), *related("asked", case.asked)),
        help=f"Record them in mode {case.asks_for} for the target of an EAGLE-3 draft, or do not record them for it.",
        identity=(engine.label, case.runner, case.asks_for),
    )


RULE = Rule(
    "GPH002",
    "never-replayed",
    "Graphs are recorded in a mode of keeping states in which no prefill for a draft runs.",
    "warning",
    _check,
)
