"""``scan --fix`` and ``--diff``: the example is mended, a second run has nothing to do."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return Path(shutil.copytree(REPOSITORY / "examples/kimi-k2.5", tmp_path / "kimi"))


def test_the_example_is_mended(run: Callable[..., Any], example: Path) -> None:
    """The safe edit is made, nothing is left to report, and a second run changes nothing."""
    config = example / "draft/config.json"
    before = config.read_text()
    outcome = run("scan", ".", "--fix", cwd=example)
    assert (outcome.code, outcome.stdout, outcome.stderr) == (
        0,
        "Found no problems\n",
        "made 1 edit in draft/config.json\n",
    )
    assert config.read_text() == before.replace("[-1, 2, 30]", "[2, 30, 58]")
    mended = config.stat().st_mtime_ns
    again = run("scan", ".", "--fix", cwd=example)
    assert (again.code, again.stderr, config.stat().st_mtime_ns) == (0, "", mended)


def test_a_diff_writes_nothing_and_applies(run: Callable[..., Any], example: Path) -> None:
    """What --diff prints is what --fix would do: ``git apply`` brings the same file."""
    config = example / "draft/config.json"
    before = config.read_text()
    outcome = run("scan", ".", "--diff", cwd=example)
    assert (outcome.code, outcome.stderr, config.read_text()) == (1, "would make 1 edit in draft/config.json\n", before)
    subprocess.run(["git", "apply"], input=outcome.stdout, text=True, cwd=example, check=True)
    assert config.read_text() == before.replace("[-1, 2, 30]", "[2, 30, 58]")
    clean = run("scan", ".", "--diff", cwd=example)
    assert (clean.code, clean.stdout) == (0, "")


def test_a_file_that_cannot_be_written(run: Callable[..., Any], example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence and exit 2."""
    monkeypatch.setattr("tempfile.mkstemp", lambda **_: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
    outcome = run("scan", ".", "--fix", cwd=example)
    assert outcome.code == 2
    assert "draft/config.json cannot be written: Permission denied. Nothing was changed" in outcome.stderr


def test_exit_zero(run: Callable[..., Any], example: Path) -> None:
    """The findings are still printed."""
    outcome = run("scan", ".", "--exit-zero", "--output-format", "concise", cwd=example)
    assert (outcome.code, "CAP002" in outcome.stdout) == (0, True)


def test_min_confidence(run: Callable[..., Any], tmp_path: Path) -> None:
    """What is only likely is left out on request, by the option or by the settings."""
    config = {"architectures": ["DFlashDraftModel"], "num_hidden_layers": 5, "dflash_config": {"mask_token_id": 1}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    words = ("scan", "config.json", "--output-format", "concise")
    assert "CAP001" in run(*words, cwd=tmp_path).stdout
    assert run(*words, "--min-confidence", "certain", cwd=tmp_path).stdout == ""
    (tmp_path / "eaglelint.toml").write_text('min-confidence = "certain"\n')
    assert run(*words, cwd=tmp_path).stdout == ""
    assert "CAP001" in run(*words, "--min-confidence", "likely", cwd=tmp_path).stdout
