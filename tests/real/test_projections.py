"""The ``fc`` that released engines make for a draft's config, against what a person read in their draft classes."""

from __future__ import annotations

from typing import Any

import pytest

from eaglelint.derive import ServingRequest, derive_serving
from eaglelint.projection import derive_projection

pytestmark = pytest.mark.real

_LLAMA = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": 2048,
    "target_hidden_size": 4096,
    "num_hidden_layers": 1,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 151936,
    "draft_vocab_size": 32000,
    "rms_norm_eps": 1e-5,
}
_NESTED = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 9, 17, 25, 32]}}
_TOP = {"eagle_aux_hidden_state_layer_ids": [2, 10, 18, 26, 33]}
_DFLASH = {
    **_LLAMA,
    "architectures": ["DFlashDraftModel"],
    "hidden_size": 4096,
    "num_hidden_layers": 5,
    "head_dim": 128,
    "intermediate_size": 12288,
    "num_target_layers": 36,
    "block_size": 16,
    "dflash_config": {"target_layer_ids": [1, 9, 17, 25, 33], "mask_token_id": 151669},
}

# (engine, version, draft, kind) -> (states that fc is made for, states fed, file:line)
CASES = [
    ("sglang", "0.5.9", {**_LLAMA, **_NESTED}, "eagle3", 3, 5, "srt/models/llama_eagle3.py:135"),
    ("sglang", "0.5.23", {**_LLAMA, **_NESTED}, "eagle3", 5, 5, "srt/models/llama_eagle3.py:163"),
    ("sglang", "0.5.23", {**_LLAMA, **_TOP}, "eagle3", 3, 3, "srt/models/llama_eagle3.py:163"),
    (
        "sglang",
        "0.5.23",
        {**_LLAMA, **_NESTED, "num_aux_hidden_states": 4},
        "eagle3",
        4,
        5,
        "srt/models/llama_eagle3.py:163",
    ),
    ("sglang", "0.5.23", _DFLASH, "dflash", 5, 5, "srt/models/dflash.py:772"),
    ("vllm", "0.33.0", {**_LLAMA, **_NESTED}, "eagle3", 5, 3, "model_executor/models/llama_eagle3.py:242"),
    ("vllm", "0.33.0", {**_LLAMA, **_TOP}, "eagle3", 3, 5, "model_executor/models/llama_eagle3.py:242"),
    (
        "vllm",
        "0.33.0",
        {**_LLAMA, **_TOP, "num_aux_hidden_states": 5},
        "eagle3",
        5,
        5,
        "model_executor/models/llama_eagle3.py:242",
    ),
    ("vllm", "0.33.0", _DFLASH, "dflash", 5, 5, "model_executor/models/qwen3_dflash.py:477"),
]


@pytest.mark.parametrize(("engine", "version", "draft", "kind", "made", "fed", "place"), CASES)
def test_the_fc_that_a_release_makes(
    engine: str, version: str, draft: dict[str, Any], kind: str, made: int, fed: int, place: str, real_engine: Any
) -> None:
    """So many states of the target's width in, the draft's width out, at that line."""
    handle = real_engine(engine, version)
    target = {"architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 36, "hidden_size": 4096}
    request = ServingRequest(handle.engine.target_class(handle.source, "Qwen3ForCausalLM"), 36, target, kind, draft)
    wiring = derive_serving(handle.engine, handle.source, request)
    assert wiring.status == "exact", wiring.reason
    fc = derive_projection(handle.engine, handle.source, request, wiring)
    assert fc is not None
    assert (fc.in_features, fc.out_features) == (made * 4096, draft["hidden_size"])
    assert (fc.fed, fc.agrees) == (fed * 4096, made == fed)
    assert f"{fc.path}:{fc.line}".endswith("/" + place)
