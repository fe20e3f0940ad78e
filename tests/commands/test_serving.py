"""What ``--serving`` finds without importing anything, and what is gathered from it for the rules."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from eaglelint.exceptions import UnreadableInput, WrongUsage
from eaglelint.project.pipelines import PipelineInput
from eaglelint.rule import Served
from eaglelint.scan import Options, gather
from eaglelint.serving import open_serving

MINI = Path(__file__).parents[1] / "rules/projects/mini-sglang"
NESTED = ("eagle_config", "eagle_aux_hidden_state_layer_ids")
TOP = ("eagle_aux_hidden_state_layer_ids",)


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """A copy of the small engine: the directory that holds ``sglang/``."""
    shutil.copytree(MINI, tmp_path / "engine")
    return tmp_path / "engine"


def metadata(directory: Path, name: str, version: str) -> None:
    """The metadata that an installer leaves beside a package."""
    place = directory / f"{name}-{version}.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n\nVersion: 0\n")


# --- the source ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["sglang@.", "sglang@sglang", "SGLang@sglang", " sglang@. "])
def test_the_package_or_what_holds_it(engine: Path, spec: str) -> None:
    """A path may be the package or the directory around it."""
    source = open_serving(spec, root=engine).source
    assert (source.package, source.engine) == (engine / "sglang", "sglang")


def test_a_checkout(engine: Path) -> None:
    """In a checkout of SGLang the package lies in python/."""
    (engine / "python").mkdir()
    (engine / "sglang").rename(engine / "python/sglang")
    assert open_serving("sglang@.", root=engine).source.package == engine / "python/sglang"


def test_the_version_from_a_file(engine: Path) -> None:
    """A source tree says its release in version.py."""
    assert open_serving("sglang@.", root=engine).source.version == "0.5.9+mini"


def test_the_version_from_the_metadata(engine: Path) -> None:
    """What an installer wrote beside the package is stronger than version.py; other packages' is not looked at."""
    metadata(engine, "sglang", "0.5.10")
    metadata(engine, "sglang_router", "9.9.9")
    source = open_serving("sglang@.", root=engine).source
    assert (source.version, source.label) == ("0.5.10", "sglang 0.5.10")


def test_no_version(engine: Path) -> None:
    """A tree that says no release is read all the same."""
    (engine / "sglang/version.py").unlink()
    assert open_serving("sglang@.", root=engine).source.version is None


