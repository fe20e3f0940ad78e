"""What lies in a dump: each slot and the label identified, and the shift of the ids at which all fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from eaglelint.probe.dump.layouts import Dump
from eaglelint.probe.dump.match import Family, Match, families, identify, nearest
from eaglelint.probe.dump.target import TargetStates
from eaglelint.wiring import Wiring

__all__ = ["Observed", "observe"]

_SHIFTS = (0, 1, -1, 2, -2)
# Another reading has to be plainly better than the one that the layout says.
_BETTER = 0.05
_FEWEST_TOKENS = 4


@dataclass(frozen=True, slots=True)
class Observed:
    """What was found.

    Attributes:
        dump: The file, and whose layout it follows.
        slots: One match for each captured state, in their order.
        label: The match of the label, where the layout has one.
        shift: How many tokens the states lie behind the ids: the state at t is that of token t - shift.
        interleaved: The states were flattened with the features of one boundary apart from each other.
        depth: Decoder layers of the target.
        notes: What was odd.
    """

    dump: Dump
    slots: tuple[Match, ...]
    label: Match | None
    shift: int
    interleaved: bool
    depth: int
    notes: tuple[str, ...] = ()

    @property
    def sure(self) -> bool:
        return all(match.sure for match in self.slots)

    @property
    def wiring(self) -> Wiring:
        """As what the draft is trained on."""
        return Wiring(
            party="training",
            name=f"dump {self.dump.path}",
            slots=tuple(match.slot for match in self.slots),
            status="exact" if self.sure else "conditional" if any(match.sure for match in self.slots) else "unknown",
            num_layers=self.depth,
            label=None if self.label is None else self.label.slot,
        )


def observe(dump: Dump, run: Callable[[Sequence[int]], TargetStates], *, first_token: Any = None) -> Observed:
    """Identify what a dump holds.

    Args:
        dump: The sample.
        run: Recomputes the target's states for tokens.
        first_token: The token that a sequence begins with, where the target has one: ids that were shifted to the left
            have lost the first.
    """
    ids = list(dump.ids)
    states = run(ids)
    among = families(states)
    shift = _best_shift(dump.slots, among)
    slots, interleaved = dump.slots, False
    if dump.interleaved and _mean(dump.interleaved, among, shift) > _mean(slots, among, shift) + _BETTER:
        slots, interleaved = dump.interleaved, True
    label = dump.label
    notes = list(dump.notes)
    rest = shift
    if shift < 0:
        # The ids begin with tokens that the states never saw: what follows them is recomputed without.
        states = run(ids[-shift:])
        among = families(states)
        slots = tuple(state[:shift] for state in slots)
        label = None if label is None else label[:shift]
        rest = 0
    elif shift > 0 and type(first_token) is int:
        padded = run([*[first_token] * shift, *ids][: len(ids)])
        if _mean(slots, families(padded), 0) > _mean(slots, among, shift):
            states, among, rest = padded, families(padded), 0
    if shift > 0 and rest:
        notes.append("the tokens that the ids have lost are not known, so states were compared without what they add")
    return Observed(
        dump=dump,
        slots=tuple(identify(state, among, shift=rest) for state in slots),
        label=None if label is None else identify(label, among, shift=rest),
        shift=shift,
        interleaved=interleaved,
        depth=states.depth,
        notes=tuple(notes),
    )


def _best_shift(slots: Sequence[torch.Tensor], among: Sequence[Family]) -> int:
    """The shift at which the slots are nearest to any candidates; none where it is not plainly better."""
    tokens = slots[0].shape[0]
    tried = [shift for shift in _SHIFTS if tokens - abs(shift) >= _FEWEST_TOKENS] or [0]
    scores = {shift: _mean(slots, among, shift) for shift in tried}
    best = max(tried, key=lambda shift: scores[shift])
    return best if scores[best] > scores[0] + _BETTER else 0


def _mean(slots: Sequence[torch.Tensor], among: Sequence[Family], shift: int) -> float:
    return sum(nearest(state, among, shift) for state in slots) / len(slots)
