"""Checks, in a process of their own: the one that answers the editor has its hands free."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path

from eaglelint.cache.units import cache_directory, keep_in
from eaglelint.recursion import roomy
from eaglelint.server.check import Checked, Kept, check_document

__all__ = ["Worker"]


class Worker:
    """One process, started with the first check, and anew where it was killed.

    It looks anew at what lies about when it is told to forget.
    """

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._look = 0

    def submit(self, path: Path, root: Path, unsaved: Mapping[Path, bytes]) -> Future[Checked]:
        """Begin a check; see ``check_document``. It ends with BrokenExecutor where the process is killed."""
        job = path, root, dict(unsaved), self._look
        try:
            return self._started().submit(_check, *job)
        except BrokenExecutor:
            self.stop()
            return self._started().submit(_check, *job)

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")  # a fork would take the threads' locks along
            self._pool = ProcessPoolExecutor(1, context, _join, (str(Path.cwd()), cache_directory()))
        return self._pool

    def forget(self) -> None:
        """Files have come, gone or changed."""
        self._look += 1

    def stop(self) -> None:
        """End the process, in the middle of a check too."""
        if self._pool is not None:
            processes = list((self._pool._processes or {}).values())
            self._pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                with suppress(OSError):
                    process.terminate()
            self._pool = None


_kept = Kept()


def _join(directory: str, cache: Path | None) -> None:
    os.chdir(directory)
    keep_in(cache)


@roomy
def _check(path: Path, root: Path, unsaved: Mapping[Path, bytes], look: int) -> Checked:
    if _kept.look != look:
        _kept.layouts.clear()
        _kept.look = look
    return check_document(path, root, unsaved, _kept)
