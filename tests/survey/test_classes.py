"""Target classes of an engine's tree, run without ids and with ids that reach for their last layer."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

from eaglelint.serving import open_source
from eaglelint.source.snapshot import Snapshot
from eaglelint.survey import classes
from eaglelint.survey.classes import survey_classes
from eaglelint.survey.facts import ClassFacts
from eaglelint.survey.work import survey_source

PROJECTS = Path(__file__).parent.parent / "rules/projects"


def surveyed(root: Path, project: str = "sound-sglang", **changes: tuple[str, str]) -> list[ClassFacts]:
    """The classes of a small engine, in whose files some text is replaced: ``llama=(old, new)``."""
    shutil.copytree(PROJECTS / project / "sglang", root / "sglang")
    for name, (old, new) in changes.items():
        file = root / f"sglang/srt/models/{name}.py"
        text = file.read_text("utf-8")
        assert old in text
        file.write_text(text.replace(old, new), "utf-8")
    handle = open_source(f"sglang@{root}", root=root, display_root=root)
    return survey_classes(handle.engine, handle.source, handle.engine.target_classes(handle.source))


def test_a_class_and_its_places(tmp_path: Path) -> None:
    """Its definition and its setter, by line and column; both runs; the line that stored the list."""
    (cls,) = surveyed(tmp_path)
    assert (cls.name, str(cls.place.span)) == ("LlamaForCausalLM", "sglang/srt/models/llama.py:57:7")
    assert cls.setter is not None and str(cls.setter.span) == "sglang/srt/models/capture.py:5:9"
    assert cls.default is not None and str(cls.default.wiring) == "h[2] ⊕ h[6] ⊕ h[9]"
    assert cls.last is not None and (cls.last.ids, str(cls.last.wiring)) == ((5, 11), "h[6] ⊕ h[12]")
    (stored,) = cls.last.stored
    assert (stored.name, stored.values, stored.ordered) == ("layers_to_capture", (6, 12), True)
    assert str(stored.place) == "sglang/srt/models/capture.py:10"
    assert [place.span.start.line for place in cls.last.captures] == [49, 52]
    assert cls.middle is None


@pytest.mark.parametrize(
    ("change", "ids", "slots"),
    [
        ("layer_id + 1", (5, 11), "h[6] ⊕ h[12]"),
        ("layer_id", (6, 12), "h[6] ⊕ h[12]"),
        # Neither of the two ways to count: nothing is asked of it.
        ("layer_id + 2", None, None),
    ],
)
def test_the_way_in_which_a_class_counts_ids(
    tmp_path: Path, change: str, ids: tuple[int, ...] | None, slots: str | None
) -> None:
    """The last state is asked for in the class's own way."""
    (cls,) = surveyed(tmp_path, capture=("layer_id + 1", change))
    if ids is None:
        assert cls.last is None
    else:
        assert cls.last is not None and (cls.last.ids, str(cls.last.wiring)) == (ids, slots)


def test_a_class_that_only_renames_another(tmp_path: Path) -> None:
    """It has the other's runs under its own name and place."""
    more = "class PhiForCausalLM(LlamaForCausalLM):\n    pass\n\n\nEntryClass = [LlamaForCausalLM, PhiForCausalLM]"
    llama, phi = surveyed(tmp_path, llama=("EntryClass = LlamaForCausalLM", more))
    assert (llama.name, phi.name) == ("LlamaForCausalLM", "PhiForCausalLM")
    assert phi.place != llama.place
    assert phi.default is not None and llama.default is not None
    assert (phi.default.wiring.target_class, phi.default.slots) == ("PhiForCausalLM", llama.default.slots)


