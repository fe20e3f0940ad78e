"""Every bundled profile is whole: it can be read, is as the schema says, and is written as the tool writes it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from eaglelint.engines.profile_file import (
    bundled_engines,
    bundled_profile,
    bundled_servers,
    bundled_versions,
    profile_text,
    read_profile,
)
from eaglelint.engines.profile_part import bundled_part
from eaglelint.engines.recall import class_in, recall

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "schemas/profile.schema.json").read_text("utf-8"))
BUNDLED = [(engine, version) for engine in ("sglang", "transformers", "vllm") for version in bundled_versions(engine)]


@pytest.mark.parametrize(("engine", "version"), BUNDLED)
def test_a_bundled_profile(engine: str, version: str) -> None:
    """Its file and its content name the same release, nobody edited it, and it knows most of its classes."""
    text = (ROOT / f"eaglelint/engines/profiles/{engine}-{version}.json").read_text("utf-8")
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))
    profile = bundled_profile(engine, version)
    assert profile is not None
    assert (profile.engine, profile.version) == (engine, version)
    assert profile_text(profile) == text
    counts = profile.counts("eagle3")
    assert counts["exact"] > 0
    assert len(text) < 210_000


def test_releases_over_a_year() -> None:
    """Of both engines three or more releases are bundled."""
    assert [len(bundled_versions(engine)) >= 3 for engine in ("sglang", "vllm")] == [True, True]
    assert ("sglang", "0.5.9") in BUNDLED


def test_transformers_is_no_server() -> None:
    """Its profile says what a target's states are; no draft is held against it that nobody held against it."""
    assert set(bundled_engines()) - set(bundled_servers()) == {"transformers"}


EVERY = [(engine, version) for engine in bundled_engines() for version in bundled_versions(engine)]


@pytest.mark.parametrize(("engine", "version"), EVERY)
def test_what_is_bundled_would_be_taken_from_a_user(engine: str, version: str) -> None:
    """A bundled profile is read as it stands: a reader that checks every value makes the same of it."""
    name = f"{engine}-{version}.json"
    assert bundled_profile(engine, version) == read_profile(ROOT / "eaglelint/engines/profiles" / name, name)


@pytest.mark.parametrize(("engine", "version"), EVERY)
@pytest.mark.parametrize("kind", ["eagle3", "dflash", "dspark"])
def test_a_part_answers_as_the_whole(engine: str, version: str, kind: str) -> None:
    """For the target that it was asked for; other classes are not in it."""
    whole = bundled_profile(engine, version)
    assert whole is not None
    for name in (*list(whole.classes)[:5], *list(whole.aliases)[:3], *whole.without_capture[:2], "NoSuchForCausalLM"):
        part = bundled_part(engine, version, (name,), kind)
        cls = class_in(part, name)
        assert (cls, len(part.classes) <= 1) == (class_in(whole, name), True)
        if cls is not None:
            data = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 30, 58]}}
            assert recall(part, cls, kind, 61, draft_data=data) == recall(whole, cls, kind, 61, draft_data=data)
