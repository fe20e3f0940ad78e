"""What a profile tells of a class of drafts: modules and names for a config that was foreseen, and else nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.draft_modules import DraftModules
from eaglelint.engines.profile import Profile
from eaglelint.engines.profile_drafts import Build, Builds, DraftFacts
from eaglelint.engines.profile_file import profile_text, read_profile, write_profile
from eaglelint.engines.profile_part import profile_from
from eaglelint.exceptions import UnreadableInput
from eaglelint.recalled_modules import recalled_modules

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas/profile.schema.json").read_text("utf-8"))
LAYER = "model.layers.{i}"
BUILDS = Builds(
    "Draft",
    accepts=(
        (("hidden_size",), ("number",)),
        (("eagle_config",), ("absent", "section")),
        (("eagle_config", "ids"), ("ids 3",)),
    ),
    switches=((("fc_norm",), (("absent", "false"), ("true",))),),
    builds=(Build((0, 1, 2, 3), ("model.layers.{i}.mlp",)), Build((0, 1, 2, 3, 4), (), (1,))),
    modules=(
        (f"{LAYER}.input_layernorm", True, "srt/models/a.py:10"),
        ("model.layers.0.hidden_norm", True, "srt/models/a.py:11"),
        (f"{LAYER}.post_attention_layernorm", True, "srt/models/a.py:12"),
        ("model.fc", False, "srt/models/a.py:20"),
        ("model.fc_norm.0", True, "srt/models/a.py:21"),
    ),
    loads={
        "fc": ("model.fc",),
        "fc_norm.0": ("model.fc_norm.0",),
        "layers.{i}.input_layernorm": (f"{LAYER}.input_layernorm",),
        "layers.0.hidden_norm": ("model.layers.0.hidden_norm",),
        "midlayer.hidden_norm": ("model.layers.0.hidden_norm",),
    },
    stops=("norm",),
    loader="srt/models/a.py:40",
)
PROFILE = Profile(
    "sglang",
    "1.2.3",
    mappings=(),
    classes={},
    drafts={"DraftEagle3": DraftFacts(builds={"eagle3": 0}), "Other": DraftFacts()},
    builds=(BUILDS,),
    names=("fc", "fc_norm.0", "layers.{i}.hidden_norm", "layers.{i}.input_layernorm", "midlayer.hidden_norm", "norm"),
)


def told(names: tuple[str, ...], kind: str = "eagle3", cls: str = "DraftEagle3", **config: Any) -> DraftModules | None:
    data = {"architectures": [cls], "hidden_size": 64, "num_hidden_layers": 1, **config}
    draft = DraftConfig.parse("config.json", json.dumps(data).encode())
    return recalled_modules(PROFILE, draft, kind, names)


def test_the_modules_of_each_layer() -> None:
    """In the order in which layers are built, with the release and the line; one norm is in the first layer alone."""
    found = told(("fc",), num_hidden_layers=2)
    assert found is not None
    assert [(module.path, module.line) for module in found.modules] == [
        ("model.layers.0.input_layernorm", 10),
        ("model.layers.0.hidden_norm", 11),
        ("model.layers.0.post_attention_layernorm", 12),
        ("model.layers.1.input_layernorm", 10),
        ("model.layers.1.post_attention_layernorm", 12),
        ("model.fc", 20),
    ]
    assert {module.file for module in found.modules} == {"sglang 1.2.3: srt/models/a.py"}
    assert found.unknown == ("model.layers.0.mlp", "model.layers.1.mlp")
    assert (found.engine, found.cls, found.loader) == ("sglang 1.2.3", "Draft", ("sglang 1.2.3: srt/models/a.py", 40))


@pytest.mark.parametrize(
    ("names", "config", "loaded"),
    [
        (("fc", "fc_norm.0"), {}, (("fc", "model.fc"),)),
        (("fc", "fc_norm.0"), {"fc_norm": True}, (("fc", "model.fc"), ("fc_norm.0", "model.fc_norm.0"))),
        (
            ("layers.0.hidden_norm", "layers.1.hidden_norm", "layers.1.input_layernorm"),
            {"num_hidden_layers": 2},
            (
                ("layers.0.hidden_norm", "model.layers.0.hidden_norm"),
                ("layers.1.input_layernorm", "model.layers.1.input_layernorm"),
            ),
        ),
        (("midlayer.hidden_norm",), {}, (("midlayer.hidden_norm", "model.layers.0.hidden_norm"),)),
        (("fc", "norm"), {}, None),
        (("layers.0.post_attention_layernorm",), {}, "nothing"),
    ],
)
def test_what_a_checkpoint_fills(names: tuple[str, ...], config: dict[str, Any], loaded: Any) -> None:
    """Only what is built; a name with which the loader stopped leaves it open, and one that was not tried all."""
    found = told(names, **config)
    assert (found.loaded if found is not None else "nothing") == loaded


@pytest.mark.parametrize(
    "config",
    [
        {"hidden_size": "wide"},
        {"hidden_size": 0},
        {"eagle_config": {"ids": [1, 2]}},
        {"eagle_config": {"other": 1}},
        {"eagle_config": []},
        {"fc_norm": 3},
        {"fc_norm": True, "num_hidden_layers": 2},
        {"num_hidden_layers": 0},
        {"num_hidden_layers": None},
        {"architectures": ["Other"]},
        {"architectures": ["Other", "DraftEagle3"]},
    ],
)
def test_a_config_that_was_not_foreseen(config: dict[str, Any]) -> None:
    """An answer that was not tried, a number of layers that was not, and a class of which nothing was learned."""
    assert told(("fc",)) is not None
    assert told(("fc",), **config) is None


def test_a_section_that_is_there() -> None:
    """Its keys are asked for only then: without it the config is as the one that all was learned from."""
    assert told(("fc",), eagle_config={"ids": [1, 2, 3]}) == told(("fc",))


def test_another_kind_of_draft() -> None:
    """What was learned for one kind says nothing of another."""
    assert told(("fc",), kind="dflash") is None


def test_written_and_read(tmp_path: Path) -> None:
    """The file is as the schema says, and both readers make the same of it."""
    write_profile(PROFILE, tmp_path / "p.json")
    data = json.loads((tmp_path / "p.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(SCHEMA).validate(data)
    assert read_profile(tmp_path / "p.json", "p.json") == profile_from(data) == PROFILE


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        (replace(PROFILE, builds=()), "DraftEagle3 refers to builds 0 for eagle3"),
        (replace(PROFILE, builds=(replace(BUILDS, builds=()),)), "another number of choices"),
        (replace(PROFILE, builds=(replace(BUILDS, modules=()),)), "refer to a module that is not there"),
        (replace(PROFILE, builds=(replace(BUILDS, loader="a.py"),)), "'a.py', which is no line"),
    ],
)
def test_what_cannot_be_a_profile(profile: Profile, said: str, tmp_path: Path) -> None:
    """References that lead nowhere are refused with a sentence."""
    (tmp_path / "p.json").write_text(profile_text(profile), "utf-8")
    with pytest.raises(UnreadableInput, match=said):
        read_profile(tmp_path / "p.json", "p.json")
