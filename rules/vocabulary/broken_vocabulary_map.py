"""The values of ``d2t`` and ``t2d`` do not map the draft's tokens to tokens of the target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from eaglelint.artifacts.checkpoint import Tensor
from eaglelint.finding import Confidence, Finding, Severity
from eaglelint.rule import Facts, Rule

from .._header import stated_by, stated_by_target, tensor_row

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, checkpoint = facts.draft, facts.checkpoint
    tensor = None if checkpoint is None else checkpoint.find("d2t")
    if draft is None or checkpoint is None or tensor is None:
        return
    offsets, mask = checkpoint.map_of("d2t"), checkpoint.map_of("t2d")
    full = stated_by(draft, "vocab_size") or stated_by_target(facts.target, "vocab_size")
    size = full.value if full is not None else len(mask) if mask is not None else None
    if not offsets or size is None:
        return
    said = _fault(offsets, mask if mask is not None and len(mask) == size else None, size)
    if said is None:
        return
    message, confidence, severity, help = said
    small = stated_by(draft, "draft_vocab_size")
    related = [tensor_row(tensor)]
    other = checkpoint.find("t2d")
    if other is not None:
        related.append(tensor_row(other))
    yield rule.finding(
        message,
        draft.span() if small is None else small.span,
        confidence=confidence,
        severity=severity,
        annotation=_first_values(tensor, offsets),
        related=tuple(related),
        help=help,
        identity=(message,),
    )


def _fault(
    offsets: Sequence[int], mask: Sequence[int] | None, size: int
) -> tuple[str, Confidence, Severity, str] | None:
    image = [index + offset for index, offset in enumerate(offsets)]
    outside = [token for token in image if not 0 <= token < size]
    chosen = None if mask is None else {token for token, kept in enumerate(mask) if kept}
    absolute = len(set(offsets)) == len(offsets) and all(0 <= value < size for value in offsets)
    if absolute and len(offsets) > 1 and (outside or (chosen is not None and set(offsets) == chosen != set(image))):
        return (
            "d2t holds target tokens where it has to hold offsets: draft token k stands for target token k + d2t[k]",
            "certain",
            "error",
            "Subtract 0, 1, 2, ... from the entries before saving.",
        )
    if outside:
        return (
            f"{len(outside)} of {len(offsets)} entries of d2t lead outside of the {size} tokens of the vocabulary, "
            f"the first to {outside[0]}",
            "certain",
            "error",
            "Save the map that the draft was trained with.",
        )
    twice = [token for token, count in Counter(image).most_common(1) if count > 1]
    if twice:
        return (
            f"several entries of d2t stand for the same target token, such as {twice[0]}: "
            f"{len(offsets)} draft tokens reach {len(set(image))}",
            "certain",
            "error",
            "Save the map that the draft was trained with; each draft token has a target token of its own.",
        )
    if chosen is not None and chosen != set(image):
        return (
            f"t2d keeps {len(chosen)} tokens and d2t leads to {len(image)}, of which {len(chosen & set(image))} are "
            "the same",
            "certain",
            "error",
            "Save both maps from the run that trained the draft.",
        )
    if not any(offsets) and len(offsets) < size:
        return (
            f"d2t is zero throughout, so the draft can only propose the first {len(offsets)} of {size} tokens",
            "likely",
            "warning",
            "That is the default of a map that was never set. Save the map of the most frequent tokens.",
        )
    return None


def _first_values(tensor: Tensor, offsets: Sequence[int]) -> str:
    shown = ", ".join(map(str, offsets[:4]))
    return f"{tensor.name} begins {shown}" + (", ..." if len(offsets) > 4 else "")


RULE = Rule(
    code="VOC002",
    name="broken-vocabulary-map",
    summary="The values of d2t and t2d do not map draft tokens to target tokens.",
    severity="error",
    check=_check,
)
