"""A pipeline comes from flags, else from the settings, else from what lies about; nothing ambiguous is guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eaglelint.exceptions import WrongUsage
from eaglelint.project.pipelines import PipelineInput, assemble_pipelines
from eaglelint.project.settings import ProjectSettings, Settings

DRAFT = {"architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1}
TARGET = {"architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 61}
EMBEDDED = {"architectures": ["DeepseekV4ForCausalLM"], "num_hidden_layers": 43, "dspark_target_layer_ids": [40]}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tree(root: Path, files: dict[str, Any]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))


def configured(root: Path, **table: Any) -> ProjectSettings:
    return ProjectSettings(Settings.model_validate(table), root / "eaglelint.toml")


def target_of(pipeline: PipelineInput, root: Path) -> str | None:
    return None if pipeline.target is None else pipeline.target.relative_to(root).as_posix()


def test_flags_make_one_pipeline(project: Path) -> None:
    """They are taken as they are: nothing is read or looked for."""
    (pipeline,) = assemble_pipelines(
        [],
        draft=Path("d.json"),
        target=Path("t"),
        training=[Path("a.py"), Path("b")],
        trained_by="layer-output",
        serving=["sglang==0.5.9"],
        assume=["x"],
        draft_kind="eagle3",
    )
    assert PipelineInput(
        "d.json", Path("d.json"), Path("t"), (Path("a.py"), Path("b")), "layer-output", ("sglang==0.5.9",), ("x",), "eagle3"
    ) == pipeline  # fmt: skip


def test_what_a_named_draft_leaves_open_is_looked_for_under_the_paths(project: Path) -> None:
    """``--draft`` with a path beside it."""
    tree(project, {"d.json": DRAFT, "m/config.json": TARGET, "train.py": ""})
    (pipeline,) = assemble_pipelines([Path()], draft=Path("d.json"), serving=["vllm"])
    assert (target_of(pipeline, project), pipeline.serving) == ("m/config.json", ("vllm",))
    assert (project / "train.py",) == pipeline.training


def test_settings_are_relative_to_their_file(project: Path) -> None:
    """Also the source tree of an engine; a release is no path."""
    table = {
        "assume": ["all"],
        "pipeline": [
            {
                "name": "kimi",
                "draft": "d",
                "target": "t",
                "training": ["x.py"],
                "serving": ["sglang@../s", "vllm==0.33.0"],
            },
            {"draft": "e/config.json", "trained-by": "boundary", "draft-kind": "dflash"},
        ],
    }
    first, second = assemble_pipelines([], settings=configured(project / "sub", **table), assume=["here"])
    assert ("kimi", project / "sub/d", project / "sub/t") == (first.name, first.draft, first.target)
    assert (project / "sub/x.py",) == first.training
    assert (f"sglang@{project / 'sub/../s'}", "vllm==0.33.0") == first.serving
    assert first.assume == ("all", "here")
    assert (second.name, second.trained_by, second.draft_kind) == ("sub/e/config.json", "boundary", "dflash")


def test_flags_override_the_settings(project: Path) -> None:
    """One flag changes one thing, in every pipeline."""
    settings = configured(
        project, pipeline=[{"draft": "d", "target": "t", "serving": ["vllm"], "trained-by": "boundary"}]
    )
    (pipeline,) = assemble_pipelines([], settings=settings, serving=["sglang"], target=Path("other"))
    assert (("sglang",), Path("other"), "boundary") == (pipeline.serving, pipeline.target, pipeline.trained_by)


def test_named_paths_choose_among_the_settings_pipelines(project: Path) -> None:
    """A commit hook hands over the changed files; a path of no pipeline is looked through instead."""
    tree(project, {"c/config.json": DRAFT})
    settings = configured(
        project,
        pipeline=[
            {"name": "a", "draft": "a/config.json", "training": ["train"]},
            {"name": "b", "draft": "b", "serving": ["sglang@engine"]},
        ],
    )

    def chosen(*paths: str) -> list[str]:
        return [pipeline.name for pipeline in assemble_pipelines([Path(path) for path in paths], settings=settings)]

    assert chosen(".") == ["a", "b"]
    assert chosen("train/dump.py") == ["a"]
    assert chosen("b/config.json") == ["b"]
    assert chosen("engine/srt/models/x.py") == ["b"]
    assert chosen("c") == ["c/config.json"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"draft/config.json": DRAFT, "target/config.json": TARGET}, {"draft/config.json": "target/config.json"}),
        ({"draft.json": DRAFT, "config.json": TARGET}, {"draft.json": "config.json"}),
        (
            {"a/draft/config.json": DRAFT, "a/target/config.json": TARGET, "b/d.json": DRAFT, "b/target.json": TARGET},
            {"a/draft/config.json": "a/target/config.json", "b/d.json": "b/target.json"},
        ),
        (
            {"draft/config.json": DRAFT, "target/config.json": TARGET, "other/config.json": TARGET},
            {"draft/config.json": "target/config.json"},
        ),
        ({"d/config.json": DRAFT, "x/config.json": TARGET, "y/config.json": TARGET}, {"d/config.json": None}),
        ({"d/config.json": DRAFT}, {"d/config.json": None}),
        ({"v4/config.json": EMBEDDED, "x/config.json": TARGET}, {"v4/config.json": "v4/config.json"}),
        (
            {"d.json": DRAFT, "t.json": TARGET, "sglang/srt/x.py": "", "sglang/test/config.json": TARGET},
            {"d.json": "t.json"},
        ),
        ({"x.json": TARGET}, {}),
    ],
)
def test_a_found_draft_meets_the_nearest_target_if_there_is_one(
    project: Path, files: dict[str, Any], expected: dict[str, str | None]
) -> None:
    """A directory called target decides between several; else a choice is left to the user, with a note."""
    tree(project, files)
    pipelines = assemble_pipelines([project])
    assert expected == {pipeline.name: target_of(pipeline, project) for pipeline in pipelines}
    assert all((pipeline.target is None) == bool(pipeline.notes) for pipeline in pipelines)


def test_an_open_choice_is_named(project: Path) -> None:
    """The note lists the candidates and the flag; with the flag there is no note."""
    tree(project, {"d.json": DRAFT, "x.json": TARGET, "y.json": TARGET})
    (pipeline,) = assemble_pipelines([Path()])
    assert pipeline.notes == ("d.json: 2 configs could be its target (x.json, y.json). Name one with --target.",)
    (pipeline,) = assemble_pipelines([Path()], target=Path("x.json"))
    assert pipeline.notes == ()


def test_found_code_is_training_or_an_engine(project: Path) -> None:
    """Code inside an engine's package is served, all other may have trained."""
    tree(project, {"d.json": DRAFT, "train.py": "", "e/sglang/srt/models/x.py": "", "e/setup.py": ""})
    (pipeline,) = assemble_pipelines([])
    assert [path.relative_to(project).as_posix() for path in pipeline.training] == ["e/setup.py", "train.py"]
    assert pipeline.serving == ("sglang@e/sglang",)


