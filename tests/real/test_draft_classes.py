"""Which classes of drafts the released engines register, and which they do not; their profiles tell the same."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.draft_class import DraftClass, draft_class, recalled_class
from eaglelint.engines.base import DraftRegistry
from eaglelint.engines.profile_file import bundled_profile
from eaglelint.serving import EngineHandle

pytestmark = pytest.mark.real

# architecture, engine, release, whether it is registered (models/registry.py of vLLM, EntryClass of SGLang's files)
CLASSES = [
    ("LlamaForCausalLMEagle3", "sglang", "0.5.9", True),
    ("LlamaForCausalLMEagle3", "sglang", "0.5.23", True),
    ("LlamaForCausalLMEagle3", "vllm", "0.33.0", True),
    ("Eagle3LlamaForCausalLM", "vllm", "0.33.0", True),
    ("Eagle3LlamaForCausalLM", "sglang", "0.5.23", False),
    ("DFlashDraftModel", "sglang", "0.5.9", False),
    ("DFlashDraftModel", "sglang", "0.5.23", True),
    ("LlamaForCausalLM", "vllm", "0.33.0", True),
    ("EagleQwen2ForCausalLM", "vllm", "0.33.0", False),
]


@pytest.mark.parametrize(("architecture", "engine", "version", "registered"), CLASSES)
def test_a_class_is_registered_or_not(
    architecture: str,
    engine: str,
    version: str,
    registered: bool,
    real_engine: Callable[[str, str], EngineHandle],
) -> None:
    draft = _draft(architecture)
    found = draft_class(real_engine(engine, version), draft)
    assert found is not None
    assert (found.registered, len(found.known) > 5) == (registered, True)


def _draft(*architectures: str) -> DraftConfig:
    return DraftConfig.parse("config.json", json.dumps({"architectures": architectures}).encode())


def _without_paths(found: DraftClass | None) -> object:
    """What is told, with the lines but without how their files are shown."""
    assert found is not None
    join = found.join and (found.join.order, found.join.place.span.start.line, found.join.place.code)
    stubs = [(stub.cls, stub.gives.span.start.line, stub.drafts) for stub in found.norm_stubs]
    return found.engine, found.names, found.registered, found.known, join, stubs


RELEASES = [("sglang", "0.5.9"), ("sglang", "0.5.23"), ("vllm", "0.13.0"), ("vllm", "0.22.1"), ("vllm", "0.33.0")]


@pytest.mark.parametrize(("engine", "version"), RELEASES)
def test_a_profile_tells_the_same(engine: str, version: str, real_engine: Callable[[str, str], EngineHandle]) -> None:
    """Of every class of drafts, of target classes, of names that another engine has and of one that nobody has."""
    handle, profile = real_engine(engine, version), bundled_profile(engine, version)
    assert profile is not None
    assert isinstance(handle.engine, DraftRegistry)
    _, drafts = handle.engine.registered(handle.source)
    others = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Eagle3LlamaForCausalLM", "DFlashDraftModel", "NobodysDraftModel")
    for names in (*((name,) for name in (*drafts, *others)), ("NobodysDraftModel", "LlamaForCausalLMEagle3")):
        draft = _draft(*names)
        told = _without_paths(recalled_class(profile, draft))
        assert told == _without_paths(draft_class(handle, draft)), names
