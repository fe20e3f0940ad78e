"""Room for deeply nested calls, apart from the interpreter: what needs no more of it loads fast."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, TypeVar

__all__ = ["deep_recursion", "roomy"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_SLOTS = 1 << 17  # of eight bytes: a piece of 2 MiB, half of which is left; what is not used costs no memory


def roomy(function: _Function) -> _Function:
    """Let calls nest deeply below a function, again and again.

    Since 3.11 CPython keeps what running functions hold in pieces of 16 KiB (``push_chunk`` in Python/pystate.c): one
    more is mapped when a call needs it, and given back when that call returns. Where calls go to and fro over such an
    edge, that is a seventh of the time of a scan. A function that asks for a large stack gets a larger piece, and the
    calls below it have what it leaves.
    """
    if isinstance(function, FunctionType) and sys.implementation.name == "cpython" and sys.version_info >= (3, 11):
        function.__code__ = function.__code__.replace(co_stacksize=_SLOTS)
    return function


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
