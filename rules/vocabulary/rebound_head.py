"""A draft that was trained further has another vocabulary map than the one it was trained from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eaglelint.artifacts.checkpoint import Checkpoint
from eaglelint.artifacts.tensor_values import read_rows
from eaglelint.finding import Confidence, Finding
from eaglelint.rule import Facts, Rule

from .._header import stated_by, tensor_row

__all__ = ["RULE"]

_ROWS = 8
_KEPT = 0.5  # rows that were trained on from the same start are far more alike than chance


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, child, parent = facts.draft, facts.checkpoint, facts.parent
    if draft is None or child is None or parent is None:
        return
    new, old = child.map_of("d2t"), parent.map_of("d2t")
    tensor, other = child.find("d2t"), parent.find("d2t")
    if new is None or old is None or tensor is None or other is None or list(new) == list(old):
        return
    moved = [slot for slot, (left, right) in enumerate(zip(new, old, strict=False)) if left != right]
    kept = _kept(child, parent, moved)
    if kept is False or (not moved and len(new) == len(old)):
        return
    first = moved[0] if moved else min(len(new), len(old))
    confidence: Confidence = "certain" if kept else "likely"
    small = stated_by(draft, "draft_vocab_size")
    how = "were kept" if kept else "are as a rule kept"
    yield rule.finding(
        f"d2t is not that of the draft it was trained from: {len(moved)} of {len(new)} tokens of the draft stand for "
        f"other tokens of the target, and the rows of lm_head {how}, so they speak of the old ones",
        draft.span() if small is None else small.span,
        confidence=confidence,
        annotation=f"from row {first} on",
        related=(tensor_row(tensor), tensor_row(other)),
        help="Train further with the map of the first training (d2t and t2d), or start lm_head anew.",
        identity=("map", str(len(moved))),
    )


def _kept(child: Checkpoint, parent: Checkpoint, moved: Sequence[int]) -> bool | None:
    """Whether lm_head's rows at moved places still resemble the parent's; None where they cannot be read."""
    new, old = child.find("lm_head.weight"), parent.find("lm_head.weight")
    if new is None or old is None or not moved or new.path not in child.files or old.path not in parent.files:
        return None
    rows = sorted({moved[len(moved) * place // _ROWS] for place in range(_ROWS)})
    left, right = read_rows(child.files[new.path], new, rows), read_rows(parent.files[old.path], old, rows)
    if left is None or right is None or len(left[0]) != len(right[0]):
        return None
    pairs = [cosine for a, b in zip(left, right, strict=True) if (cosine := _cosine(a, b)) is not None]
    return None if not pairs else sum(pairs) / len(pairs) > _KEPT


def _cosine(left: Sequence[float], right: Sequence[float]) -> float | None:
    lengths = sum(x * x for x in left) ** 0.5 * sum(y * y for y in right) ** 0.5
    return sum(x * y for x, y in zip(left, right, strict=True)) / lengths if lengths else None


RULE = Rule(
    code="VOC004",
    name="rebound-head",
    summary="A draft that was trained further has another vocabulary map than before.",
    severity="error",
    check=_check,
)
