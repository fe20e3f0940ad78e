"""The hooks under the real pre-commit: installed from this checkout, they find a fault and pass once it is mended."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

REPOSITORY = Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "venv", "node_modules", "dist", "build", "*_cache", "__pycache__", "tests"
)


def git(directory: Path, *words: str) -> None:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=directory, check=True, capture_output=True)


def committed(directory: Path) -> Path:
    git(directory, "init", "-q")
    git(directory, "add", "-A")
    git(directory, "commit", "-q", "-m", "all")
    return directory


def test_both_hooks(tmp_path: Path) -> None:
    """In a scratch repository with the example: both fail on the faulty config, and pass after ``--fix``."""
    hooks = committed(Path(shutil.copytree(REPOSITORY, tmp_path / "hooks", ignore=LEFT_OUT)))
    project = committed(Path(shutil.copytree(REPOSITORY / "examples/kimi-k2.5", tmp_path / "project")))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run_hooks() -> str:
        command = [sys.executable, "-m", "pre_commit", "try-repo", str(hooks), "--all-files", "--color=never", "-v"]
        done = subprocess.run(command, cwd=project, env=environment, capture_output=True, encoding="utf-8", check=False)
        return done.stdout + done.stderr

    said = run_hooks()
    assert said.count("Failed") == said.count("error[CAP002] boundary-mismatch") == 2, said
    subprocess.run([sys.executable, "-m", "eaglelint", "scan", "--fix"], cwd=project, check=True)
    git(project, "commit", "-q", "-a", "-m", "mended")
    said = run_hooks()
    assert said.count("Passed") == said.count("Found no problems") == 2, said
