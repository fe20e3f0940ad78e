"""The flow from pipelines to findings: several engines, several pipelines, and a look over an engine's own tree."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from eaglelint.project.pipelines import PipelineInput, assemble_pipelines
from eaglelint.project.settings import find_settings
from eaglelint.registry import all_rules
from eaglelint.scan import Options, gather, scan_pipelines, survey_engine
from eaglelint.serving_end import with_ids

MINI = Path(__file__).parent / "rules/projects/mini-sglang/sglang"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A draft, a target of 61 layers and two copies of the small engine, of which the second adds nothing to ids."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "draft/config.json", draft([2, 30, 58]))
    write(tmp_path / "target/config.json", {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 61})
    for name in ("adds", "plain"):
        shutil.copytree(MINI, tmp_path / name / "sglang", ignore=shutil.ignore_patterns("__pycache__"))
    capture = tmp_path / "plain/sglang/srt/models/capture.py"
    capture.write_text(capture.read_text("utf-8").replace("layer_id + 1", "layer_id"), "utf-8")
    return tmp_path


def draft(ids: list[int]) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": ids},
    }


def write(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), "utf-8")


def pipeline(project: Path, *serving: str, **more: Any) -> PipelineInput:
    return PipelineInput("a draft", project / "draft", project / "target", serving=serving, **more)


def test_several_engines(project: Path) -> None:
    """One wiring for each, in the order in which they were named; a finding for the one that differs."""
    given = pipeline(project, "sglang@adds", "sglang@plain", trained_by="layer-output")
    result = scan_pipelines((given,), all_rules(), Options())
    assert [str(wiring) for wiring in result.wirings] == [
        "h[3] ⊕ h[31] ⊕ h[59]",
        "h[3] ⊕ h[31] ⊕ h[59]",
        "h[2] ⊕ h[30] ⊕ h[58]",
    ]
    assert [wiring.party for wiring in result.wirings] == ["training", "serving", "serving"]
    mismatches = [finding for finding in result.findings if finding.code == "CAP002"]
    assert len(mismatches) == 1 and "h[2]" in mismatches[0].message


def test_mended_ids_are_derived_for_each_engine(project: Path) -> None:
    """What mends the draft for one engine is not what mends it for another."""
    given = pipeline(project, "sglang@adds", "sglang@plain", trained_by="boundary")
    adds, plain = gather(given, Options())[0].servings
    assert (adds.mended_ids, plain.mended_ids) == ((1, 29, 57), None)


def test_pipelines_of_the_settings(project: Path) -> None:
    """Each is checked with its own engine; paths in the settings are relative to them."""
    write(project / "other/config.json", draft([3, 31, 59]))
    (project / "eaglelint.toml").write_text(
        '[[pipeline]]\ndraft = "draft"\ntarget = "target"\ntrained-by = "layer-output"\nserving = ["sglang@adds"]\n'
        '[[pipeline]]\ndraft = "other"\ntarget = "target"\ntrained-by = "boundary"\nserving = ["sglang@plain"]\n',
        "utf-8",
    )
    pipelines = assemble_pipelines([], settings=find_settings(project))
    result = scan_pipelines(pipelines, all_rules(), Options())
    assert [str(wiring) for wiring in result.wirings] == ["h[3] ⊕ h[31] ⊕ h[59]"] * 4
    assert [finding.code for finding in result.findings if finding.severity == "error"] == []


def test_layers_and_class_in_place_of_a_target(project: Path) -> None:
    """--num-layers and --target-class say what a target's config would."""
    given = PipelineInput("a draft", project / "draft", serving=("sglang@adds",))
    facts, problems, *_ = gather(given, Options(num_layers=40, target_class="LlamaForCausalLM"))
    assert problems == ()
    assert (str(facts.servings[0].wiring), facts.servings[0].wiring.num_layers) == ("h[3] ⊕ h[31]", 40)


def test_a_model_file_that_does_not_parse(project: Path) -> None:
    """It is a problem, named with its line; what does not need it is derived."""
    (project / "adds/sglang/srt/models/broken.py").write_text("class LlamaForCausalLM(:\n", "utf-8")
    result = scan_pipelines((pipeline(project, "sglang@adds"),), all_rules(), Options())
    assert [str(wiring) for wiring in result.wirings] == ["h[3] ⊕ h[31] ⊕ h[59]"]
    assert [problem for problem in result.problems if "broken.py:1" in problem]