def test_a_class_that_adds_something_is_run_itself(tmp_path: Path) -> None:
    more = (
        "class PhiForCausalLM(LlamaForCausalLM):\n"
        "    def set_eagle3_layers_to_capture(self, layer_ids=None):\n"
        "        self.model.layers_to_capture = [1]\n\n\n"
        "EntryClass = [LlamaForCausalLM, PhiForCausalLM]"
    )
    _, phi = surveyed(tmp_path, llama=("EntryClass = LlamaForCausalLM", more))
    assert phi.default is not None and str(phi.default.wiring) == "h[1]"


@pytest.mark.parametrize(
    ("body", "default"),
    [
        ("def load_weights(self, weights):\n        return super().load_weights(weights)", "h[2] ⊕ h[6] ⊕ h[9]"),
        ("def set_eagle3_layers_to_capture(self, layer_ids=None):\n        self.model.layers_to_capture = [1]", "h[1]"),
    ],
)
def test_a_class_of_another_file_that_adds_nothing_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, default: str
) -> None:
    """It is its base by another name, and that is run alone; else it is run itself."""
    run: list[str] = []
    survey = classes._survey

    def noted(engine: Any, source: Any, binding: Any, *, stages: bool) -> ClassFacts:
        run.append(binding.item.name)
        return survey(engine, source, binding, stages=stages)

    monkeypatch.setattr(classes, "_survey", noted)
    shutil.copytree(PROJECTS / "sound-sglang/sglang", tmp_path / "sglang")
    other = f"""from sglang.srt.models.llama import LlamaForCausalLM


class AlphaForCausalLM(LlamaForCausalLM):
    {body}


EntryClass = AlphaForCausalLM
"""
    (tmp_path / "sglang/srt/models/alpha.py").write_text(other, "utf-8")
    facts = survey_source(f"sglang@{tmp_path}", Snapshot(), {}, 1)
    assert [cls.name for cls in facts.classes] == ["AlphaForCausalLM", "LlamaForCausalLM"]
    alpha, llama = facts.classes
    assert alpha.default is not None and llama.default is not None
    assert (str(alpha.default.wiring), str(llama.default.wiring)) == (default, "h[2] ⊕ h[6] ⊕ h[9]")
    assert alpha.default.wiring.target_class == "AlphaForCausalLM"
    assert alpha.place.span.path.endswith("alpha.py")
    assert run == ["LlamaForCausalLM", "AlphaForCausalLM"][: 1 if default == "h[2] ⊕ h[6] ⊕ h[9]" else 2]
    assert (alpha.default.captures == llama.default.captures) == (alpha.default.slots == llama.default.slots)


def test_facts_travel_between_processes(tmp_path: Path) -> None:
    facts = surveyed(tmp_path)
    assert pickle.loads(pickle.dumps(facts)) == facts


@pytest.mark.parametrize(
    ("handed", "missing"),
    [
        ("config.method.create_weights(self, config.size)", ()),
        ("config.method.create_weights(\n            layer=self)", ()),
        ("register(config, self)", ()),
        ("super(LlamaModel, self).__init__()", ("LlamaModel.table",)),
        ("assert isinstance(self, nn.Module)", ("LlamaModel.table",)),
    ],
)
def test_what_an_object_is_handed_to_may_set(tmp_path: Path, handed: str, missing: tuple[str, ...]) -> None:
    """A method of quantisation gives a layer its weights: that no class sets them is no fault then."""
    kept = "        self.layers_to_capture = []\n\n    def forward(self, input_ids):\n"
    changed = kept.replace("\n\n", f"\n        {handed}\n\n") + "        table = self.table\n"
    (cls,) = surveyed(tmp_path, llama=(kept, changed))
    assert cls.default is not None
    assert tuple(name for name, _ in cls.default.missing) == missing


def test_what_torch_gives_to_every_module_is_not_missing(tmp_path: Path) -> None:
    """nn.Module has parameters(), though no class among the sources sets it."""
    changed = ("        residual = None\n", "        residual = None\n        next(self.parameters())\n")
    (cls,) = surveyed(tmp_path, llama=changed)
    assert cls.default is not None
    assert (cls.default.wiring.status, cls.default.missing) == ("exact", ())
