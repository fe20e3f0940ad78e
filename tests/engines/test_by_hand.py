"""Engines whose source is not interpreted: what a person read, as data, each fact with its file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from eaglelint.cli.app import app
from eaglelint.engines.profile_file import bundled_profile, profile_text
from eaglelint.engines.recall import recall
from eaglelint.exceptions import WrongUsage
from eaglelint.serving import open_serving
from eaglelint.wiring import LayerIds

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "schemas/profile.schema.json").read_text("utf-8"))
RELEASES = (("llama.cpp", "0274f0f"), ("mlx-vlm", "0.7.10"), ("tensorrt-llm", "001e670"))


@pytest.mark.parametrize(("engine", "version"), RELEASES)
def test_the_file(engine: str, version: str) -> None:
    """It follows the schema, is written as profiles are, and names a repository, a version and a file for each fact."""
    text = (ROOT / f"eaglelint/engines/profiles/{engine}-{version}.json").read_text("utf-8")
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))
    profile = bundled_profile(engine, version)
    assert profile is not None
    assert profile_text(profile) == text
    for fact in profile.by_hand:
        repository, release, file = fact.split(" ")[:3]
        assert "/" in repository and release and re.fullmatch(r"[\w./-]+\.(py|cpp)(:[\d-]+)?[,:]", file), fact


@pytest.mark.parametrize(
    ("engine", "ids", "slots"),
    [
        ("llama.cpp", "default", "h[2] ⊕ h[20] ⊕ h[37]"),
        ("llama.cpp", (30, 2, 40), "h[30] ⊕ h[2] ⊕ h[40]"),
        ("llama.cpp", (2, 20, 41), ""),
        ("llama.cpp", (2, 20), ""),
        ("mlx-vlm", (30, 2, 40), "h[2] ⊕ h[30] ⊕ h[40]"),
        ("mlx-vlm", (2, 20, 41), "h[2] ⊕ h[20]"),
        ("mlx-vlm", (0, 2), ""),
        ("tensorrt-llm", "default", "h[2] ⊕ h[20] ⊕ h[37]"),
        ("tensorrt-llm", (39, 1, 40), "h[2] ⊕ h[40]"),
        ("tensorrt-llm", (-1, 1), ""),
        ("mlx-vlm", "default", ""),
    ],
)
def test_what_ids_mean(engine: str, ids: LayerIds, slots: str) -> None:
    """Boundaries; the edges as they were read, and nothing where they were not."""
    profile = bundled_profile(engine, dict(RELEASES)[engine])
    assert profile is not None
    wiring = recall(profile, "any target", "eagle3", 40, layer_ids=ids)
    assert (str(wiring) if wiring.slots else "", wiring.status) == (slots, "exact" if slots else "unknown")


@pytest.mark.parametrize("engine", dict(RELEASES))
def test_other_kinds_were_not_read(engine: str) -> None:
    """Unknown, and no fault: that an engine cannot serve them is nowhere said."""
    profile = bundled_profile(engine, dict(RELEASES)[engine])
    assert profile is not None
    wiring = recall(profile, "any target", "dflash", 40)
    assert (wiring.status, wiring.slots, wiring.faults) == ("unknown", (), ())
    assert wiring.reason == f"what {profile.label} feeds dflash drafts was not read"


@pytest.mark.parametrize(
    ("draft", "llama", "mlx"),
    [
        ({"eagle_aux_hidden_state_layer_ids": [1, 19, 35]}, "h[2] ⊕ h[20] ⊕ h[37]", "h[1] ⊕ h[19] ⊕ h[35]"),
        (
            {"eagle_aux_hidden_state_layer_ids": [1, 19, 35], "target_layer_ids": [4, 5, 6]},
            "h[2] ⊕ h[20] ⊕ h[37]",
            "h[4] ⊕ h[5] ⊕ h[6]",
        ),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 19, 35]}}, "h[2] ⊕ h[20] ⊕ h[37]", ""),
    ],
)
def test_where_ids_are_looked_for(draft: dict[str, Any], llama: str, mlx: str) -> None:
    """llama.cpp's converter and TensorRT-LLM never look; mlx-vlm looks at the top level, under two names."""
    for (engine, version), slots in zip(RELEASES, (llama, mlx, llama), strict=True):
        profile = bundled_profile(engine, version)
        assert profile is not None
        wiring = recall(profile, "any target", "eagle3", 40, draft_data=draft)
        assert (str(wiring) if wiring.slots else "") == slots


def test_it_is_listed_and_named() -> None:
    """engines list prints each fact; without a version one is told which there are."""
    printed = CliRunner().invoke(app, ["engines", "list"]).stdout
    assert "llama.cpp==0274f0f: any target; read by hand" in printed
    assert "ggml-org/llama.cpp 0274f0f, conversion/llama.py:73" in printed
    with pytest.raises(WrongUsage, match=r"Name what was read of it: llama\.cpp==0274f0f\.$"):
        open_serving("llama.cpp", root=ROOT)