def test_settings_decide_what_is_looked_through(project: Path) -> None:
    """Their ``exclude`` counts, and without paths their directory does."""
    tree(project, {"sub/d.json": DRAFT, "sub/old/e.json": DRAFT, "f.json": DRAFT})
    pipelines = assemble_pipelines([], settings=configured(project / "sub", exclude=["old/**"]))
    assert [pipeline.name for pipeline in pipelines] == ["sub/d.json"]


def test_flags_without_any_draft_are_wrong_usage(project: Path) -> None:
    """Silence would pass for a clean result."""
    with pytest.raises(WrongUsage, match="--draft"):
        assemble_pipelines([project], target=Path("t.json"))
    assert assemble_pipelines([project], serving=["vllm"]) == ()


SERVE = "python -m sglang.launch_server --speculative-draft-model-path"

# scripts by name, the one that is taken for a/config.json, beside how many other drafts
SCRIPTS: list[tuple[dict[str, str], str | None, int]] = [
    ({"s.sh": f"{SERVE} a"}, "s.sh", 1),
    ({"s.sh": f"{SERVE} lab/a-model-eagle3"}, "s.sh", 0),
    ({"s.sh": f"{SERVE} lab/a-model-eagle3"}, None, 1),
    ({"s.sh": f"{SERVE} $DRAFT"}, "s.sh", 1),
    ({"s.sh": f"{SERVE} models/a", "t.sh": f"{SERVE} models/b0"}, "s.sh", 1),
    ({"s.sh": f"{SERVE} a", "t.sh": f"{SERVE} a"}, None, 0),
    ({"s.sh": "ls"}, None, 0),
]


@pytest.mark.parametrize(("scripts", "expected", "others"), SCRIPTS)
def test_the_script_that_starts_an_engine(
    project: Path, scripts: dict[str, str], expected: str | None, others: int
) -> None:
    """It is taken where it is clear that it starts this draft."""
    drafts = {"a/config.json": DRAFT, **{f"b{number}/config.json": DRAFT for number in range(others)}}
    tree(project, {**drafts, **scripts})
    first = assemble_pipelines([project])[0]
    assert (first.launch and first.launch.name) == expected
