"""Which state of the target a dumped one is: the nearest candidate, and by how much.

States of neighbouring layers look alike: most of the residual stream is the same in all of them. So what all boundaries
have in common is taken off first, each feature is measured in its own spread, and the cosine of what is left counts
only as far as the lengths agree too, 2<x, c> / (|x|² + |c|²): one for the same state, less for a scaled or normed one.
Over the tokens the median is taken, as single tokens carry activations that drown the rest.

Two candidates can still be close, as h[k] and h[k] without its last branch are where that branch is small. The nearest
few are therefore held against each other in pairs: a state lies at that end of the line between two which it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from eaglelint.probe.dump.target import TargetStates
from eaglelint.wiring import Form as SlotForm
from eaglelint.wiring import Slot

__all__ = ["MARGIN", "Candidate", "Family", "Match", "families", "identify", "nearest"]

MARGIN = 0.05
"""A candidate that is not further than this ahead of every other is ambiguous."""

_LEAST = 0.8
"""Below this nothing was found: engines' kernels and quantised targets cost less."""

_LEAST_IN_PART = 0.5
"""The same for candidates that were computed without the tokens before the first."""

_FINALISTS = 4

Form = Literal["stream", "norm", "layer norm", "branch", "residual"]


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Candidates of one form: states [K, T, H], the first of them at boundary ``first``."""

    form: Form
    states: torch.Tensor
    first: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A state of the target by its form and boundary."""

    form: Form
    boundary: int

    def __str__(self) -> str:
        state = f"h[{self.boundary}]"
        return {
            "stream": state,
            "norm": f"norm({state})",
            "layer norm": f"input_layernorm({state})",
            "branch": f"partial({state}), the last branch alone without the residual",
            "residual": f"partial({state}), the residual alone without the last branch",
        }[self.form]

    @property
    def slot(self) -> Slot:
        """As a wiring knows it; a layer's own norm it does not know."""
        forms: dict[Form, SlotForm] = {"stream": "stream", "norm": "norm", "layer norm": "unknown"}
        return Slot(forms.get(self.form, "partial"), self.boundary)


@dataclass(frozen=True, slots=True)
class Match:
    """The nearest candidate, the one that comes closest to it, and how far the first is ahead in a pair with it."""

    best: Candidate
    cosine: float
    next: Candidate
    next_cosine: float
    margin: float
    least: float = _LEAST

    @property
    def found(self) -> bool:
        return self.cosine >= self.least

    @property
    def sure(self) -> bool:
        return self.found and self.margin > MARGIN

    @property
    def slot(self) -> Slot:
        return self.best.slot if self.sure else Slot("unknown")

    def __str__(self) -> str:
        numbers = f"(cosine {self.cosine:.4f}, next best {_short(self.next)} {self.next_cosine:.2f})"
        if self.sure and self.cosine - self.next_cosine <= MARGIN:
            numbers = f"{numbers[:-1]}, told apart by {self.margin:.2f} in what differs)"
        if not self.found:
            return f"none of the target's states: the nearest is {self.best} {numbers}"
        return f"{self.best} {numbers}" if self.sure else f"ambiguous: {self.best} or {self.next} {numbers}"


def _short(candidate: Candidate) -> str:
    return str(candidate).split(",")[0]


def families(target: TargetStates) -> tuple[Family, ...]:
    """All candidates, the likelier forms first; a form that repeats another one is left out."""
    found = [Family("stream", target.stream), Family("norm", target.normed)]
    if target.layer_normed is not None and not _same(target.layer_normed, target.normed[: target.depth]):
        found.append(Family("layer norm", target.layer_normed))
    if target.branch is not None and target.residual is not None:
        found += [Family("branch", target.branch, 1), Family("residual", target.residual, 1)]
    return tuple(found)


def _same(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Norms whose weights were never trained are all the same."""
    return bool(torch.allclose(left, right, rtol=1e-3, atol=1e-3))


def identify(state: torch.Tensor, among: Sequence[Family], *, shift: int = 0) -> Match:
    """The candidate nearest to a dumped state [T, H].

    Args:
        state: What was dumped.
        among: Candidates for the same tokens.
        shift: The state of token t is compared with the candidate of token t - shift. Candidates that were computed
            without the tokens before are like it only in part, the later ones more, so the second half is compared.
    """
    scored = _scored(state, among, shift, half=shift != 0)
    mine = _window(state, shift, half=shift != 0)
    finalists = scored[:_FINALISTS]
    # The one that is ahead of most others, and of two the one that is nearer.
    ahead = [[_ahead(mine, one[2], other[2]) for other in finalists if other is not one] for one in finalists]
    first = max(range(len(finalists)), key=lambda place: (sum(margin > 0 for margin in ahead[place]), -place))
    others = [row for place, row in enumerate(finalists) if place != first]
    margin, (next_cosine, following, _) = min(zip(ahead[first], others, strict=True), key=lambda row: row[0])
    if margin > MARGIN:
        next_cosine, following, _ = others[0]
    cosine, best, _ = finalists[first]
    return Match(best, cosine, following, next_cosine, margin, _LEAST if not shift else _LEAST_IN_PART)


def nearest(state: torch.Tensor, among: Sequence[Family], shift: int) -> float:
    """The cosine of the nearest candidate."""
    return _scored(state, among, shift)[0][0]


Scored = tuple[float, Candidate, torch.Tensor]


def _scored(state: torch.Tensor, among: Sequence[Family], shift: int, *, half: bool = False) -> list[Scored]:
    """Every candidate with its cosine and its values for the tokens that are compared, the nearest first."""
    mine = _window(state, shift, half=half)
    scored: list[Scored] = []
    for family in among:
        theirs = _window(family.states, -shift, half=half)
        scores = _scores(mine, theirs)
        scored += [(score, Candidate(family.form, family.first + k), theirs[k]) for k, score in enumerate(scores)]
    return sorted(scored, key=lambda row: -row[0])


def _window(states: torch.Tensor, shift: int, *, half: bool) -> torch.Tensor:
    """The tokens of [..., T, H] that have a partner at this shift, or the second half of them."""
    tokens = states.shape[-2]
    first, last = max(0, shift), tokens + min(0, shift)
    return states[..., (first + last) // 2 if half else first : last, :]


def _ahead(state: torch.Tensor, one: torch.Tensor, other: torch.Tensor) -> float:
    """How far a state lies at one end of the line from another candidate: 1 there, -1 at the other, 0 at neither."""
    line = one - other
    toward = torch.cosine_similarity(state - other, line, dim=-1)
    away = torch.cosine_similarity(one - state, line, dim=-1)
    return float((toward - away).median())


def _scores(state: torch.Tensor, family: torch.Tensor) -> list[float]:
    center = family.mean(0)
    rest = family - center
    spread = rest.pow(2).mean((0, 1))
    scale = (spread + 0.01 * spread.mean() + 1e-20).rsqrt()
    x = (state - center) * scale
    c = rest * scale
    product = 2 * (c * x).sum(-1)
    length = c.pow(2).sum(-1) + x.pow(2).sum(-1) + 1e-20
    return [float(value) for value in (product / length).median(-1).values]
