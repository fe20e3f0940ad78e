"""The engine's own check refuses this kind of draft for the target, whatever the draft is."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding, Span
from eaglelint.rule import Facts, Rule

from .._source import related

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    target = facts.target
    for served in facts.servings if target is not None else ():
        refusal, engine = served.refusal, served.wiring.name.partition(" (")[0]
        if refusal is None or target is None:
            continue
        node = target.text_node("model_type")
        span = target.span("num_hidden_layers") if node is None else node.span
        name = f"{node.value} targets" if node is not None else "this target"
        yield rule.finding(
            f"{engine} takes no {served.wiring.draft_kind} draft for {name}; it stops at start-up: {refusal.message}",
            span or Span.at(target.path, 1),
            confidence="certain",
            annotation="not on the engine's list",
            related=related("refused", refusal.place),
            help="Serve with a release that takes drafts for this target; the list grows, and some releases have none.",
            identity=(engine, refusal.place.code),
        )


RULE = Rule(
    code="SRV004",
    name="refused-target",
    summary="The engine's own check refuses this kind of draft for the target.",
    severity="error",
    check=_check,
)
