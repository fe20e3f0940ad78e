"""An engine joins captured states that one of its paths has left None: the request that takes it stops the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

if TYPE_CHECKING:
    from eaglelint.survey.facts import EngineFacts, JoinedWhileNone

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    if facts.draft is None:
        for engine in facts.engines:
            for case in engine.joined_while_none:
                yield _finding(rule, engine, case)


def _finding(rule: Rule, engine: EngineFacts, case: JoinedWhileNone) -> Finding:
    when = " and ".join(case.conditions)
    path = case.place.span.path
    return rule.finding(
        f"{engine.label} joins {case.name} here, which is still None when {when}",
        case.place.span,
        confidence="likely",
        annotation=f"{case.name} may be None",
        help=f"Fill {case.name} on that path too, or refuse the request there with a sentence. "
        f"Its way: eaglelint trace {case.name} {path}",
        identity=(engine.label, case.function, case.name),
    )


RULE = Rule(
    "GPH003",
    "joined-while-none",
    "Captured states are joined on a path on which they are still None.",
    "warning",
    _check,
)
