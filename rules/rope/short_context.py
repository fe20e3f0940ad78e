"""The draft's config ends at fewer positions than are served."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.artifacts.document import Node
from eaglelint.finding import Finding, Related
from eaglelint.rule import Facts, Rule

from .._edits import replace_value
from .._header import Stated, config_row, stated_by, stated_by_target

if TYPE_CHECKING:
    from eaglelint.artifacts.launch import LaunchOption

__all__ = ["RULE"]

_KEY = "max_position_embeddings"
_BEYOND = (
    "beyond the draft's end an engine reads outside of the table of rotations, unless it extends the table by itself"
)
_HELP = (
    "Serve no longer contexts than the draft's, or raise max_position_embeddings: the rotations go on, whether the "
    "draft was trained that far or not."
)


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    if draft is None or draft.embedded or draft.kind in ("unknown", "mtp"):
        return
    own, other = stated_by(draft, _KEY), stated_by_target(facts.target, _KEY)
    asked = None if facts.launch is None else facts.launch.get("context_length")
    length = None if asked is None else asked.number
    if own is None or (node := draft.text_node(_KEY)) is None:
        return
    if asked is not None and length is not None:
        if own.value < length:
            yield _asked(rule, own, node, asked, length)
    elif other is not None and own.value < other.value:
        yield rule.finding(
            f"the draft ends at {own.value} positions and the target at {other.value}: {_BEYOND}",
            own.span,
            confidence="likely",
            annotation=f"the target has {other.value}",
            related=(config_row("target", other),),
            help=_HELP,
            edits=(replace_value(node, other.value, "unsafe", "as many positions as the target has"),),
            identity=(str(own.value), str(other.value)),
        )


def _asked(rule: Rule, own: Stated, node: Node, asked: LaunchOption, length: int) -> Finding:
    """A context that the command asks for, which may go beyond both configs."""
    return rule.finding(
        f"the draft ends at {own.value} positions, and {asked.flag} {asked.value} serves {length}: {_BEYOND}",
        own.span,
        confidence="likely",
        annotation=f"{length} are served",
        related=(Related("launch", f"{asked.flag} {asked.value}", asked.span),),
        help=_HELP,
        edits=(replace_value(node, length, "unsafe", "as many positions as are served"),),
        identity=(str(own.value), "launch", str(length)),
    )


RULE = Rule(
    code="ROP003",
    name="short-context",
    summary="The draft's config ends at fewer positions than are served.",
    severity="warning",
    check=_check,
)
