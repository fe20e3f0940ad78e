"""The process that checks: killed from outside, it is started again, and what it finds is the same."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from pathlib import Path

import pytest

from eaglelint.server.check import Checked
from eaglelint.server.worker import Worker

CONFIG = Path(__file__).parents[2] / "examples/kimi-k2.5/draft/config.json"


@pytest.fixture
def worker() -> Iterator[Worker]:
    started = Worker()
    yield started
    started.stop()


def check(worker: Worker) -> Checked:
    return worker.submit(CONFIG, CONFIG.parents[1], {CONFIG: CONFIG.read_bytes()}).result(timeout=120)


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed otherwise there")
def test_a_killed_process_is_started_again(worker: Worker) -> None:
    found = check(worker)
    assert found.findings
    pool = worker._pool
    assert pool is not None
    (process,) = pool._processes
    os.kill(process, signal.SIGKILL)
    for _ in range(2):  # a check that was given to the process before its end was seen fails with it
        try:
            assert check(worker).findings == found.findings
            return
        except BrokenExecutor:
            pass
    pytest.fail("the process was not started again")


def test_what_is_kept_is_looked_at_anew_after_files_have_changed(worker: Worker, tmp_path: Path) -> None:
    config, target = tmp_path / "draft/config.json", tmp_path / "target/config.json"
    config.parent.mkdir()
    config.write_bytes(CONFIG.read_bytes())

    def messages() -> tuple[str, ...]:
        return worker.submit(config, tmp_path, {config: config.read_bytes()}).result(timeout=120).messages

    without = messages()
    target.parent.mkdir()
    target.write_bytes((CONFIG.parents[1] / "target/config.json").read_bytes())
    worker.forget()
    assert messages() != without
