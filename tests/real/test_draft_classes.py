"""Which classes of drafts the released engines register, and which they do not."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.draft_class import draft_class
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
    draft = DraftConfig.parse("config.json", json.dumps({"architectures": [architecture]}).encode())
    found = draft_class(real_engine(engine, version), draft)
    assert found is not None
    assert (found.registered, len(found.known) > 5) == (registered, True)
