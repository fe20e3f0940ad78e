"""Tiny targets with random weights, and dumps of their states in each trainer's layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import nn

__all__ = ["LAYOUTS", "MODELS", "SHAPES", "States", "dumped", "states_of", "tiny", "tokens_of"]

MODELS = ("llama", "qwen3_moe", "deepseek_v3")
LAYERS = 8
TOKENS = 24
VOCABULARY = 128

_COMMON: dict[str, Any] = {
    "vocab_size": VOCABULARY, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": LAYERS,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128, "bos_token_id": 1,
}  # fmt: skip
_EXPERTS = {"moe_intermediate_size": 32, "num_experts_per_tok": 2}
SHAPES: dict[str, dict[str, Any]] = {
    "llama": _COMMON,
    "qwen3_moe": _COMMON | _EXPERTS | {"num_experts": 4, "head_dim": 16},
    "deepseek_v3": _COMMON | _EXPERTS | {
        "n_routed_experts": 4, "n_group": 2, "topk_group": 1, "n_shared_experts": 1, "first_k_dense_replace": 2,
        "num_key_value_heads": 4, "q_lora_rank": 32, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16,
        "v_head_dim": 16,
    },
}  # fmt: skip


@cache
def tiny(name: str) -> Any:
    """A model of this type, always the same one."""
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.random.fork_rng():
        torch.manual_seed(7)
        return AutoModelForCausalLM.from_config(AutoConfig.for_model(name, **SHAPES[name])).eval()


def tokens_of(name: str) -> list[int]:
    """A sample that begins with the token that sequences begin with."""
    generator = torch.Generator().manual_seed(sum(name.encode()))
    return [1, *torch.randint(2, VOCABULARY, (TOKENS - 1,), generator=generator).tolist()]


@dataclass(frozen=True, slots=True)
class States:
    """States as transformers itself gives them: h[0..N], norm(h[0..N]), and what the last branch of each layer adds."""

    stream: Sequence[torch.Tensor]
    normed: Sequence[torch.Tensor]
    branch: Sequence[torch.Tensor]


@cache
def states_of(name: str) -> States:
    """Read off ``output_hidden_states``, of which the last is normed, and off hooks on the last layer and each MLP."""
    model, added, last = tiny(name), [], []

    def keep(module: nn.Module, args: Any, output: Any) -> None:
        added.append((output[0] if isinstance(output, tuple) else output)[0])

    handles = [layer.mlp.register_forward_hook(keep) for layer in model.model.layers]
    handles.append(model.model.norm.register_forward_pre_hook(lambda module, args: last.append(args[0][0])))
    with torch.no_grad():
        output = model(input_ids=torch.tensor([tokens_of(name)]), output_hidden_states=True, use_cache=False)
        for handle in handles:
            handle.remove()
        stream = [state[0] for state in output.hidden_states[:-1]] + last[:1]
        normed = [model.model.norm(state) for state in stream]
    assert torch.equal(normed[-1], output.hidden_states[-1][0])
    branches = [state.reshape(TOKENS, -1) for state in added]
    return States(stream, normed, [torch.zeros_like(stream[0]), *branches])


LAYOUTS = ("specforge", "specforge-dflash", "speculators", "speculators-list", "modelopt", "torchspec")


def dumped(
    layout: str, slots: Sequence[torch.Tensor], label: torch.Tensor, ids: Sequence[int], *, normed: bool = False
) -> dict[str, Any]:
    """A sample as this trainer saves it, in bfloat16."""
    slots = [state.bfloat16() for state in slots]
    label, tokens = label.bfloat16(), torch.tensor(ids)
    flat, mask = torch.cat(list(slots), dim=-1), torch.ones(len(ids), dtype=torch.int64)
    if layout == "specforge":
        return {"input_ids": tokens, "loss_mask": mask, "aux_hidden_state": flat[None], "hidden_state": label[None]}
    if layout == "specforge-dflash":
        return {"input_ids": tokens, "loss_mask": mask, "hidden_states": flat[None]}
    if layout == "speculators":
        return {"token_ids": tokens, "hidden_states": torch.stack([*slots, label], dim=1)}
    if layout == "speculators-list":
        return {"input_ids": tokens, "loss_mask": mask, "hidden_states": [*slots, label]}
    if layout == "modelopt":
        flag = {} if normed else {"hidden_states_prenorm": True}
        return {"input_ids": tokens, "aux_hidden_states": flat, "hidden_states": label, **flag}
    assert layout == "torchspec"
    return {"input_ids": tokens[None], "hidden_states": flat[None], "last_hidden_states": label[None]}
