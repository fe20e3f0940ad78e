"""How a probe runs, and how long: what is asked of it, and the seconds that all of its runs share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from eaglelint.finding import Probe

__all__ = ["Budget", "DumpOptions", "OutOfTime", "ProbeOptions"]


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """How a probe runs.

    Attributes:
        device: ``auto``, ``cuda``, ``cpu`` or ``meta``.
        dtype: By its name in a safetensors header; the checkpoint's if left out.
        tokens: How many tokens are pushed through.
        weights: Whether the checkpoint's values are used.
        budget: Seconds after which nothing more is begun.
        dump: Hidden states that the draft was trained on; without, those that a pipeline names are taken.
        execute: Whether the code of the engines that serve the draft may be run.
    """

    device: str = "auto"
    dtype: str | None = None
    tokens: int = 4
    weights: bool = False
    budget: float | None = None
    dump: DumpOptions | None = None
    execute: bool = False


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """A dump, and the model that it is of.

    Attributes:
        path: One sample, or a directory of them, of which the first is taken.
        model: The target's checkpoint, a directory that transformers can load.
        device: ``auto``, ``cuda`` or ``cpu``.
        tokens: How many of the sample's tokens, from the first, are recomputed.
        memory: Bytes of memory that the target may take; what is more is read from disk layer by layer.
    """

    path: Path
    model: Path
    device: str = "auto"
    tokens: int = 128
    memory: int | None = None


class OutOfTime(Exception):
    """The budget was used up while a target was recomputed."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds that all runs share, counted from ``start``."""

    seconds: float | None
    clock: Callable[[], float]
    start: float

    @property
    def left(self) -> float:
        return float("inf") if self.seconds is None else self.start + self.seconds - self.clock()

    @property
    def untried(self) -> Probe:
        return Probe("inconclusive", f"not tried: the budget of {self.seconds or 0:g} s was used up")
