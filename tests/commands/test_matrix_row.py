"""One row of the train-to-serve matrix for a user's own draft, and the edit that --fix writes for a named engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
SHAPE = {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_size": 4096}
TARGET = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096}
NAMED = ("--draft", "draft", "--target", "target")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, data in (
        ("draft", {**SHAPE, "eagle_config": {"eagle_aux_hidden_state_layer_ids": [3, 7, 11]}}),
        ("target", TARGET),
        ("declared", {**SHAPE, "speculators_version": "0.9.0", "speculators_config": {"algorithm": "eagle3"},
                      "eagle_aux_hidden_state_layer_ids": [3, 7, 11]}),
    ):  # fmt: skip
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(data, indent=2) + "\n")
    return tmp_path


def config(project: Path, name: str = "draft") -> Any:
    return json.loads((project / name / "config.json").read_text())


def test_every_bundled_release_has_a_verdict(run: Run, project: Path) -> None:
    """Without --serving; for the others the list, its place, or the option that mends it."""
    lines = run("wiring", *NAMED, "--trained-by", "layer-output", cwd=project).stdout.splitlines()
    assert "sglang 0.5.9: serves what was trained" in lines
    assert {f"vllm {v}" for v in ("0.13.0", "0.22.1", "0.33.0")} <= {line.partition(":")[0] for line in lines}
    (vllm,) = (line for line in lines if line.startswith("vllm 0.13.0: "))
    assert "write [4, 8, 12] in eagle_aux_hidden_state_layer_ids" in vllm
    (trt,) = (line for line in lines if line.startswith("tensorrt-llm 001e670: "))
    assert "give eagle3_layers_to_capture [3, 7, 11]" in trt


def test_fix_writes_the_list_for_the_named_engine(run: Run, project: Path) -> None:
    """vLLM looks at the top level and counts boundaries; without the declaration of the old list it then serves them."""
    outcome = run("wiring", *NAMED, "--trained-by", "layer-output", "--serving", "vllm==0.13.0", "--fix", cwd=project)
    assert outcome.code == 0 and "leave --trained-by out now" in outcome.stderr
    assert config(project)["eagle_aux_hidden_state_layer_ids"] == [4, 8, 12]
    after = run("wiring", *NAMED, "--serving", "vllm==0.13.0", "--format", "json", cwd=project)
    served = next(wiring for wiring in json.loads(after.stdout)["wirings"] if wiring["party"] == "serving")
    assert served["slots"] == ["h[4]", "h[8]", "h[12]"]


def test_a_config_that_declares_its_writer_needs_no_flag(run: Run, project: Path) -> None:
    """speculators counts boundaries, SGLang layer outputs; a second run has nothing to do."""
    words = ("wiring", "--draft", "declared", "--target", "target", "--serving", "sglang==0.5.9", "--fix")
    assert run(*words, cwd=project).code == 0
    assert config(project, "declared")["eagle_config"] == {"eagle_aux_hidden_state_layer_ids": [2, 6, 10]}
    again = run(*words, cwd=project)
    assert (again.code, "serves what was trained already" in again.stderr) == (0, True)


def test_diff_writes_nothing(run: Run, project: Path) -> None:
    before = config(project)
    outcome = run("wiring", *NAMED, "--trained-by", "boundary", "--serving", "sglang==0.5.9", "--diff", cwd=project)
    added = [line[1:].strip() for line in outcome.stdout.splitlines() if line.startswith("+ ")]
    assert (outcome.code, added) == (1, ["2,", "6,", "10"])
    assert config(project) == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--trained-by", "boundary"), "name one draft with --draft and one engine with --serving"),
        (("--serving", "sglang==0.5.9", "--serving", "vllm==0.13.0"), "one engine with --serving"),
        (("--serving", "vllm==0.13.0"), "is only likely by the config"),
    ],
)
def test_what_fix_needs_to_know(run: Run, project: Path, words: tuple[str, ...], sentence: str) -> None:
    """Which engine, and what was trained: likely is not enough to write on."""
    before = config(project)
    outcome = run("wiring", *NAMED, *words, "--fix", cwd=project)
    assert (outcome.code, sentence in outcome.stderr) == (2, True)
    assert config(project) == before


def test_an_engine_that_has_an_option_instead(run: Run, project: Path) -> None:
    """Nothing in the config mends it; what to give is said."""
    words = ("--trained-by", "boundary", "--serving", "llama.cpp==0274f0f", "--fix")
    outcome = run("wiring", *NAMED, *words, cwd=project)
    assert (outcome.code, "give extract_layers [3, 7, 11]" in outcome.stderr) == (1, True)
