"""The names of functions that bring a tensor's parts together: what they return is the same state."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["is_collective"]

_COLLECTIVE = re.compile(r"(?:.*_)?(?:all_?reduce|all_?gather|reduce_scatter|broadcast)(?:_.*)?")


@lru_cache(maxsize=4096)
def is_collective(name: str) -> bool:
    """Whether a function of that name does so."""
    return _COLLECTIVE.fullmatch(name) is not None
