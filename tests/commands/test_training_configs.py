"""A run's config where nobody named the stack, and files that cannot be read: a sentence each, the rest is checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
ROOT = Path(__file__).parents[2]
SPECFORGE = f"specforge@{ROOT / 'tests/rules/projects/mini-specforge'}"
DRAFT = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "hidden_size": 4096,
    "draft_vocab_size": 32000,
    "vocab_size": 128256,
    "tie_word_embeddings": True,  # an error of its own, which is found whatever else cannot be read
    "eagle_config": {"eagle_aux_hidden_state_layer_ids": [3, 7, 11]},
}
FOUND = ["WGT004", "CFG009"]  # besides the error the note that only some engines read these ids
TARGET = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, data in (("draft", DRAFT), ("target", TARGET)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(data, indent=2))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text", "code", "sentence"),
    [
        ("run.yaml", "training: {strategy: eagle3}\n", 1, "note: run.yaml is the config of a run of specforge"),
        ("run.yaml", "learning_rate: 1\n", 1, "note: run.yaml is no Python, and no training stack's config"),
        ("run.yaml", "training: [1, 2\n", 2, "error: run.yaml:2:1: not valid YAML"),
        ("run.json", '{"training": ', 2, "error: run.json:1:14: not valid JSON"),
        ("train.py", "def f(: pass\n", 2, "error: train.py:1: invalid syntax"),
    ],
)
def test_a_training_file(run: Run, project: Path, name: str, text: str, code: int, sentence: str) -> None:
    (project / name).write_text(text)
    words = ("--draft", "draft", "--target", "target", "--training", name, "--output-format", "json")
    outcome = run("scan", *words, cwd=project)
    assert (outcome.code, sentence in outcome.stderr) == (code, True), outcome.stderr
    assert [finding["code"] for finding in json.loads(outcome.stdout)["findings"]] == FOUND


def test_what_an_unread_config_could_have_said_is_a_condition(run: Run, project: Path) -> None:
    """The ids of the draft's config are those of the training only if the run's own config named no others."""
    (project / "run.yaml").write_text("model: [\n")
    words = ("--draft", "draft", "--target", "target", "--training", "run.yaml", "--trained-by", SPECFORGE)
    outcome = run("wiring", *words, "--format", "json", cwd=project)
    (trained, *_) = json.loads(outcome.stdout)["wirings"]
    conditions = [condition["text"] for condition in trained["conditions"]]
    assert outcome.code == 2
    assert "if run.yaml, which could not be read, named no other layer ids" in conditions


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("0.safetensors", (1 << 63).to_bytes(8, "little") + b"{}", "0.safetensors"),
        ("0.safetensors", b"\x00\x01", "0.safetensors"),
        ("0.pt", b"not a zip", "0.pt"),
    ],
)
def test_a_dump_whose_header_lies(run: Run, project: Path, name: str, data: bytes, said: str) -> None:
    """A sentence on that file."""
    (project / "dump").mkdir()
    (project / "dump" / name).write_bytes(data)
    words = ("--draft", "draft", "--target", "target", "--dump", "dump", "--output-format", "json")
    outcome = run("scan", *words, cwd=project)
    assert any(said in line for line in outcome.stderr.splitlines()), outcome.stderr
    assert [finding["code"] for finding in json.loads(outcome.stdout)["findings"]] == FOUND


DUMP = """import torch
from transformers import AutoModelForCausalLM


def dump(path, input_ids):
    model = AutoModelForCausalLM.from_pretrained("target")
    states = model(input_ids, output_hidden_states=True).hidden_states
    torch.save({"hidden_state": torch.cat((states[2], states[6], states[10]), dim=-1)}, path)
"""


@pytest.mark.parametrize(
    ("code", "slots", "status"),
    [
        (DUMP, ["h[2]", "h[6]", "h[10]"], "exact"),
        ("def dump(path):\n    return path\n", ["h[4]", "h[8]", "h[12]"], "conditional"),
    ],
)
def test_a_script_beside_a_stack(run: Run, project: Path, code: str, slots: list[str], status: str) -> None:
    """What it captures counts; where that is not told, the stack's own way does on that condition."""
    (project / "dump.py").write_text(code)
    words = ("--draft", "draft", "--target", "target", "--training", "dump.py", "--trained-by", SPECFORGE)
    engine = f"sglang@{ROOT / 'tests/rules/projects/mini-sglang/sglang'}"
    outcome = run("wiring", *words, "--serving", engine, "--captured-by", engine, "--format", "json", cwd=project)
    trained = json.loads(outcome.stdout)["wirings"][0]
    assert (trained["slots"], trained["status"]) == (slots, status)
    assert "note: dump.py" in outcome.stderr
