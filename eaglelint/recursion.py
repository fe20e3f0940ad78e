"""Room for deeply nested calls, apart from the interpreter: what needs no more of it loads fast."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["deep_recursion"]


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Room for nested calls: one interpreted call takes about twenty of Python's own frames.

    The garbage collector waits meanwhile: what a run makes, it mostly keeps, and looking through it takes a fifth of
    the time.
    """
    before, collects = sys.getrecursionlimit(), gc.isenabled()
    sys.setrecursionlimit(max(before, 8000))
    gc.disable()
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
        if collects:
            gc.enable()
