"""The learned state that stands at masked places is not as wide as what ``fc`` takes."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._header import config_row, state_counts, stated_by, target_width, tensor_row
from .._messages import takes_auxiliary_states

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    state = None if facts.checkpoint is None else facts.checkpoint.find("mask_hidden")
    if draft is None or state is None or not state.is_plain or not takes_auxiliary_states(draft):
        return
    width = target_width(draft, facts.target) or stated_by(draft, "hidden_size")
    counts = state_counts(draft)
    if width is None or not counts or any(state.numel == count * width.value for count, _, _ in counts):
        return
    count, why, span = counts[0]
    yield rule.finding(
        f"mask_hidden has {state.numel} features, and stands for {count} states of {width.value}, "
        f"{count * width.value}: {why}",
        span or draft.key_span("architectures") or draft.span(),
        confidence="certain" if span is not None else "likely",
        related=(tensor_row(state), config_row("width", width)),
        help="It takes the place of the joined states of the target, so it is as wide as they are, not as the draft.",
        identity=(str(state.numel), str(count), str(width.value)),
    )


RULE = Rule(
    code="SHP007",
    name="mismatched-mask-state",
    summary="The state at masked places is not as wide as the joined states that it stands for.",
    severity="error",
    check=_check,
)
