"""Work beside other work, in a process that begins with all that this one has read."""

from __future__ import annotations

import os
import pickle
import sys
import threading
from collections.abc import Callable
from typing import TypeVar, cast

__all__ = ["begin", "cores"]

_Result = TypeVar("_Result")


def cores() -> int:
    """How many of the machine's cores this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


def begin(compute: Callable[[], _Result]) -> Callable[[], _Result]:
    """Begin to compute in a fork; what is returned waits for the result.

    It is computed when asked for where the fork ends without a result, and where there is no second core or no fork, or
    it is not safe: another thread may hold a lock that nothing releases in the fork.
    What ``compute`` changes besides is seen by nobody, so its result has to hold all that counts.
    """
    if sys.platform != "linux" or threading.active_count() > 1 or cores() < 2:
        return compute
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(compute(), pipe)
            status = 0
        finally:
            os._exit(status)  # without a word: what is buffered, and what is registered for the end, is the parent's
    os.close(writer)
    mine = os.getpid()

    def result() -> _Result:
        if os.getpid() != mine:  # asked in another fork
            return compute()
        with os.fdopen(reader, "rb") as pipe:
            answer = pipe.read()
        _, status = os.waitpid(child, 0)
        return cast(_Result, pickle.loads(answer)) if status == 0 else compute()

    return result
