"""The draft's config ends at fewer positions than the target's."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._edits import replace_value
from .._header import config_row, stated_by, stated_by_target

__all__ = ["RULE"]

_KEY = "max_position_embeddings"


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    if draft is None or draft.embedded or draft.kind in ("unknown", "mtp"):
        return
    own, other = stated_by(draft, _KEY), stated_by_target(facts.target, _KEY)
    node = draft.text_node(_KEY)
    if own is None or other is None or node is None or own.value >= other.value:
        return
    yield rule.finding(
        f"the draft ends at {own.value} positions and the target at {other.value}: beyond the draft's end an engine "
        "reads outside of the table of rotations, unless it extends it by itself",
        own.span,
        confidence="likely",
        annotation=f"the target has {other.value}",
        related=(config_row("target", other),),
        help="Serve no longer contexts than the draft's, or write the target's value: the rotations go on, whether "
        "the draft was trained that far or not.",
        edits=(replace_value(node, other.value, "unsafe", "as many positions as the target has"),),
        identity=(str(own.value), str(other.value)),
    )


RULE = Rule(
    code="ROP003",
    name="short-context",
    summary="The draft's config ends at fewer positions than the target's.",
    severity="warning",
    check=_check,
)