def test_findings_are_unique_and_in_order(project: Path) -> None:
    """The same pipeline twice finds everything once, sorted by place."""
    given = pipeline(project, "sglang@plain", trained_by="layer-output")
    once = scan_pipelines((given,), all_rules(), Options()).findings
    twice = scan_pipelines((given, given), all_rules(), Options()).findings
    assert once and once == twice
    assert [f.span.start for f in twice] == sorted(f.span.start for f in twice)


def test_ids_are_written_without_changing_the_original() -> None:
    """A proposal is a new config; sections on the way are made where they are missing."""
    data = {"eagle_config": {"use_aux_hidden_state": True}}
    changed = with_ids(data, ("eagle_config", "ids"), [1])
    assert changed == {"eagle_config": {"use_aux_hidden_state": True, "ids": [1]}}
    assert with_ids({}, ("a", "b"), [2]) == {"a": {"b": [2]}}
    assert data == {"eagle_config": {"use_aux_hidden_state": True}}


# --- an engine's own tree ------------------------------------------------------------------------------------------


def children(project: Path, names: list[str]) -> None:
    for name in names:
        source = f"from sglang.srt.models.llama import LlamaForCausalLM\n\n\nclass {name}(LlamaForCausalLM):\n    pass\n\n\nEntryClass = {name}\n"
        (project / f"adds/sglang/srt/models/{name.lower()}.py").write_text(source, "utf-8")


@pytest.mark.parametrize("count", [2, 10])
def test_a_survey(project: Path, count: int) -> None:
    """Every target class with a capture, whether in this process or in several; the note counts the answers."""
    names = [f"Model{index}ForCausalLM" for index in range(count)]
    children(project, names)
    result = survey_engine("sglang@adds", ())
    assert sorted(wiring.target_class or "" for wiring in result.wirings) == sorted([*names, "LlamaForCausalLM"])
    assert {str(wiring) for wiring in result.wirings} == {"h[2] ⊕ h[6] ⊕ h[9]"}
    (note,) = result.notes
    assert f"{count + 1} target classes with a capture" in note and f"{count + 1} exact" in note


def test_a_survey_is_the_same_in_one_process(project: Path) -> None:
    """The order of the classes does not depend on how the work was shared."""
    children(project, [f"Model{index}ForCausalLM" for index in range(9)])
    assert (
        survey_engine("sglang@adds", (), processes=1).wirings == survey_engine("sglang@adds", (), processes=2).wirings
    )


def test_a_survey_names_what_does_not_parse(project: Path) -> None:
    """One broken model does not hide the others."""
    children(project, ["ModelForCausalLM"])
    (project / "adds/sglang/srt/models/modelforcausallm.py").write_text("EntryClass = X\nclass X(:\n", "utf-8")
    result = survey_engine("sglang@adds", ())
    assert [wiring.target_class for wiring in result.wirings] == ["LlamaForCausalLM"]
    assert len(result.problems) == 1 and "modelforcausallm.py:2" in result.problems[0]


@pytest.mark.parametrize(("vocabulary", "taken"), [(32000, True), (128256, False)])
def test_the_nearest_target_may_be_that_of_another_draft(
    vocabulary: int, taken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither width nor vocabulary is the same: then it is not taken, unless it is named. One that differs is a fault."""
    monkeypatch.chdir(tmp_path)
    own = {**draft([1, 5, 8]), "hidden_size": 4096, "vocab_size": 32000, "draft_vocab_size": 32000}
    write(tmp_path / "draft/config.json", own)
    target = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 12, "hidden_size": 8192}
    write(tmp_path / "target/config.json", {**target, "vocab_size": vocabulary})
    (guessed,) = assemble_pipelines([tmp_path])
    facts, _, notes, _ = gather(guessed, Options())
    assert (facts.target is not None) == taken
    assert any("was not taken for its target" in note for note in notes) != taken
    (named,) = assemble_pipelines([tmp_path], target=tmp_path / "target")
    assert gather(named, Options())[0].target is not None
