"""The main job on the released engines: one draft, its training code, and what two releases make of the same ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytestmark = pytest.mark.real

CAPTURE = """
import torch

CAPTURE_BEFORE = (3, 31, 59)


def forward(self, input_ids, positions, forward_batch):
    hidden_states = self.embed_tokens(input_ids)
    residual = None
    states = []
    for i in range(self.start_layer, self.end_layer):
        if i in CAPTURE_BEFORE:
            states.append(hidden_states + residual)
        hidden_states, residual = self.layers[i](positions, hidden_states, forward_batch, residual)
    hidden_states, _ = self.norm(hidden_states, residual)
    states.append(hidden_states)
    torch.save({"hidden_states": states}, "sample.pt")
    return hidden_states
"""

DATASET = """
import torch


def load(path):
    states = torch.load(path)["hidden_states"]
    return {"hidden_states": torch.cat(states[:-1], dim=-1), "target": states[-1]}
"""


def _project(root: Path, ids: list[int], *, place: str = "nested", target: str = "DeepseekV3ForCausalLM") -> None:
    draft: dict[str, Any] = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": 7168,
        "num_hidden_layers": 1,
        "draft_vocab_size": 32000,
    }
    key = "eagle_aux_hidden_state_layer_ids"
    draft.update({"eagle_config": {key: ids}} if place == "nested" else {key: ids})
    for name, data in (
        ("draft/config.json", draft),
        ("target/config.json", {"architectures": [target], "model_type": "any", "num_hidden_layers": 61}),
    ):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(json.dumps(data, indent=1))
    (root / "training").mkdir()
    (root / "training/capture.py").write_text(CAPTURE)
    (root / "training/dataset.py").write_text(DATASET)


def _scan(root: Path, monkeypatch: pytest.MonkeyPatch, servings: list[str], *, training: bool = True) -> dict[str, Any]:
    from eaglelint.cli.app import app

    monkeypatch.chdir(root)
    arguments = ["scan", "--draft", "draft", "--target", "target", "--output-format", "json"]
    arguments += ["--training", "training"] if training else []
    for serving in servings:
        arguments += ["--serving", serving]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code in (0, 1), result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_the_same_ids_change_their_meaning_with_an_upgrade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sglang_059: Path, sglang_0523: Path
) -> None:
    """[2, 30, 58] is right in SGLang 0.5.9; in 0.5.23 all three slots are another state, and both lines are named."""
    _project(tmp_path, [2, 30, 58])
    document = _scan(tmp_path, monkeypatch, [f"sglang@{sglang_059}", f"sglang@{sglang_0523}"])
    findings = [finding for finding in document["findings"] if finding["code"].startswith("CAP")]
    assert [(f["code"], f["severity"], f["confidence"]) for f in findings] == [("CAP002", "error", "certain")]
    message = findings[0]["message"]
    for index, (trained, served) in enumerate((("h[3]", "h[2]"), ("h[31]", "h[30]"), ("h[59]", "h[58]"))):
        assert f"slot {index} was trained on {trained} and is served {served}" in message
    assert "changes meaning with the upgrade" in message
    assert "deepseek_v2.py:2975" in message
    assert "deepseek_v2.py:3473" in message
    served = {w["engine_version"]: (w["slots"], w["status"]) for w in document["wirings"] if w["party"] == "serving"}
    assert served == {"0.5.9": (["h[3]", "h[31]", "h[59]"], "exact"), "0.5.23": (["h[2]", "h[30]", "h[58]"], "exact")}


def test_the_right_ids_are_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sglang_059: Path) -> None:
    """What SGLang 0.5.9 serves for [2, 30, 58] is what was trained: nothing is found in the draft.

    The warning is about the engine, which records its graphs before it knows the ids.
    """
    _project(tmp_path, [2, 30, 58])
    (finding,) = _scan(tmp_path, monkeypatch, [f"sglang@{sglang_059}"])["findings"]
    assert (finding["code"], finding["severity"]) == ("GPH001", "warning")
    assert finding["location"]["path"].endswith("sglang/srt/model_executor/model_runner.py")


def test_boundary_0_stops_the_stock_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sglang_059: Path) -> None:
    """With [-1, 2, 30] the stock SGLang 0.5.9 adds None to the embedding; the finding says why, and which ids mend it."""
    _project(tmp_path, [-1, 2, 30])
    findings = _scan(tmp_path, monkeypatch, [f"sglang@{sglang_059}"])["findings"]
    stops = next(finding for finding in findings if finding["code"] == "CAP003")
    assert stops["severity"] == "error"
    assert "slot 0 (id -1)" in stops["message"]
    assert "residual is still None" in stops["message"] or "still None" in stops["message"]
    assert "deepseek_v2.py:2728" in stops["message"]
    assert [edit["text"].split() for edit in stops["edits"]] == [["[", "2,", "30,", "58", "]"]]
    assert [f["code"] for f in findings if f["severity"] == "error"] == ["CAP003", "CAP002"]


@pytest.mark.parametrize("fixture", ["sglang_059", "sglang_0523"])
def test_ids_at_the_top_level_are_ignored_by_sglang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fixture: str, request: pytest.FixtureRequest
) -> None:
    """SGLang looks below eagle_config only: the finding names its place and the default that is really served."""
    _project(tmp_path, [5, 20, 40], place="top")
    document = _scan(tmp_path, monkeypatch, [f"sglang@{request.getfixturevalue(fixture)}"], training=False)
    (finding,) = document["findings"]
    assert (finding["code"], finding["severity"], finding["confidence"]) == ("CFG001", "error", "certain")
    assert "eagle_config.eagle_aux_hidden_state_layer_ids" in finding["message"]
    assert "h[2] ⊕ h[30] ⊕ h[58]" in finding["message"]


def test_nested_ids_are_ignored_by_vllms_default_runner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vllm_033: Path
) -> None:
    """vLLM 0.33's default runner does not look below eagle_config for these ids: its own default is served."""
    _project(tmp_path, [5, 20, 40], target="LlamaForCausalLM")
    document = _scan(tmp_path, monkeypatch, [f"vllm@{vllm_033}"], training=False)
    finding, likely = document["findings"]
    assert (finding["code"], finding["severity"], finding["confidence"]) == ("CFG001", "error", "certain")
    assert "h[2] ⊕ h[30] ⊕ h[58]" in finding["message"]
    assert (likely["code"], likely["severity"], likely["confidence"]) == ("CAP002", "warning", "likely")
    assert likely["message"].startswith("by the config alone, slot 0 was trained on h[6] and is served h[2]")
