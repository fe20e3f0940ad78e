"""An engine's start-up calls the setter of the layers to capture without ids, and never with any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

if TYPE_CHECKING:
    from eaglelint.survey.facts import EngineFacts

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    for engine in facts.engines:
        if facts.draft is None or facts.draft.layer_ids:
            yield from _findings(rule, engine)


def _findings(rule: Rule, engine: EngineFacts) -> Iterator[Finding]:
    for place in engine.calls_without_ids:
        yield rule.finding(
            f"{engine.label} calls {engine.setter} without ids, and nowhere in its start-up with any: it captures "
            "its own "
            "default, whatever the draft's config says",
            place.span,
            confidence="likely",
            annotation="no ids",
            help="Read the ids from the draft's config and hand them over.",
            identity=(engine.label, place.code),
        )


RULE = Rule(
    code="CAP006",
    name="setter-without-ids",
    summary="The layers to capture are set without the draft's ids.",
    severity="error",
    check=_check,
)
