"""Parts of small projects: a draft of each kind, its target, its checkpoint, and a small engine, to be varied."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from eaglelint.registry import find_rule, rule_page
from eaglelint.rule_page import parse_page

__all__ = [
    "CHECKPOINT",
    "DFLASH",
    "DFLASH_CHECKPOINT",
    "DRAFT",
    "EAGLE",
    "EAGLE_CHECKPOINT",
    "NOTHING",
    "SPECULATORS",
    "TARGET",
    "Project",
    "adapter",
    "dflash_engine",
    "eagle_class",
    "index",
    "of_page",
    "project",
    "varied",
]

NOTHING: Any = object()
"""In the place of a value: the key is left out."""

DRAFT: dict[str, Any] = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 1,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 151936,
    "draft_vocab_size": 151936,
    "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 17, 32]},
}
EAGLE: dict[str, Any] = {
    key: value
    for key, value in {**DRAFT, "architectures": ["LlamaForCausalLMEagle"]}.items()
    if key not in ("draft_vocab_size", "eagle_config")
}
DFLASH: dict[str, Any] = {
    "architectures": ["DFlashDraftModel"],
    "model_type": "qwen3",
    "hidden_size": 4096,
    "num_hidden_layers": 2,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 151936,
    "block_size": 16,
    "dflash_config": {"mask_token_id": 151669, "target_layer_ids": [1, 9, 17, 25, 33]},
}
TARGET: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "num_hidden_layers": 36,
    "hidden_size": 4096,
    "vocab_size": 151936,
}
SPECULATORS: dict[str, Any] = {
    "architectures": ["Eagle3DraftModel"],
    "speculators_model_type": "eagle3",
    "draft_vocab_size": 151936,
    "eagle_aux_hidden_state_layer_ids": [2, 18, 33],
    "speculators_config": {"algorithm": "eagle3", "verifier": {"name_or_path": "meta-llama/Llama-3.1-8B-Instruct"}},
    "transformer_layer_config": {
        key: DRAFT[key]
        for key in ("model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size")
    },
}  # fmt: skip
CHECKPOINT: dict[str, Any] = {
    "fc.weight": "BF16 [4096, 12288]",
    "midlayer.self_attn.q_proj.weight": "BF16 [4096, 8192]",
    "midlayer.self_attn.k_proj.weight": "BF16 [1024, 8192]",
    "midlayer.hidden_norm.weight": "BF16 [4096]",
    "midlayer.input_layernorm.weight": "BF16 [4096]",
    "midlayer.post_attention_layernorm.weight": "BF16 [4096]",
    "norm.weight": "BF16 [4096]",
}
EAGLE_CHECKPOINT: dict[str, Any] = {
    "fc.weight": "BF16 [4096, 8192]",
    "layers.0.self_attn.q_proj.weight": "BF16 [4096, 4096]",
}
DFLASH_CHECKPOINT: dict[str, Any] = {
    "fc.weight": "BF16 [4096, 20480]",
    "layers.0.self_attn.q_proj.weight": "BF16 [4096, 4096]",
    "layers.1.self_attn.q_proj.weight": "BF16 [4096, 4096]",
}


@dataclass(frozen=True, slots=True)
class Project:
    """Files by path and the command to scan them; ``engine`` is a small engine of tests/rules/projects, in serving."""

    files: dict[str, str]
    command: tuple[str, ...]
    engine: str | None = None


def varied(base: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A base with other values; ``__`` in a name stands for a dot, :data:`NOTHING` leaves a key out."""
    named = {key.replace("__", "."): value for key, value in changes.items()}
    return {key: value for key, value in {**base, **named}.items() if value is not NOTHING}


def index(*names: str) -> str:
    """The index of a sharded checkpoint of which nothing was downloaded."""
    return json.dumps({"weight_map": dict.fromkeys(names, "model-00001-of-00001.safetensors")})


def project(
    draft: dict[str, Any],
    target: dict[str, Any] | None = TARGET,
    checkpoint: dict[str, Any] | None = None,
    *,
    launch: str | None = None,
    engine: str | None = None,
    options: tuple[str, ...] = (),
    **more: str,
) -> Project:
    """A draft beside its target; further files by path, ``/`` written as ``__`` and ``.`` as ``_dot_``."""
    files = {"draft/config.json": json.dumps(draft, indent=2)}
    if target is not None:
        files["target/config.json"] = json.dumps(target)
    if checkpoint is not None:
        files["draft/model.safetensors"] = json.dumps(checkpoint)
    files |= {name.replace("__", "/").replace("_dot_", "."): text for name, text in more.items()}
    command = ["scan", "--draft", "draft", *(("--target", "target") if target is not None else ()), *options]
    if launch is not None:
        files["serve.sh"] = launch
        command += ["--launch", "serve.sh"]
    if engine is not None:
        name = engine.rpartition("-")[2]
        command += ["--serving", f"{name}@serving/{name}"]
    return Project(files, tuple(command), engine)


