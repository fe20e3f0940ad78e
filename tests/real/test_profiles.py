"""The bundled profiles are what is learned from the releases now, and give the verdicts that their sources give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eaglelint.derive import ServingRequest
from eaglelint.engines.profile_file import bundled_profile
from eaglelint.engines.recall import recall
from eaglelint.learn.learn import learn_profile, source_hash
from tests.real.packages import (
    SGLANG_0_5_9,
    SGLANG_0_5_23,
    TRANSFORMERS_5_24_0,
    VLLM_0_13_0,
    VLLM_0_22_1,
    VLLM_0_33_0,
    Package,
    package_directory,
)
from tests.real.test_story import _project

pytestmark = pytest.mark.real

READ = (SGLANG_0_5_9, SGLANG_0_5_23, VLLM_0_13_0, VLLM_0_22_1, VLLM_0_33_0, TRANSFORMERS_5_24_0)
# Few of each release are learned again, structurally different ones; all would take the better part of an hour.
SAMPLE = {
    SGLANG_0_5_9: ("DeepseekV3ForCausalLM", "GptOssForCausalLM", "LlamaForCausalLM"),
    SGLANG_0_5_23: ("GptOssForCausalLM", "LlamaForCausalLM"),
    VLLM_0_13_0: ("GptOssForCausalLM", "LlamaForCausalLM"),
    VLLM_0_22_1: ("GptOssForCausalLM", "LlamaForCausalLM"),
    VLLM_0_33_0: ("GptOssForCausalLM", "LlamaForCausalLM"),
    TRANSFORMERS_5_24_0: ("GptOssForCausalLM", "LlamaForCausalLM"),
}
# And of drafts; the loaders of vLLM's classes are not followed, and what those build is left to the source.
DRAFTS = {
    SGLANG_0_5_9: ("LlamaForCausalLMEagle",),
    SGLANG_0_5_23: ("LlamaForCausalLMEagle",),
    VLLM_0_13_0: (),
    VLLM_0_22_1: (),
    VLLM_0_33_0: (),
    TRANSFORMERS_5_24_0: (),
}
# Rules on the engine's own source, which a profile does not hold.
OF_THE_SOURCE = {"GPH001", "SHP006"}


def _named(package: Package) -> str:
    return f"{package.name}=={package.version}"


@pytest.mark.parametrize("package", READ, ids=_named)
def test_a_bundled_profile_is_of_the_pinned_source(package: Package) -> None:
    """It names the hash of the very files that the tests read."""
    profile = bundled_profile(package.name, package.version)
    assert profile is not None
    assert profile.sources == source_hash(package_directory(package))


@pytest.mark.parametrize("package", READ, ids=_named)
def test_a_bundled_profile_is_fresh(package: Package) -> None:
    """What is learned now of a few classes is what the profile holds; else run tools/learn_profiles.py."""
    bundled = bundled_profile(package.name, package.version)
    assert bundled is not None
    learned = learn_profile(
        package_directory(package), package.name, processes=2, only=SAMPLE[package] + DRAFTS[package]
    )
    assert sorted(learned.classes) == sorted(SAMPLE[package])
    for name, cls in learned.classes.items():
        known = bundled.classes[name]
        assert cls.mappings.keys() == known.mappings.keys()
        for kind, (index, sites) in cls.mappings.items():
            told, lines = known.mappings[kind]
            assert (bundled.mappings[told], lines) == (learned.mappings[index], sites), (name, kind)
    assert (bundled.registered, bundled.prefixes, bundled.names) == (
        learned.registered,
        learned.prefixes,
        learned.names,
    )
    assert [*bundled.drafts] == [*learned.drafts]
    for name, facts in learned.drafts.items():
        told = bundled.drafts[name]
        assert (told.join, told.norm_stubs) == (facts.join, facts.norm_stubs), name
        for kind, index in facts.builds.items():
            assert bundled.builds[told.builds[kind]] == learned.builds[index], (name, kind)
    assert {name for name in DRAFTS[package] if not learned.drafts[name].builds} == set()


@pytest.mark.parametrize("package", READ, ids=_named)
@pytest.mark.parametrize("ids", [(2, 30, 58), (1, 29, 57), (2, 30, 60), (-1, 2, 30), (58, 30, 2), "default"])
def test_a_profile_answers_as_the_source(package: Package, ids: Any, real_engine: Any) -> None:
    """For the depth of Kimi-K2.5, which it was not learned from alone: the same slots and status, or unknown."""
    if package is TRANSFORMERS_5_24_0 and (ids == "default" or min(ids) < 0):
        pytest.skip("see test_what_a_profile_of_transformers_does_not_hold")
    profile = bundled_profile(package.name, package.version)
    assert profile is not None
    handle = real_engine(package.name, package.version)
    for name in SAMPLE[package]:
        binding = handle.target_class(name)
        source = handle.wiring(ServingRequest(binding, 61, {"num_hidden_layers": 61}, layer_ids=ids))
        answer = recall(profile, name, "eagle3", 61, layer_ids=ids)
        assert (answer.slots, answer.status) == (source.slots, source.status), name


@pytest.mark.parametrize("ids", [(-1, 2, 30), "default"])
def test_what_a_profile_of_transformers_does_not_hold(ids: Any) -> None:
    """All states at once, and those counted from the end, are left to the source, and it says so."""
    profile = bundled_profile("transformers", "5.24.0")
    assert profile is not None
    answer = recall(profile, "LlamaForCausalLM", "eagle3", 61, layer_ids=ids)
    assert (answer.status, answer.slots) == ("unknown", ())
    assert "Check against the source itself" in (answer.reason or "")


def _findings(root: Path, serving: str, monkeypatch: pytest.MonkeyPatch, *, training: bool) -> list[Any]:
    from eaglelint.cli.app import app

    monkeypatch.chdir(root)
    words = ["scan", "--draft", "draft", "--target", "target", "--output-format", "json", "--serving", serving]
    result = CliRunner().invoke(app, [*words, *(["--training", "training"] if training else [])])
    assert result.exit_code in (0, 1), result.output
    return [
        (f["code"], f["severity"], f["confidence"], f["location"]["start"], [edit["text"] for edit in f["edits"]])
        for f in json.loads(result.stdout)["findings"]
        if f["code"] not in OF_THE_SOURCE
    ]


@pytest.mark.parametrize("package", [SGLANG_0_5_9, SGLANG_0_5_23], ids=_named)
@pytest.mark.parametrize(
    ("ids", "place", "training"),
    [([2, 30, 58], "nested", True), ([-1, 2, 30], "nested", True), ([5, 20, 40], "top", False)],
)
def test_the_same_verdict(
    package: Package, ids: list[int], place: str, training: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stories end with a profile as with the source: the same findings, places and edits."""
    _project(tmp_path, ids, place=place)
    source = _findings(tmp_path, f"{package.name}@{package_directory(package)}", monkeypatch, training=training)
    assert _findings(tmp_path, _named(package), monkeypatch, training=training) == source


def test_an_upgrade_is_seen_from_profiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """engines diff names the class whose ids change their meaning, with both meanings."""
    from eaglelint.cli.app import app

    monkeypatch.chdir(tmp_path)
    words = ["engines", "diff", "sglang==0.5.9", "sglang==0.5.23", "--layer-ids", "2,30,58", "--format", "json"]
    document = json.loads(CliRunner().invoke(app, words).stdout)
    changed = {change["target_class"]: change for change in document["changes"]}
    change = changed["DeepseekV2ForCausalLM"]
    assert change["before"]["slots"] == ["h[3]", "h[31]", "h[59]"]
    assert change["after"]["slots"] == ["h[2]", "h[30]", "h[58]"]
    assert "LlamaForCausalLM" not in changed
