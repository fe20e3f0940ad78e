"""Which norms the released engines' draft classes build for a Llama, and what their loaders make of a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.artifacts.target import TargetConfig
from eaglelint.draft_modules import DraftModules, draft_modules
from eaglelint.engines.profile_file import bundled_profile
from eaglelint.recalled_modules import recalled_modules
from eaglelint.serving import EngineHandle

pytestmark = pytest.mark.real

Engines = Callable[[str, str], EngineHandle]
LAYER = ("input_layernorm", "post_attention_layernorm", "hidden_norm")
SHAPE = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 1,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "draft_vocab_size": 32000,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-05,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
}


def built(engines: Engines, engine: str, version: str, kind: str, cls: str, *names: str) -> DraftModules:
    draft = DraftConfig.parse("config.json", json.dumps({**SHAPE, "architectures": [cls]}).encode())
    target = TargetConfig.synthetic(32, ("LlamaForCausalLM",))
    found = draft_modules(engines(engine, version), draft, target, kind, names)
    assert found is not None
    return found


# Read by a person in llama_eagle3.py, llama_eagle.py and llama.py of each: EAGLE's first layer has no norm before the
# attention, and its model none at the end.
@pytest.mark.parametrize(
    ("engine", "version", "kind", "cls", "modules"),
    [
        ("sglang", "0.5.9", "eagle3", "LlamaForCausalLMEagle3", [f"midlayer.{n}" for n in LAYER] + ["fc", "norm"]),
        ("sglang", "0.5.23", "eagle3", "LlamaForCausalLMEagle3", [f"layers.0.{n}" for n in LAYER] + ["fc", "norm"]),
        ("vllm", "0.33.0", "eagle3", "Eagle3LlamaForCausalLM", [f"layers.0.{n}" for n in LAYER] + ["fc", "norm"]),
        ("sglang", "0.5.9", "eagle", "LlamaForCausalLMEagle", ["layers.0.post_attention_layernorm", "fc"]),
        ("sglang", "0.5.23", "eagle", "LlamaForCausalLMEagle", ["layers.0.post_attention_layernorm", "fc"]),
        ("vllm", "0.33.0", "eagle", "EagleLlamaForCausalLM", ["layers.0.post_attention_layernorm", "fc"]),
    ],
)
def test_what_a_class_builds(
    real_engine: Engines, engine: str, version: str, kind: str, cls: str, modules: list[str]
) -> None:
    found = built(real_engine, engine, version, kind, cls)
    assert sorted(module.path.removeprefix("model.") for module in found.modules) == sorted(modules)


def test_sglang_0_5_9_passes_over_a_numbered_layer(real_engine: Engines) -> None:
    """As speculators names it; 0.5.23 takes it, and the older name too."""
    names = ("fc", "layers.0.hidden_norm", "midlayer.input_layernorm", "norm")
    before, after = (
        built(real_engine, "sglang", version, "eagle3", "LlamaForCausalLMEagle3", *names).loaded
        for version in ("0.5.9", "0.5.23")
    )
    assert before == (
        ("fc", "model.fc"),
        ("midlayer.input_layernorm", "model.midlayer.input_layernorm"),
        ("norm", "model.norm"),
    )
    assert after == (
        ("fc", "model.fc"),
        ("layers.0.hidden_norm", "model.layers.0.hidden_norm"),
        ("midlayer.input_layernorm", "model.layers.0.input_layernorm"),
        ("norm", "model.norm"),
    )


def test_an_eagle_loader_prefixes_once(real_engine: Engines) -> None:
    """SGLang's puts "model." before each name, so that a checkpoint which has it already is passed over."""
    names = ("fc", "model.layers.0.post_attention_layernorm")
    found = built(real_engine, "sglang", "0.5.23", "eagle", "LlamaForCausalLMEagle", *names)
    assert found.loaded == (("fc", "model.fc"),)


MIDLAYER = tuple(f"midlayer.{name}" for name in LAYER)
NORMS = ("fc_norm.0", "fc_norm.1", "fc_norm.2")
# engine, release, kind, class, what the config says besides, the modules that the checkpoint has weights for
CONFIGS: list[tuple[str, str, str, str, dict[str, Any], tuple[str, ...]]] = [
    ("sglang", "0.5.9", "eagle3", "LlamaForCausalLMEagle3", {}, ("fc", *MIDLAYER, "norm")),
    ("sglang", "0.5.9", "eagle3", "LlamaForCausalLMEagle3", {}, ("fc", "layers.0.hidden_norm", "norm")),
    ("sglang", "0.5.9", "peagle", "LlamaForCausalLMEagle3", {"target_hidden_size": 7168}, ("fc", *MIDLAYER)),
    ("sglang", "0.5.9", "eagle", "LlamaForCausalLMEagle", {}, ("fc", "model.layers.0.post_attention_layernorm")),
    ("sglang", "0.5.23", "eagle3", "LlamaForCausalLMEagle3", {}, ("fc", *MIDLAYER, "norm", *NORMS)),
    ("sglang", "0.5.23", "eagle3", "LlamaForCausalLMEagle3", {"fc_norm": True}, ("fc", *MIDLAYER, "norm", *NORMS)),
    ("sglang", "0.5.23", "eagle3", "LlamaForCausalLMEagle3", {"norm_before_fc": True}, ("fc", "norm")),
    ("sglang", "0.5.23", "eagle", "LlamaForCausalLMEagle", {}, ("fc", "layers.0.post_attention_layernorm")),
]


def recalled(
    engine: str, version: str, kind: str, cls: str, more: dict[str, Any], names: tuple[str, ...]
) -> DraftModules | None:
    profile = bundled_profile(engine, version)
    assert profile is not None
    data = {**SHAPE, **more, "architectures": [cls]}
    return recalled_modules(profile, DraftConfig.parse("config.json", json.dumps(data).encode()), kind, names)


@pytest.mark.parametrize(("engine", "version", "kind", "cls", "more", "names"), CONFIGS)
def test_a_profile_tells_the_same(
    real_engine: Engines, engine: str, version: str, kind: str, cls: str, more: dict[str, Any], names: tuple[str, ...]
) -> None:
    """What is built, where, and what the checkpoint's names fill, also for a target that it was not learned with."""
    told = recalled(engine, version, kind, cls, more, names)
    assert told is not None
    draft = DraftConfig.parse("config.json", json.dumps({**SHAPE, **more, "architectures": [cls]}).encode())
    target = TargetConfig.synthetic(48, ("Qwen3MoeForCausalLM",))
    source = draft_modules(real_engine(engine, version), draft, target, kind, names)
    assert source is not None
    modules = [(m.path, m.norm, m.file.partition(": ")[2], m.line) for m in told.modules]
    assert modules == [(m.path, m.norm, m.file.rpartition(f"{engine}/")[2], m.line) for m in source.modules]
    assert (told.engine, told.cls, told.unknown, told.loaded) == (
        source.engine,
        source.cls,
        source.unknown,
        source.loaded,
    )


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ({"num_aux_hidden_states": 5}, ("fc",)),
        ({"hidden_size": None}, ("fc",)),
        ({}, ("fc", "somebodys_norm")),
        ({}, ("fc", "layers.1.hidden_norm")),
        ({"num_hidden_layers": "one"}, ("fc",)),
    ],
)
def test_what_was_not_learned_is_not_told(more: dict[str, Any], names: tuple[str, ...]) -> None:
    """Another count of states with a norm each, a width that is none, and names that the loader was not asked about."""
    assert recalled("sglang", "0.5.23", "eagle3", "LlamaForCausalLMEagle3", more, names) is None
