"""``eaglelint probe`` and ``scan --probe``: verdicts in every format, exit codes, a budget, and life without torch."""

from __future__ import annotations

import ast
import importlib.util
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import torch
from jsonschema import Draft202012Validator
from typer.testing import CliRunner, Result

import eaglelint.probe
from eaglelint.cli.app import app
from eaglelint.exceptions import WrongUsage
from eaglelint.probe.flow import ProbeOptions, probe_scan
from eaglelint.session import Inputs, open_session
from tests.checkpoints import write_safetensors

ROOT = Path(eaglelint.probe.__file__).parents[2]
BAD_FC = (
    "fc.weight: AssertionError: Attempted to load weight (torch.Size([64, 192])) into parameter (torch.Size([64, 320]))"
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A draft whose config names five layers, and whose fc takes three states of 64."""
    monkeypatch.chdir(tmp_path)
    lay_out(tmp_path, ids=[1, 4, 8, 12, 14])
    return tmp_path


def lay_out(directory: Path, *, ids: list[int], **more: Any) -> None:
    draft: dict[str, Any] = {
        "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "draft_vocab_size": 1000,
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": ids},
    }  # fmt: skip
    target = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 16, "hidden_size": 64,
        "vocab_size": 1000,
    }  # fmt: skip
    for name, config in (("draft", draft | more), ("target", target)):
        (directory / name).mkdir(exist_ok=True)
        (directory / name / "config.json").write_text(json.dumps(config), encoding="utf-8")
    norms = ("hidden_norm", "input_layernorm", "post_attention_layernorm")
    write_safetensors(
        directory / "draft/model.safetensors",
        {
            "fc.weight": ("BF16", [64, 192]),
            "midlayer.self_attn.q_proj.weight": ("BF16", [64, 128]),
            "midlayer.self_attn.k_proj.weight": ("BF16", [32, 128]),
            "midlayer.self_attn.v_proj.weight": ("BF16", [32, 128]),
            "midlayer.self_attn.o_proj.weight": ("BF16", [64, 64]),
            **{f"midlayer.{name}.weight": ("BF16", [64]) for name in norms},
            "norm.weight": ("BF16", [64]),
            "lm_head.weight": ("BF16", [1000, 64]),
        },
    )


def invoke(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def test_a_finding_is_confirmed_in_the_words_of_a_server(project: Path) -> None:
    """The verdict stands in the report for a person, with the error that loading the checkpoint raises."""
    result = invoke("scan", ".", "--probe")
    assert result.exit_code == 1
    assert f"  probe: confirmed, {BAD_FC}\n" in result.stdout


def test_the_error_of_the_matrix_product_is_named(project: Path) -> None:
    """Also the one that a server without a check at loading would raise, in the words of CUDA and CPU, on any device."""
    for device in ("meta", "cpu"):
        result = invoke("probe", ".", "--device", device)
        assert result.exit_code == 1
        assert "fc.weight: RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x320 and 192x64)" in result.stdout


def test_the_verdict_in_json_and_sarif(project: Path) -> None:
    """The field of the report's schema, and a property of the SARIF result."""
    verdict = {"verdict": "confirmed", "detail": BAD_FC}
    findings = json.loads(invoke("scan", ".", "--probe", "--output-format", "json").stdout)["findings"]
    assert [finding["probe"] for finding in findings if finding["code"] == "SHP001"] == [verdict]
    (run,) = json.loads(invoke("scan", ".", "--probe", "--output-format", "sarif").stdout)["runs"]
    assert [found["properties"]["probe"] for found in run["results"] if found["ruleId"] == "SHP001"] == [verdict]


def test_a_failure_that_no_finding_tells_is_a_note(project: Path) -> None:
    """The rule is switched off: the scan is clean, and says what the run saw."""
    result = invoke("scan", ".", "--probe", "--ignore", "SHP001")
    assert result.exit_code == 0
    assert "note: draft/config.json: the input path fails with 2 errors on meta, first fc.weight" in result.stderr


def test_the_probe_report_follows_its_schema(project: Path) -> None:
    """``probe --format json`` is what schemas/probe.schema.json describes."""
    schema = json.loads((files("eaglelint.schemas") / "probe.schema.json").read_text("utf-8"))
    document = json.loads(invoke("probe", ".", "--format", "json").stdout)
    Draft202012Validator(schema).validate(document)
    (outcome,) = document["outcomes"]
    assert outcome["result"] == "failed"
    assert [(error["step"], error["tensor"]) for error in outcome["data"]["errors"]] == [("fc", "fc.weight")] * 2


def test_a_draft_that_fits_passes(project: Path) -> None:
    """Exit 0, with every step that was run, in the checkpoint's own shapes; real values are mapped on request."""
    lay_out(project, ids=[1, 7, 12])
    result = invoke("probe", ".")
    assert result.exit_code == 0
    assert "fc fc.weight: [4, 192] × [64, 192] -> [4, 64]" in result.stdout
    assert "concat cat(embedding, state): [4, 64] × [4, 64] -> [4, 128]" in result.stdout
    assert invoke("probe", ".", "--weights", "--device", "cpu", "--dtype", "F32", "--tokens", "7").exit_code == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_a_gpu_computes_the_same(project: Path) -> None:
    """The same errors, in the same words; and values, where all fits."""
    assert BAD_FC in invoke("probe", ".", "--device", "cuda").stdout
    lay_out(project, ids=[1, 7, 12])
    assert invoke("probe", ".", "--device", "cuda", "--weights").exit_code == 0


def test_what_no_run_speaks_of_is_said(project: Path) -> None:
    """A draft without ids: which layers an engine takes then is no question of shapes."""
    lay_out(project, ids=[])
    result = invoke("probe", ".")
    assert result.exit_code == 0
    assert result.stdout.endswith("No run spoke of the findings of CAP001.\n")


def test_a_finding_that_does_not_show_is_refuted(project: Path) -> None:
    """A rule that speaks where everything fits: the heads are asked for by one key, the shapes allow another reading."""
    result = open_session(Inputs(paths=[project])).scan()
    assert "SHP001" in [finding.code for finding in result.findings]
    lay_out(project, ids=[1, 7, 12])
    (facts,) = open_session(Inputs(paths=[project])).scan().facts
    from dataclasses import replace

    probed = probe_scan(replace(result, facts=(facts,)), ProbeOptions()).findings
    verdicts = [found.probe and found.probe.verdict for found in probed if found.code == "SHP001"]
    assert verdicts == ["refuted"]


def test_nothing_is_begun_once_the_budget_is_used_up(project: Path) -> None:
    """What was not tried says so, and is neither confirmed nor refuted."""
    times = iter([0.0, 5.0])
    result = open_session(Inputs(paths=[project])).scan()
    probed = probe_scan(result, ProbeOptions(budget=2.0), clock=lambda: next(times))
    assert {(found.probe.verdict, found.probe.detail) for found in probed.findings if found.probe} == {
        ("inconclusive", "not tried: the budget of 2 s was used up")
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--device", "meta", "--weights"), "--device meta has no values"),
        (("--device", "cuda"), "torch sees no GPU here"),
    ],
)
def test_a_device_that_cannot_do_it_is_a_sentence(
    project: Path, words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raised as wrong usage, which the command line prints and exits with 2."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    result = invoke("probe", ".", *words)
    assert isinstance(result.exception, WrongUsage)
    assert said in str(result.exception)


def test_a_size_that_cannot_be_is_a_sentence(project: Path) -> None:
    """A config that asks for more memory than there is, or than can be counted, is not tried."""
    for width in (2**40, 2**62):
        lay_out(project, ids=[1, 7, 12], hidden_size=width)
        for device in ("cpu", "meta"):
            document = json.loads(invoke("probe", ".", "--device", device, "--format", "json").stdout)
            assert document["outcomes"][0]["result"] in ("inconclusive", "failed")


@pytest.mark.parametrize("command", [("probe", "."), ("scan", ".", "--probe")])
def test_without_torch_it_says_what_to_install(
    command: tuple[str, ...], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sentence, and exit 2, where the extra is not installed."""
    find = importlib.util.find_spec
    monkeypatch.setattr(eaglelint.probe, "find_spec", lambda name: None if name == "torch" else find(name))
    result = invoke(*command)
    assert isinstance(result.exception, WrongUsage)
    assert "needs torch, not installed here: pip install 'eaglelint[probe]'" in str(result.exception)


def test_torch_is_imported_by_the_probe_alone() -> None:
    """No other file of the package or of the rules names torch, transformers or accelerate in an import."""
    heavy = {"torch", "transformers", "accelerate", "safetensors"}
    found = []
    for file in [*(ROOT / "eaglelint").rglob("*.py"), *(ROOT / "rules").rglob("*.py")]:
        if "probe" in file.relative_to(ROOT).parts[:2]:
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            found += [f"{file}: {name}" for name in names if name.split(".")[0] in heavy]
    assert found == []
