"""Weights that are stored in bfloat16 are run in float16, whose range is smaller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.artifacts.checkpoint import Checkpoint
from eaglelint.artifacts.document import Node
from eaglelint.finding import Finding, Related, Severity, Span
from eaglelint.rule import Facts, Rule

from .._messages import DFLASH_FAMILY

if TYPE_CHECKING:
    from eaglelint.artifacts.launch import Launch

__all__ = ["RULE"]

_KEYS = ("torch_dtype", "dtype")
_HALF = ("float16", "half", "torch.float16", "fp16")


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, checkpoint = facts.draft, facts.checkpoint
    if draft is None or checkpoint is None or draft.embedded or _stored(checkpoint) != "BF16":
        return
    own = next((node for key in _KEYS if (node := draft.text_node(key)) is not None), None)
    target = facts.target
    theirs = None if target is None else next((n for key in _KEYS if (n := target.text_node(key)) is not None), None)
    said = _commanded(facts.launch) or _said(own, theirs)
    if said is None:
        return
    message, place = said
    severity: Severity = "error" if draft.kind in DFLASH_FAMILY else "warning"
    effect = (
        "DFlash drafts overflow in float16 and propose nothing that is accepted"
        if severity == "error"
        else "values beyond 65504 become infinite"
    )
    related = (Related("checkpoint", "weights in BF16", Span.at(checkpoint.path, 1)),)
    yield rule.finding(
        f"the weights are stored in bfloat16, and {message}: {effect}",
        draft.key_span("architectures") or draft.span() if place is None else place,
        confidence="likely",
        severity=severity,
        related=related if theirs is None else (*related, Related("target", f"dtype {theirs.value}", theirs.span)),
        help="Write bfloat16 in the draft's config and serve both models in it.",
        identity=("own" if place is not None else "target",),
    )


def _commanded(launch: Launch | None) -> tuple[str, Span] | None:
    """The command that starts the engine overrides every config."""
    option = None if launch is None else launch.get("dtype")
    if option is None or option.value not in _HALF:
        return None
    return f"{option.flag.partition('=')[0]} {option.value} runs both models in float16", option.span


def _said(own: Node | None, theirs: Node | None) -> tuple[str, Span | None] | None:
    """Who says that they are run in float16; engines that are not told take the target's type for the draft."""
    if own is not None and own.value in _HALF:
        return f"the config says {own.value}", own.span
    if own is None and theirs is not None and theirs.value in _HALF:
        return "the config names no type, so that the draft takes the target's float16", None
    return None


def _stored(checkpoint: Checkpoint) -> str | None:
    """The type of most matrices."""
    counted = Counter(tensor.dtype for tensor in checkpoint.tensors.values() if len(tensor.shape) == 2)
    return counted.most_common(1)[0][0] if counted else None


RULE = Rule(
    code="DTY001",
    name="narrowed-weights",
    summary="Weights stored in bfloat16 are run in float16.",
    severity="warning",
    check=_check,
)
