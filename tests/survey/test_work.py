"""The survey of a whole engine: shared by several processes it finds what one finds."""

from __future__ import annotations

import multiprocessing
import shutil
from pathlib import Path

import pytest

from eaglelint.source.snapshot import Dependency, Snapshot
from eaglelint.survey import work
from eaglelint.survey.facts import EngineFacts

MINI = Path(__file__).parent.parent / "rules/projects/mini-sglang/sglang"
WRAPPER = """\
from sglang.srt.models.llama import LlamaForCausalLM
from torch import nn


class WrapsLlama(nn.Module):
    def __init__(self, config):
        self.language_model = LlamaForCausalLM(config)


EntryClass = WrapsLlama
"""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Eight targets, a function of one of which is no Python, a class that wraps one, and a file that is no Python."""
    models = Path(shutil.copytree(MINI, tmp_path / "sglang")) / "srt/models"
    llama = (models / "llama.py").read_text("utf-8")
    for name in ("Mistral", "Phi", "Qwen", "Gemma", "Olmo", "Granite", "Falcon"):
        (models / f"{name.lower()}.py").write_text(llama.replace("Llama", name), "utf-8")
    phi = models / "phi.py"
    phi.write_text(phi.read_text("utf-8").replace("residual = None", "residual = = None"), "utf-8")
    (models / "wrapper.py").write_text(WRAPPER, "utf-8")
    (models / "broken.py").write_text("class Broken(:\nEntryClass = Broken\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    return f"sglang@{tmp_path}"


def surveyed(engine: str, processes: int) -> tuple[EngineFacts, dict[str, str], set[Dependency]]:
    snapshot = Snapshot()
    unreadable: dict[str, str] = {}
    with snapshot.noting() as rests:
        facts = work.survey_source(engine, snapshot, unreadable, processes)
    return facts, unreadable, rests


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_two_processes_find_what_one_does(engine: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same facts, the same file that could not be read, and all rests on the same files."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    started: list[str] = []

    def context() -> object:
        started.append(method)
        return multiprocessing.get_context(method)

    monkeypatch.setattr(work, "_context", context)
    alone = surveyed(engine, 1)
    assert started == []
    assert surveyed(engine, 2) == alone
    assert started == [method]
    facts, unreadable, _ = alone
    assert len(facts.classes) == 8
    assert [wrapper.name for wrapper in facts.wrappers] == ["WrapsLlama"]
    assert unreadable == {
        "sglang/srt/models/broken.py": "sglang/srt/models/broken.py:1: invalid syntax",
        "sglang/srt/models/phi.py": "sglang/srt/models/phi.py:45: invalid syntax",
    }
    status = {cls.name: cls.default.wiring.status for cls in facts.classes if cls.default is not None}
    assert status.pop("PhiForCausalLM") == "unknown"
    assert set(status.values()) == {"exact"}
