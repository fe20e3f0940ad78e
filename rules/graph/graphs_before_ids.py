"""An engine records its graphs before it hands the model the ids, and replays other layers than were asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding, Severity
from eaglelint.rule import Facts, Rule

from .._messages import ids_read_by
from .._source import related

if TYPE_CHECKING:
    from eaglelint.survey.facts import EngineFacts, GraphsBeforeIds

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    # Whether a draft is served with graphs, its files do not say: the engine's order is wrong, the draft is not.
    for engine in facts.engines:
        if facts.draft is None or _has_its_own_ids(facts, engine):
            for case in engine.graphs_before_ids:
                yield _finding(rule, engine, case, "error" if facts.draft is None else "warning")


def _has_its_own_ids(facts: Facts, engine: EngineFacts) -> bool:
    """Whether the draft's ids are read: without them the engine's default is recorded, and served."""
    assert facts.draft is not None
    return any(
        served.wiring.name.startswith(engine.label) and ids_read_by(facts.draft, served.wiring) is not None
        for served in facts.servings
    )


def _finding(rule: Rule, engine: EngineFacts, case: GraphsBeforeIds, severity: Severity) -> Finding:
    recorded = "with the default layers" if case.with_defaults else "with whatever layers are set by then"
    return rule.finding(
        f"{engine.label} records its graphs here, {recorded}, and hands the model the draft's layer ids only at "
        f"{case.ids}: what is replayed captures other states than what runs without a graph",
        case.start.span,
        confidence="likely",
        severity=severity,
        annotation="graphs are recorded here",
        related=(*related("ids", case.ids), *related("defaults", case.with_defaults), *related("record", case.record)),
        help="Hand the model its ids before the graphs are recorded; serve without graphs (--disable-cuda-graph) until "
        "then, unless the ids are the engine's own default.",
        identity=(engine.label, case.start.code),
    )


RULE = Rule(
    "GPH001",
    "graphs-before-ids",
    "Graphs of the target are recorded before it is handed the draft's layer ids.",
    "error",
    _check,
)
