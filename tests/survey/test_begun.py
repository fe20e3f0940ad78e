"""The joins that are looked for beside the import of the interpreter are those that the survey itself finds."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from eaglelint.cache import store as store_module
from eaglelint.cache.units import active_store, caching
from eaglelint.source.snapshot import Snapshot
from eaglelint.survey import begun, work
from eaglelint.survey.engine import Surveyed, survey

PROJECT = Path(__file__).parent.parent / "rules/projects/sound-sglang/sglang"
STORE = """\
import torch


def store(aux_hidden_states, last):
    kept = None
    if last:
        kept = [hidden[-1] for hidden in aux_hidden_states]
    return torch.cat(kept, dim=-1)
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux" or begun.begin(len) is len, reason="no second core, or no fork")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An engine that joins states that may be None; of so few files, all is found by one process as a rule."""
    package = Path(shutil.copytree(PROJECT, tmp_path / "sglang"))
    (package / "srt/layers/store.py").write_text(STORE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(begun, "_MANY", 1)
    return package


def refuse(*_: Any) -> Any:
    raise AssertionError("it was looked for again")


def joins(surveyed: Surveyed) -> list[tuple[str, str]]:
    return [(str(item.place), item.name) for item in surveyed.facts.joined_while_none]


def test_what_was_begun_is_what_is_found(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All facts are those of one process, and the joins are not looked for twice."""
    alone = survey(f"sglang@{package}", processes=1)
    monkeypatch.setitem(work._FACTS, "joins", refuse)  # type: ignore[misc]
    assert survey(f"sglang@{package}") == alone
    assert joins(alone) == [("sglang/srt/layers/store.py:8", "kept")]


def test_a_package_in_the_directory_that_was_named(package: Path) -> None:
    """What was begun for the directory itself does not count."""
    assert joins(survey(f"sglang@{package.parent}")) == [("sglang/srt/layers/store.py:8", "kept")]


def test_a_few_files(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is started for them."""
    monkeypatch.setattr(begun, "_MANY", 10_000)
    monkeypatch.setattr(begun, "begin", refuse)
    assert joins(survey(f"sglang@{package}")) == [("sglang/srt/layers/store.py:8", "kept")]


def test_what_is_kept_of_it(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next survey reads no file for it, and one after an edit finds what is there then."""
    now = store_module._now
    monkeypatch.setattr(store_module, "_now", lambda: now() + 3_600_000_000_000)  # else the files are too new
    with caching(tmp_path / "cache"):
        first = survey(f"sglang@{package}")
        store = active_store()
        assert store is not None
        files = Snapshot().files(package)
        assert [path for path in files if store.known(path, os.stat(path)) is None] == []
        with monkeypatch.context() as patch:
            patch.setattr("eaglelint.source.snapshot.open", refuse, raising=False)
            patch.setattr(begun, "begin", refuse)
            assert survey(f"sglang@{package}") == first
        (package / "srt/layers/store.py").write_text(STORE.replace("if last:", "if True:"))
        assert joins(survey(f"sglang@{package}")) == []
