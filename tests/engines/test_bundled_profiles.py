"""Every bundled profile is whole: it can be read, is as the schema says, and is written as the tool writes it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from eaglelint.engines.profile_file import bundled_profile, bundled_versions, profile_text

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "schemas/profile.schema.json").read_text("utf-8"))
BUNDLED = [(engine, version) for engine in ("sglang", "vllm") for version in bundled_versions(engine)]


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
    assert len(text) < 200_000


def test_releases_over_a_year() -> None:
    """Of both engines several releases are bundled."""
    assert {engine for engine, _ in BUNDLED} == {"sglang", "vllm"}
    assert ("sglang", "0.5.9") in BUNDLED