def test_the_installed_package(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name alone is the package on the path; it is read and never imported, not even its ``__init__``."""
    (engine / "sglang/__init__.py").write_text('raise RuntimeError("imported")\n')
    metadata(engine, "sglang", "0.5.11")
    monkeypatch.syspath_prepend(engine)
    handle = open_serving("sglang", root=Path.cwd())
    assert (handle.source.package, handle.source.version) == (engine / "sglang", "0.5.11")
    assert handle.engine.target_class(handle.source, "LlamaForCausalLM") is not None
    assert [name for name in sys.modules if name.partition(".")[0] == "sglang"] == []


def test_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A directory of that name on the path that holds no engine is none."""
    (tmp_path / "sglang").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(UnreadableInput, match="sglang is not installed here"):
        open_serving("sglang", root=tmp_path)


@pytest.mark.parametrize("spec", ["", "@here", "sglang@", "sglang==", "sglang>=0.5", "ollama@."])
def test_what_names_no_engine(tmp_path: Path, spec: str) -> None:
    """Anything but ENGINE, ENGINE@PATH and ENGINE==VERSION is refused, and the known engines are listed."""
    with pytest.raises(
        WrongUsage, match=r"Known are llama\.cpp, lmdeploy, mlx-vlm, sglang, tensorrt-llm, transformers, vllm"
    ):
        open_serving(spec, root=tmp_path)


# --- what the rules are told ---------------------------------------------------------------------------------------


def served(engine: Path, config: dict[str, object], *, trained_by: str | None = None, num_layers: int = 61) -> Served:
    """What is gathered of a draft with this config on the small engine."""
    draft = engine.parent / "draft"
    draft.mkdir()
    (draft / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLMEagle3"], **config}))
    pipeline = PipelineInput("draft", draft, serving=(f"sglang@{engine}",), trained_by=trained_by)
    facts, problems, *_ = gather(pipeline, Options(num_layers, "LlamaForCausalLM"))
    assert problems == ()
    (one,) = facts.servings
    return one


def nested(*ids: int) -> dict[str, object]:
    return {"eagle_config": {"eagle_aux_hidden_state_layer_ids": list(ids)}}


def test_where_the_engine_looks(engine: Path) -> None:
    """Ids at the top level are ignored, and the place where this engine would take them is found."""
    one = served(engine, {"eagle_aux_hidden_state_layer_ids": [3, 31, 59]})
    assert one.wiring.layer_ids == "default"
    assert one.wiring.ignored == (TOP,)
    assert NESTED in one.looks_in
    assert TOP not in one.looks_in


def test_an_engine_that_looks_at_the_top(engine: Path) -> None:
    """The place is derived from the engine's source: a copy that reads the top level takes ids there."""
    runner = engine / "sglang/srt/model_executor/model_runner.py"
    text = runner.read_text("utf-8")
    line = 'self.eagle_aux_hidden_state_layer_ids = eagle_config["eagle_aux_hidden_state_layer_ids"]'
    assert line in text
    moved = "self.eagle_aux_hidden_state_layer_ids = draft_model_config.hf_config.eagle_aux_hidden_state_layer_ids"
    text = text.replace(line, moved).replace("eagle_config.get(", "(eagle_config or {}).get(")
    runner.write_text(text, "utf-8")
    one = served(engine, {"eagle_aux_hidden_state_layer_ids": [3, 31, 59]})
    assert (one.wiring.layer_ids, one.wiring.ids_from, one.looks_in) == ((3, 31, 59), TOP, ())


def test_ids_that_are_read_need_no_other_place(engine: Path) -> None:
    """Where the engine takes the ids, no other place is looked for."""
    one = served(engine, nested(2, 30, 58))
    assert (one.wiring.layer_ids, one.wiring.ids_from, one.looks_in) == ((2, 30, 58), NESTED, ())


@pytest.mark.parametrize(
    ("trained_by", "mended"),
    [("boundary", (2, 30, 58)), ("layer-output", None), (None, None)],
)
def test_mended_ids(engine: Path, trained_by: str | None, mended: tuple[int, ...] | None) -> None:
    """Ids that serve what was trained are proposed only where it is known and not served already."""
    one = served(engine, nested(3, 31, 59), trained_by=trained_by)
    assert str(one.wiring) == "h[4] ⊕ h[32] ⊕ h[60]"
    assert one.mended_ids == mended


def test_mended_ids_follow_the_engine(engine: Path) -> None:
    """For a copy that adds nothing, the same draft needs other ids: the proposal is derived, not known."""
    setter = engine / "sglang/srt/models/capture.py"
    text = setter.read_text("utf-8")
    assert "layer_id + 1" in text
    setter.write_text(text.replace("layer_id + 1", "layer_id"), "utf-8")
    one = served(engine, nested(2, 30, 58), trained_by="layer-output")
    assert (str(one.wiring), one.mended_ids) == ("h[2] ⊕ h[30] ⊕ h[58]", (3, 31, 59))


@pytest.mark.parametrize(
    ("ids", "uncaptured"),
    [((2, 30, 58), ()), ((2, 30, 60), (2,)), ((60, 2, 30), (0,)), ((2, 60, 61), (1, 2)), ((2, 2, 58), ())],
)
def test_uncaptured(engine: Path, ids: tuple[int, ...], uncaptured: tuple[int, ...]) -> None:
    """The positions of ids that this loop never reaches; a repeated id is another rule's matter."""
    assert served(engine, nested(*ids)).uncaptured == uncaptured


def test_uncaptured_depends_on_the_depth(engine: Path) -> None:
    """Of 62 layers the id 60 is reached."""
    one = served(engine, nested(2, 30, 60), num_layers=62)
    assert (str(one.wiring), one.uncaptured) == ("h[3] ⊕ h[31] ⊕ h[61]", ())