def of_page(code: str, title: str) -> Project:
    """A project that a rule's page shows below this heading, with the small engine that it includes."""
    (found,) = (example for example in parse_page(rule_page(find_rule(code))).examples if example.title == title)
    return Project(dict(found.files), found.command, found.includes.get("serving"))


def dflash_engine(setter: str) -> dict[str, str]:
    """The small engine with DFlash drafts: ``setter`` is what becomes of each id."""
    return {
        "serving__sglang__srt__speculative__spec_info_dot_py": _ALGORITHMS,
        "serving__sglang__srt__model_executor__model_runner_dot_py": _RUNNER,
        "serving__sglang__srt__models__capture_dot_py": _CAPTURE.replace("SETTER", setter),
    }


def eagle_class(*kept: str) -> dict[str, str]:
    """The small vLLM with a class for EAGLE drafts: ``kept`` are norms that its layer and its model have."""
    layer = "".join(f"        self.{name} = RMSNorm(config.hidden_size)\n" for name in kept if name != "norm")
    model = "        self.norm = RMSNorm(config.hidden_size)\n" if "norm" in kept else ""
    return {
        "serving__vllm__model_executor__models__registry_dot_py": _REGISTRY,
        "serving__vllm__model_executor__models__llama_eagle_dot_py": _EAGLE_CLASS.replace("# LAYER\n", layer).replace(
            "# MODEL\n", model
        ),
    }


def adapter(*copied: str) -> dict[str, str]:
    """The small vLLM with an adapter of speculators' configs that hands these keys on, and a class that reads them."""
    text = "".join(f'    to["{key}"] = config_dict.get("{key}", False)\n' for key in copied)
    return {
        "serving__vllm__model_executor__models__registry_dot_py": _REGISTRY.replace("Eagle", "Eagle3").replace(
            "llama_eagle", "llama_eagle3"
        ),
        "serving__vllm__model_executor__models__llama_eagle3_dot_py": _READS_FLAGS,
        "serving__vllm__transformers_utils__configs__speculators__algos_dot_py": _ADAPTER.replace("# KEYS\n", text),
    }


_READS_FLAGS = '''"""A class for EAGLE-3 drafts that reads where to norm."""

from torch import nn


class Eagle3LlamaForCausalLM(nn.Module):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        config = vllm_config.speculative_config.draft_model_config.hf_config
        self.norm_output = getattr(config, "norm_output", False)
        self.norm_before_fc = getattr(config, "norm_before_fc", False)
'''
_ADAPTER = '''"""The adapter of speculators' configs."""


def update_eagle3(config_dict, to):
    to["architectures"] = ["Eagle3LlamaForCausalLM"]
    to["eagle_aux_hidden_state_layer_ids"] = config_dict.get("eagle_aux_hidden_state_layer_ids")
# KEYS
'''
_REGISTRY = """_TEXT_GENERATION_MODELS = {"LlamaForCausalLM": ("llama", "LlamaForCausalLM")}
_SPECULATIVE_DECODING_MODELS = {"EagleLlamaForCausalLM": ("llama_eagle", "EagleLlamaForCausalLM")}
"""
_EAGLE_CLASS = '''"""A class for EAGLE drafts."""

import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))


class EagleLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self_attn = nn.Linear(config.hidden_size, config.hidden_size)
# LAYER


class EagleModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.fc = nn.Linear(2 * config.hidden_size, config.hidden_size)
        self.layers = nn.ModuleList([EagleLayer(config) for _ in range(config.num_hidden_layers)])
# MODEL


class EagleLlamaForCausalLM(nn.Module):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.model = EagleModel(vllm_config.speculative_config.draft_model_config.hf_config)
'''
_ALGORITHMS = '''"""The algorithms of a small engine."""

from enum import Enum, auto


class SpeculativeAlgorithm(Enum):
    DFLASH = auto()
    NONE = auto()

    def is_dflash(self):
        return self == SpeculativeAlgorithm.DFLASH
'''
_RUNNER = '''"""The runner of a small engine with DFlash drafts."""

from sglang.srt.configs.model_config import ModelConfig


class ModelRunner:
    def __init__(self, server_args, spec_algorithm, is_draft_worker):
        self.spec_algorithm = spec_algorithm
        self.is_draft_worker = is_draft_worker
        self.dflash_use_aux_hidden_state = False
        if self.spec_algorithm.is_dflash() and not self.is_draft_worker:
            draft_model_config = ModelConfig.from_server_args(server_args)
            self.dflash_use_aux_hidden_state = True
            self.dflash_target_layer_ids = draft_model_config.hf_config.dflash_config["target_layer_ids"]
'''
_CAPTURE = '''"""How a small engine captures for DFlash: the stream before a layer."""


class CapturesStates:
    def set_dflash_layers_to_capture(self, layer_ids):
        self.model.layers_to_capture = [SETTER for layer_id in layer_ids]


def stream(hidden_states, residual):
    return hidden_states if residual is None else hidden_states + residual
'''
