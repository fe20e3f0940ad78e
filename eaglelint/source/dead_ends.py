"""Sides of a script's condition that lead nowhere: what is dumped and trained on comes of the other side alone.

An item of a data set that is skipped, input that is refused: scripts are full of these, and as paths of their own they
would double what there is to follow each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eaglelint.source.heap import CacheList, Redo
from eaglelint.source.machine import Machine, Raised
from eaglelint.source.values import Unknown

__all__ = ["leads_nowhere", "noting"]

_COUNTS = bool | int | float | str | None | Unknown


def noting(run: Callable[[bool], Any], side: bool, refusals: list[Raised]) -> Any:
    """Run a side of a condition; what it raises is kept in ``refusals`` too."""
    try:
        return run(side)
    except Raised as error:
        refusals.append(error)
        raise


def leads_nowhere(
    machine: Machine, attempt: tuple[Any, Redo, dict[tuple[Any, Any], Any]] | None, refusals: list[Raised]
) -> bool:
    """Whether a side that was tried out raises, with nobody there to catch it, or goes to a loop's next item.

    Only a round that stands for all rounds may be left so, one over something unknown: it is then that of an item that
    is not skipped. What was counted meanwhile is of no interest; a state that was kept or saved is.
    """
    if attempt is None:
        return bool(refusals) and refusals[-1].explicit and not machine.catching
    flow, redo, net = attempt
    if flow is None or flow[0] not in ("continue", "break") or not machine.rounds or not machine.rounds[-1]:
        return False
    kept = any(isinstance(container, CacheList) for container, _, _ in redo)
    return not kept and all(isinstance(value, _COUNTS) for value in net.values())
