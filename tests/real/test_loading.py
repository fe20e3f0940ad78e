"""What the released engines make of a head and an embedding that a draft brings, against a reading of their code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from eaglelint.artifacts.checkpoint import read_checkpoint
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.artifacts.target import read_target
from eaglelint.draft_class import draft_class
from eaglelint.serving import EngineHandle
from eaglelint.survey.inherited import inherited_quantization
from tests.checkpoints import write_safetensors

pytestmark = pytest.mark.real

COMMON = {"hidden_size": 64, "vocab_size": 100, "num_attention_heads": 4, "num_key_value_heads": 4}
EAGLE, EAGLE3 = ("LlamaForCausalLMEagle",), ("LlamaForCausalLMEagle3",)

# Where the line stands that puts the target's weights in place (models/llama.py); vLLM keeps what a draft brings.
REPLACED = [
    ("sglang", "0.5.9", EAGLE, {"embed_tokens": 755, "lm_head": 756}),
    ("sglang", "0.5.9", EAGLE3, {"embed_tokens": 771}),
    ("sglang", "0.5.23", EAGLE, {"embed_tokens": 898, "lm_head": 899}),
    ("sglang", "0.5.23", EAGLE3, {"embed_tokens": 918}),
    ("vllm", "0.33.0", ("EagleLlamaForCausalLM",), {}),
    ("vllm", "0.33.0", ("Eagle3LlamaForCausalLM",), {}),
]


@pytest.mark.parametrize(("engine", "version", "architectures", "lines"), REPLACED)
def test_what_is_put_in_place_of_a_draft_s_own(
    engine: str,
    version: str,
    architectures: tuple[str, ...],
    lines: dict[str, int],
    real_engine: Callable[[str, str], EngineHandle],
    tmp_path: Path,
) -> None:
    """The modules that the draft brings in vain, each with the line that replaces it."""
    own = {
        "architectures": architectures,
        "num_hidden_layers": 1,
        "draft_vocab_size": 100,
        "tie_word_embeddings": False,
    }
    draft = DraftConfig.parse("config.json", json.dumps({**COMMON, **own}).encode())
    theirs = {**COMMON, "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 8}
    (tmp_path / "target.json").write_text(json.dumps(theirs))
    target = read_target(tmp_path / "target.json", "target.json")
    write_safetensors(tmp_path / "model.safetensors", {"embed_tokens.weight": ("F32", (100, 64))})
    checkpoint = read_checkpoint(tmp_path / "config.json", "config.json")
    found = draft_class(real_engine(engine, version), draft, target, checkpoint, kind=draft.kind)
    assert found is not None
    assert {unused.module: unused.place.span.start.line for unused in found.unused} == lines
    assert {unused.how for unused in found.unused} <= {"replaced"}


# vLLM 0.13.0 asks for the draft's own quantisation in models/llama_eagle*.py, and not in deepseek_eagle.py:34.
BUILT = [
    ("EagleLlamaForCausalLM", []),
    ("Eagle3LlamaForCausalLM", []),
    ("EagleDeepSeekMTPModel", ["models/deepseek_v2.py:142", "models/deepseek_v2.py:151"]),
]


@pytest.mark.parametrize(("architecture", "lines"), BUILT)
def test_what_is_built_with_the_target_s_quantisation(
    architecture: str, lines: list[str], real_engine: Callable[[str, str], EngineHandle]
) -> None:
    """Projections of a plain draft that are built for quantised weights, each with its line."""
    shape = {**COMMON, "model_type": "deepseek" if "DeepSeek" in architecture else "llama", "intermediate_size": 128}
    draft = {**shape, "architectures": [architecture], "num_hidden_layers": 1, "draft_vocab_size": 100}
    target = {**COMMON, "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 8}
    handle = real_engine("vllm", "0.13.0")
    kind = "eagle3" if "Eagle3" in architecture else "eagle"
    found = inherited_quantization(handle.engine, handle.source, kind, draft, target, 8)
    assert [str(item.place).partition("model_executor/")[2] for item in found] == lines
