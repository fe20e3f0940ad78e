"""The joins that are looked for beside the import of the interpreter are those that the survey itself finds.

Tests run with threads, beside which nothing is forked, so each starts a program.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from eaglelint.forks import cores

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "tests/rules/projects/sound-sglang/sglang"
STORE = """\
import torch


def store(aux_hidden_states, last):
    kept = None
    if last:
        kept = [hidden[-1] for hidden in aux_hidden_states]
    return torch.cat(kept, dim=-1)
"""
BEFORE = """\
import os, sys
from pathlib import Path
from eaglelint.cache import store
from eaglelint.cache.units import active_store, caching
from eaglelint.source import snapshot
from eaglelint.survey import begun
from eaglelint.survey.engine import survey

begun._MANY = 1
package = Path.cwd() / "sglang"

def refuse(*_):
    raise AssertionError("it was looked for again")

def joins(surveyed):
    return [f"{item.place} {item.name}" for item in surveyed.facts.joined_while_none]
"""
JOIN = "['sglang/srt/layers/store.py:8 kept']\n"

pytestmark = pytest.mark.skipif(sys.platform != "linux" or cores() < 2, reason="nothing is begun beside")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """An engine that joins states that may be None; of so few files, all is found by one process as a rule."""
    package = Path(shutil.copytree(PROJECT, tmp_path / "sglang"))
    (package / "srt/layers/store.py").write_text(STORE)
    return package


def run(package: Path, program: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", BEFORE + program],
        check=False, cwd=package.parent, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_what_was_begun_is_what_is_found(package: Path) -> None:
    """All facts are those of one process, and the joins are not looked for twice."""
    program = """
from eaglelint.survey import work
alone = survey(f"sglang@{package}", processes=1)
work._FACTS["joins"] = refuse
print(joins(alone))
print(survey(f"sglang@{package}") == alone)
"""
    assert run(package, program) == JOIN + "True\n"


def test_a_package_in_the_directory_that_was_named(package: Path) -> None:
    """What was begun for the directory itself does not count."""
    assert run(package, "print(joins(survey(f'sglang@{package.parent}')))") == JOIN


def test_a_few_files(package: Path) -> None:
    """No process is started for them."""
    program = """
begun._MANY, begun.begin = 10_000, refuse
print(joins(survey(f"sglang@{package}")))
"""
    assert run(package, program) == JOIN


def test_what_is_kept_of_it(package: Path) -> None:
    """The next survey reads no file for it, and one after an edit finds what is there then."""
    program = """
now = store._now
store._now = lambda: now() + 3_600_000_000_000  # else the files are too new
with caching(Path("cache").absolute()):
    first = survey(f"sglang@{package}")
    files = snapshot.Snapshot().files(package)
    print([path for path in files if active_store().known(path, os.stat(path)) is None])
    begin, begun.begin, snapshot.open = begun.begin, refuse, refuse
    print(survey(f"sglang@{package}") == first)
    begun.begin, snapshot.open = begin, open
    file = package / "srt/layers/store.py"
    file.write_text(file.read_text().replace("if last:", "if True:"))
    print(joins(survey(f"sglang@{package}")))
"""
    assert run(package, program) == "[]\nTrue\n[]\n"
