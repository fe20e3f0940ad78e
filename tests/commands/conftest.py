"""Commands are run in this process, from the top of the checkout, with both streams and the exit code kept."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from eaglelint.cli.app import run as run_command_line

REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command left behind."""

    code: int
    stdout: str
    stderr: str


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run ``eaglelint`` with these words; ``cwd`` is where, the checkout if left out."""

    def call(*words: object, cwd: Path = REPOSITORY) -> Outcome:
        monkeypatch.chdir(cwd)
        monkeypatch.delenv("FORCE_COLOR", raising=False)
        monkeypatch.setattr(sys, "argv", ["eaglelint", *map(str, words)])
        code: object = 0
        try:
            run_command_line()
        except SystemExit as stop:
            code = stop.code
        captured = capsys.readouterr()
        assert code is None or isinstance(code, int)
        return Outcome(code or 0, captured.out, captured.err)

    return call
