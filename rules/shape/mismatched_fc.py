"""The draft's ``fc`` is not as wide as the states that the config says it is fed."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.checkpoint import Tensor
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Confidence, Finding, Span
from eaglelint.rule import Facts, Rule

from .._header import Stated, config_row, state_counts, stated_by, target_width, tensor_row
from .._messages import switched_off, takes_auxiliary_states

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    fc = None if facts.checkpoint is None else facts.checkpoint.find("fc.weight")
    if draft is None or fc is None or not fc.is_plain or len(fc.shape) != 2 or switched_off(draft):
        return
    own = stated_by(draft, "hidden_size")
    if own is not None and fc.shape[0] != own.value:
        yield rule.finding(
            f"fc.weight gives {fc.shape[0]} features, and the draft's hidden_size is {own.value}",
            own.span,
            confidence="certain",
            annotation=f"fc.weight is {list(fc.shape)}",
            related=(tensor_row(fc),),
            help="Write the hidden_size that the draft was trained with, or take the checkpoint that belongs to this "
            "config.",
            identity=("out", str(fc.shape[0]), str(own.value)),
        )
        return
    if takes_auxiliary_states(draft):
        yield from _captured(rule, facts, draft, fc, own)
    elif draft.kind == "eagle" and own is not None and fc.shape[1] != 2 * own.value:
        yield rule.finding(
            f"fc.weight takes {fc.shape[1]} features; an EAGLE draft joins the embedding and one state, "
            f"2 × {own.value} = {2 * own.value}" + _perhaps_eagle3(fc, own),
            own.span,
            confidence="certain",
            related=(tensor_row(fc),),
            help="Serve the checkpoint as the kind of draft that it is.",
            identity=("eagle", str(fc.shape[1]), str(own.value)),
        )


def _perhaps_eagle3(fc: Tensor, own: Stated) -> str:
    states, rest = divmod(fc.shape[1], own.value) if own.value else (0, 1)
    return f". {states} states of {own.value} would be those of an EAGLE-3 draft" if not rest and states > 2 else ""


def _captured(rule: Rule, facts: Facts, draft: DraftConfig, fc: Tensor, own: Stated | None) -> Iterator[Finding]:
    width = target_width(draft, facts.target) or own
    if width is None or width.value <= 0:
        return
    counts = state_counts(draft)
    taken = fc.shape[1]
    states, rest = divmod(taken, width.value)
    if any(taken == count * width.value for count, _, _ in counts) or (not counts and not rest):
        return
    takes = f"{states} states of {width.value}" if not rest else f"no whole number of states of {width.value}"
    count, why, span = counts[0] if counts else (0, "", None)
    message = f"fc.weight takes {taken} features, {takes}"
    if counts:
        message += f", and {count} × {width.value} = {count * width.value} are served: {why}"
    confidence: Confidence = "certain" if span is not None or not counts else "likely"
    yield rule.finding(
        message,
        _place(draft, own) if rest or span is None else span,
        confidence=confidence if width is not own else "likely",
        annotation=f"fc.weight is {list(fc.shape)}",
        related=(tensor_row(fc), config_row("width", width)),
        help=(
            f"Name the {states} layers that the draft was trained on."
            if not rest
            else "Check that this is the target that the draft was trained for."
        ),
        identity=("in", str(taken), str(count), str(width.value)),
    )


def _place(draft: DraftConfig, own: Stated | None) -> Span:
    return (draft.key_span("architectures") or draft.span()) if own is None else own.span


RULE = Rule(
    code="SHP001",
    name="mismatched-fc",
    summary="The draft's fc is not as wide as the states that it is fed.",
    severity="error",
    check=_check,
)
