"""The names of functions that bring a tensor's parts together: what they return is the same state."""

from __future__ import annotations

import re

__all__ = ["COLLECTIVE"]

COLLECTIVE = re.compile(r"(?:.*_)?(?:all_?reduce|all_?gather|reduce_scatter|broadcast)(?:_.*)?")
