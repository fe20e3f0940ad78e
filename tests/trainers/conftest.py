"""A training project in a few lines: write its files, derive its wiring."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from eaglelint.trainers import TrainingResult, derive_training

Derive = Callable[..., TrainingResult]


@pytest.fixture
def derive(tmp_path: Path) -> Derive:
    """Write files (``dump="..."`` is dump.py) and derive the wiring of the directory, for N = 61."""

    def run(num_layers: int = 61, **files: str) -> TrainingResult:
        for name, code in files.items():
            (tmp_path / f"{name}.py").write_text(dedent(code), "utf-8")
        return derive_training((tmp_path,), num_layers=num_layers, relative_to=tmp_path)

    return run
