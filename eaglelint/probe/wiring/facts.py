"""What is taken for granted about the server whose code is run: CUDA, one stage, text alone, nothing offloaded.

There is one rank unless ``Server`` says otherwise: the same server as the interpreter assumes
(``eaglelint/deployment.py``). Names are matched whole.
"""

from __future__ import annotations

import re
from string import ascii_lowercase
from typing import Any

__all__ = ["LANGUAGES", "Server", "encoder_keys", "function_fact", "is_collective", "sizes", "usual_keys", "value_fact"]

_ONE = re.compile(
    r"(?!get_)(?:\w+_)?world_size|(?:attn_|moe_|tensor_|pipeline_|expert_)?(?:tp|pp|dp|cp|ep|dcp|pcp)_size|data_parallel_size"
)
_ZERO = re.compile(r"(?!get_)(?:\w+_)?rank(?:_in_group)?|rank_in_group")
_OF_A_GROUP = ("world_size", "rank", "rank_in_group")
_TRUE = re.compile(r"is_first_rank|is_last_rank")
_SIZE_FUNCTION = re.compile(
    r"get_\w*(?:world_size|parallel_size|tp_size|dp_size|cp_size|ep_size|pp_size|attention_\w+_size)"
)
_RANK_FUNCTION = re.compile(r"get_\w*rank")
_CUDA_FUNCTION = re.compile(r"_?is_cuda(?:_alike)?")
_COLLECTIVE = re.compile(
    r"\w*(?:all_reduce|all_gather|reduce_scatter|all_to_all|broadcast)\w*|sequence_parallel_chunk\w*|\w*maybe_chunk_residual"
)

LANGUAGES = {first + second: "" for first in ascii_lowercase for second in ascii_lowercase} | dict.fromkeys(
    ("yue", "haw", "fil"), ""
)
"""Of transformers' Whisper: vLLM checks a class's languages against them. Any code of two letters is one here."""


class Server:
    """The tensor-parallel group of this run."""

    rank = 0
    size = 1


_TENSOR_PARALLEL = re.compile(r"(?:attn_|tensor_)?tp_(?:size|rank)|\w*tensor_(?:model_)?parallel_(?:world_size|rank)")
_SHARED = re.compile(r"(?:^|_)tp|tensor")


def value_fact(name: str, of: str = "") -> Any:
    """The value of an attribute of this name, of something of that name, NotImplemented where none is known."""
    if Server.size > 1 and (_TENSOR_PARALLEL.fullmatch(name) or (_SHARED.search(of) and name in _OF_A_GROUP)):
        return Server.rank if "rank" in name else Server.size
    if _TRUE.fullmatch(name):
        return True
    if _ONE.fullmatch(name):
        return 1
    if _ZERO.fullmatch(name):
        return 0
    return NotImplemented


def function_fact(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function of this name returns, NotImplemented where it is not known."""
    if name == "get_pp_indices":
        count = args[0] if args else kwargs.get("num_hidden_layers")
        return (0, count)
    if name in ("cdiv", "ceil_div", "divide") and len(args) == 2 and all(isinstance(arg, int) for arg in args):
        return -(-args[0] // args[1])
    if name == "wrap_modules" and args:
        return list(args[0])
    if name == "add_prefix" and len(args) == 2:
        return f"{args[1]}.{args[0]}" if args[1] else str(args[0])
    if name == "maybe_prefix" and len(args) == 2:
        return f"{args[0]}.{args[1]}" if args[0] else str(args[1])
    if name in ("extract_layer_index", "get_layer_id") and args and isinstance(args[0], str):
        numbers = re.findall(r"\.(\d+)(?:\.|$)", args[0])
        return int(numbers[0]) if numbers else 0
    if _SIZE_FUNCTION.fullmatch(name):
        return Server.size if _SHARED.search(name) else 1
    if _RANK_FUNCTION.fullmatch(name):
        return Server.rank if _SHARED.search(name) else 0
    if _CUDA_FUNCTION.fullmatch(name):
        return True
    return NotImplemented


def is_collective(name: str) -> bool:
    """Whether a function of this name exchanges parts of a state between ranks; with one rank it changes nothing."""
    return _COLLECTIVE.fullmatch(name) is not None


def sizes(width: int) -> dict[str, int]:
    """The sizes of a language model in a run, whatever its config says: small ones, and the width of the signatures."""
    heads = 8
    return {
        "hidden_size": width,
        "intermediate_size": 64,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": width // heads,
        "vocab_size": 128,
        "max_position_embeddings": 64,
        "num_experts": 8,
        "num_local_experts": 8,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "shared_expert_intermediate_size": 64,
        "n_group": 1,
        "topk_group": 1,
        "q_lora_rank": 64,
        "kv_lora_rank": 64,
        "qk_nope_head_dim": 64,
        "qk_rope_head_dim": 64,
        "v_head_dim": 64,
    }


def usual_keys(num_layers: int) -> dict[str, Any]:
    """What the config of a language model usually says; what the target's says goes before it."""
    return {
        "num_hidden_layers": num_layers,
        "rms_norm_eps": 1e-6,
        "layer_norm_eps": 1e-6,
        "norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "rope_scaling": None,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default", "factor": 1.0},
        "hidden_act": "silu",
        "hidden_activation": "silu",
        "tie_word_embeddings": False,
        "attention_bias": False,
        "layer_types": ["full_attention"] * num_layers,
        "layers_block_type": ["attention"] * num_layers,
        "mlp_layer_types": ["dense"] * num_layers,
        "hybrid_override_pattern": "*-" * (num_layers // 2) + "*" * (num_layers % 2),
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "norm_topk_prob": True,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
    }


def encoder_keys() -> dict[str, Any]:
    """The usual keys of the config of an encoder of images or sound, with small sizes."""
    return {
        "hidden_size": 64,
        "embed_dim": 64,
        "intermediate_size": 64,
        "num_attention_heads": 4,
        "num_heads": 4,
        "num_hidden_layers": 1,
        "depth": 1,
        "num_channels": 3,
        "in_channels": 3,
        "in_chans": 3,
        "patch_size": 14,
        "image_size": 28,
        "spatial_merge_size": 2,
        "spatial_patch_size": 14,
        "temporal_patch_size": 2,
        "out_hidden_size": 64,
        "hidden_act": "silu",
        "layer_norm_eps": 1e-6,
        "rms_norm_eps": 1e-6,
    }
