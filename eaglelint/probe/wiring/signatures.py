"""Tensors that read back: each state that arises anywhere has a coordinate of its own, so a sum says what it holds.

A state is a float64 tensor of tokens × width. Row t of a signature is t + 1 times a unit vector, so that sums, copies,
slices and concatenations of states can be taken apart again, tokens included, and exactly. Float64 marks them: nothing
else in a run has that type.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from eaglelint.probe.wiring.ranks import Ranks

__all__ = ["TOKENS", "WIDTH", "Signature", "Signatures", "is_state"]

TOKENS = 4
WIDTH = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Signature:
    """Where a state arose: the decoder layer, -1 outside of all; ``normed`` is the state that a norm was given,
    ``own`` says whether each rank has another one.
    """

    coordinate: int
    layer: int
    what: str
    normed: Any = None
    own: bool = False


@dataclass(slots=True)
class Signatures:
    """The coordinates of one run, in the order in which the states arose: for each there is one for each rank."""

    ranks: Ranks = field(default_factory=Ranks)
    made: list[Signature] = field(default_factory=list)

    def new(self, layer: int, what: str, normed: Any = None, like: Any = None, *, own: bool = False) -> Any:
        """A new state, of the shape of another one; ``own`` where each rank has another one."""
        if (len(self.made) + 1) * self.ranks.size > WIDTH:
            raise RuntimeError(f"more than {WIDTH // self.ranks.size} states arose in one run")
        signature = Signature(self.ranks.coordinate(len(self.made), own=own), layer, what, normed, own)
        self.made.append(signature)
        state = torch.zeros(TOKENS, WIDTH, dtype=torch.float64)
        state[:, signature.coordinate] = torch.arange(1, TOKENS + 1, dtype=torch.float64)
        if like is None or tuple(like.shape) == tuple(state.shape):
            return state
        if like.shape[-1] != WIDTH:
            return torch.zeros(like.shape, dtype=torch.float64)
        rows = like.numel() // WIDTH
        repeated = state.repeat(rows // TOKENS + 1, 1)[:rows]
        return repeated.reshape(like.shape).clone()


def is_state(value: Any) -> bool:
    """Whether a value is a tensor that holds signatures."""
    return isinstance(value, torch.Tensor) and value.dtype == torch.float64
