"""CFG009: what the newest releases make of one config, where nobody named an engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.artifacts.target import TargetConfig
from eaglelint.engines.profile_file import bundled_versions
from eaglelint.portability import served_elsewhere
from eaglelint.rule import Served
from tests.rules.facts import eagle3, served, target

DEEPSEEK = TargetConfig.synthetic(61, ("DeepseekV3ForCausalLM",))


def shown(draft: DraftConfig, of: TargetConfig | None, kind: str = "eagle3") -> dict[str, str]:
    """What each release would feed the draft."""
    return {end.wiring.name.partition(" (")[0]: str(end.wiring) for end in served_elsewhere(draft, kind, of)}


def test_the_newest_of_each_engine_and_older_ones_that_differ() -> None:
    """[2, 30, 58] changed its meaning between two releases of SGLang; one that agrees with the newest is left out."""
    found = shown(eagle3([2, 30, 58]), DEEPSEEK)
    newest = f"sglang {bundled_versions('sglang')[-1]}"
    assert (found[newest], found["sglang 0.5.9"]) == ("h[2] ⊕ h[30] ⊕ h[58]", "h[3] ⊕ h[31] ⊕ h[59]")
    assert "sglang 0.5.9" not in shown(eagle3([1, 29, 57]), DEEPSEEK)
    assert f"vllm {bundled_versions('vllm')[-1]}" in found


def test_an_engine_without_the_target_is_left_out() -> None:
    """Whether it serves it in some other way is not known; engines that were read by hand have one way for all."""
    nobody = TargetConfig.synthetic(61, ("NobodysForCausalLM",))
    assert {name.split(" ")[0] for name in shown(eagle3([2, 30, 58]), nobody)} == {
        "llama.cpp",
        "mlx-vlm",
        "tensorrt-llm",
    }


def test_a_kind_that_an_engine_was_not_read_for() -> None:
    """DFlash: nothing is said of what llama.cpp and the others do."""
    ends = served_elsewhere(eagle3([1, 9, 17]), "dflash", None)
    assert {end.wiring.engine for end in ends} <= {"sglang", "vllm"}


def note(draft: DraftConfig, of: TargetConfig | None, *elsewhere: Served) -> list[str]:
    """What the rule says, each with its severity."""
    from eaglelint.registry import find_rule
    from eaglelint.rule import Facts

    rule = find_rule("CFG009")
    findings = rule.check(rule, Facts(draft, of, None, (), elsewhere=elsewhere))
    return [f"{finding.severity}: {finding.message}" for finding in findings]


def test_releases_that_agree_are_no_news() -> None:
    same = served((2, 30, 58)), served((2, 30, 58), engine="vllm", version="0.33.0")
    assert note(eagle3([2, 30, 58]), target(), *same) == []
    assert note(eagle3([2, 30, 58]), target()) == []


def test_one_note_for_all_engines() -> None:
    """Grouped by what they serve, those that read the ids first."""
    ends = (
        served((2, 30, 58), engine="vllm", version="0.33.0"),
        served((3, 31, 59), ids=(2, 30, 58)),
        served((2, 30, 58), engine="llama.cpp", version="1"),
    )
    assert note(eagle3([2, 30, 58]), target(), *ends) == [
        "note: what this draft is served depends on the engine: h[3] ⊕ h[31] ⊕ h[59] by sglang 0.5.9; "
        "h[2] ⊕ h[30] ⊕ h[58] by vllm 0.33.0 and llama.cpp 1, which read none of its ids"
    ]


@pytest.mark.parametrize("options", [(), ("--serving", "sglang==0.5.9"), ("--ignore", "engine-bound")])
def test_a_note_fails_no_check(options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 0 with the note; none where an engine is named or the rule is left out."""
    from typer.testing import CliRunner

    from eaglelint.cli.app import app

    for name, config in (
        ("draft", eagle3([2, 30, 58]).data | {"vocab_size": 129280, "draft_vocab_size": 129280}),
        ("target", {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "num_hidden_layers": 61}),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))
    monkeypatch.chdir(tmp_path)
    outcome = CliRunner().invoke(app, ["scan", "draft", "target", *options, "--output-format", "json"])
    found = [(row["code"], row["severity"]) for row in json.loads(outcome.stdout)["findings"]]
    assert (outcome.exit_code, found) == (0, [] if options else [("CFG009", "note")])
