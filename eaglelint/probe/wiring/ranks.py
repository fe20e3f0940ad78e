"""Ranks that share each layer: which signatures are a rank's own, and what an exchange between ranks does to states.

One rank alone exchanges nothing. Several are joined by ``torch.distributed`` with gloo (``rank_child.py``).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

__all__ = ["Ranks", "UnknownExchange"]


class UnknownExchange(Exception):
    """An exchange between ranks of which it is not known what it does."""


class Ranks:
    """This rank among all of one tensor-parallel group."""

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank = rank
        self.size = size

    def coordinate(self, number: int, *, own: bool) -> int:
        """The coordinate of the state of this number: on each rank another one where each has its own part."""
        return number * self.size + (self.rank if own else 0)

    def same(self, state: Any) -> bool:
        """Whether all ranks hold the same."""
        if self.size == 1:
            return True
        held = self._gathered(state)
        return all(item.shape == held[0].shape and bool(item.equal(held[0])) for item in held)

    def exchange(self, name: str, states: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What an engine's collective of this name gives for these states.

        Raises:
            UnknownExchange: It is none of the usual ones.
        """
        given = states[-1]  # those with two write into the first
        if self.size == 1:
            if len(states) == 2:
                states[0].copy_(given)
            return states[0]
        dimension = kwargs.get("dim", next((arg for arg in args if isinstance(arg, int)), None))
        if "reduce_scatter" in name:
            total = self._summed(given)
            part = total.chunk(self.size, dim=0 if dimension is None else dimension)[self.rank]
            return states[0].copy_(part) if len(states) == 2 else part.clone()
        if "all_gather" in name:
            whole = torch.cat(
                self._gathered(given), dim=0 if len(states) == 2 else -1 if dimension is None else dimension
            )
            return states[0].copy_(whole) if len(states) == 2 else whole
        if "all_reduce" in name:
            return self._summed(given)
        if "scatter" in name or "chunk" in name:
            return given.chunk(self.size, dim=0)[self.rank].clone()
        raise UnknownExchange(f"it is not known what {name} does between ranks")

    def _summed(self, state: Any) -> Any:
        with torch._C.DisableTorchFunction():  # these are the real exchanges, whatever the run's mode
            total = state.detach().clone()
            dist.all_reduce(total)
            return total

    def _gathered(self, state: Any) -> list[Any]:
        with torch._C.DisableTorchFunction():
            return self._of_all(state)

    def _of_all(self, state: Any) -> list[Any]:
        state = state.detach().contiguous()
        shapes = [torch.zeros(2, dtype=torch.int64) for _ in range(self.size)]
        flat = state.reshape(-1, state.shape[-1])
        dist.all_gather(shapes, torch.tensor(flat.shape))
        held = []
        for rank, shape in enumerate(shapes):
            item = flat.clone() if rank == self.rank else torch.zeros(tuple(shape.tolist()), dtype=state.dtype)
            dist.broadcast(item, src=rank)
            held.append(item.reshape(state.shape) if item.shape == flat.shape else item)
        return held
