"""Ids, states, targets and mask are moved by different numbers of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._training import distance, row

if TYPE_CHECKING:
    from eaglelint.practice import Alignment, RowShift

__all__ = ["RULE"]

IDS = ("input_ids", "token_ids")
STATES = (
    "hidden_states",
    "aux_hidden_states",
    "hidden_state",
    "aux_hidden_state",
    "base_model_hidden_states",
    "target_hidden",
)
_TARGETS = (
    "target",
    "targets",
    "target_hidden_states",
    "verifier_last_hidden_states",
    "last_hidden_states",
    "last_hidden_state",
)


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    ahead = None if facts.draft is None else distance(facts.draft)
    if facts.practice is None or ahead is None:
        return
    seen: set[tuple[str, ...]] = set()
    for alignment in facts.practice.alignments:
        found = _fault(alignment, ahead)
        if found is None:
            continue
        moved, still, message = found
        place = moved.place or alignment.place
        identity = (place.span.path, moved.name, still.name, str(moved.shift), str(still.shift))
        if identity in seen:
            continue
        seen.add(identity)
        yield rule.finding(
            message,
            place.span,
            confidence="likely",
            annotation=f"{moved.name} {_moved(moved.shift)}",
            related=(*row("beside", still.place), *row("together", alignment.place)),
            help=_help(ahead),
            identity=identity,
        )


def _fault(alignment: Alignment, ahead: int) -> tuple[RowShift, RowShift, str] | None:
    """The tensor that stands wrong, the one beside which it does, and what is wrong."""
    ids, states, target, mask = (alignment.shift_of(*names) for names in (IDS, STATES, _TARGETS, ("loss_mask",)))
    known = {row.name: row.shift for row in (ids, states, target, mask) if row is not None and row.shift is not None}

    def apart(left: RowShift | None, right: RowShift | None) -> int | None:
        if left is None or right is None or left.name not in known or right.name not in known:
            return None
        return known[left.name] - known[right.name]

    for one, other, wanted in ((ids, states, ahead), (target, states, ahead), (target, ids, 0)):
        found = apart(one, other)
        # What pairs as EAGLE does may be another draft's code: trainers of block drafts often train both kinds.
        if found is not None and found != wanted and not (ahead == 0 and found == 1):
            assert one is not None and other is not None
            moved, still = (one, other) if one.shift else (other, one)
            return moved, still, _sentence(one, other, found, wanted)
    # A mask that stays where it was is a token late, as in SafeAILab's trainer and SpecForge: it hides other tokens at
    # the ends of answers, and is no fault. One that goes another way is.
    off = apart(mask, ids)
    if mask is not None and ids is not None and off is not None and off not in (0, -ahead):
        return (mask if mask.shift else ids), ids, _sentence(mask, ids, off, 0)
    return None


def _sentence(one: RowShift, other: RowShift, found: int, wanted: int) -> str:
    return (
        f"{one.name} {_moved(one.shift)} and {other.name} {_moved(other.shift)}: {one.name} {_stands(found)} "
        f"{other.name}, and drafts of this kind want it {_distance(wanted)}"
    )


def _moved(shift: int | None) -> str:
    if not shift:
        return "is not moved"
    return f"is moved to the {'left' if shift > 0 else 'right'} by {abs(shift)}"


def _stands(distance: int) -> str:
    if not distance:
        return "stands beside the same places of"
    return f"is {abs(distance)} {'ahead of' if distance > 0 else 'behind'}"


def _distance(wanted: int) -> str:
    return f"{wanted} ahead" if wanted else "beside the same places"


def _help(ahead: int) -> str:
    if ahead:
        return "Move ids, targets and mask to the left by one together, and leave the hidden states where they are."
    return "Leave all of them where they are: a block draft pairs states and tokens of the same places."


RULE = Rule(
    code="TRN001",
    name="misaligned-tokens",
    summary="Ids, states and targets are moved by different numbers of tokens.",
    severity="error",
    check=_check,
)
