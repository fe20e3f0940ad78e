"""Small engine trees: a package ``sglang`` with one model file, as the wiring probe is pointed at them."""

from __future__ import annotations

from pathlib import Path

__all__ = ["PARALLEL", "model_file", "parallel_model", "write_engine"]

_LOGITS = """
import torch
from sglang.srt.model_executor.forward_batch_info import CaptureHiddenMode


class LogitsProcessor:
    def forward(self, input_ids, hidden_states, lm_head, logits_metadata, aux_hidden_states=None):
        return self._get_hidden_states_to_store(hidden_states, aux_hidden_states, logits_metadata)

    def _get_hidden_states_to_store(self, hidden_states, aux_hidden_states, logits_metadata):
        if logits_metadata.capture_hidden_mode is CaptureHiddenMode.FULL:
            return torch.cat(aux_hidden_states, dim=-1)
        return None

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)
"""
_BATCH = """
from enum import Enum


class CaptureHiddenMode(Enum):
    NULL = 0
    LAST = 1
    FULL = 2
"""
_MODEL = """
import torch
from torch import nn
from sglang.srt.distributed import (
    get_tensor_model_parallel_rank,
    get_tensor_model_parallel_world_size,
    tensor_model_parallel_all_gather,
    tensor_model_parallel_all_reduce,
    tensor_model_parallel_reduce_scatter,
)
from sglang.srt.layers.layernorm import RMSNorm
from sglang.srt.layers.linear import ColumnParallelLinear, RowParallelLinear
from sglang.srt.layers.logits_processor import LogitsProcessor
from sglang.srt.layers.vocab_parallel_embedding import VocabParallelEmbedding


class DemoMLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.up_proj = ColumnParallelLinear(config.hidden_size, config.intermediate_size)
        self.down_proj = RowParallelLinear(config.intermediate_size, config.hidden_size, reduce_results={reduces})

    def forward(self, hidden_states):
        hidden_states, _ = self.up_proj(hidden_states)
        hidden_states, _ = self.down_proj(torch.relu(hidden_states))
        return hidden_states


class DemoDecoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size)
        self.mlp = DemoMLP(config)

    def forward(self, positions, hidden_states, residual):
        if residual is None:
            residual = hidden_states
            hidden_states = self.input_layernorm(hidden_states)
        else:
            {gather}
            hidden_states, residual = self.input_layernorm(hidden_states, residual)
        hidden_states = self.mlp(hidden_states)
        {scatter}
        return hidden_states, residual


class DemoModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed_tokens = VocabParallelEmbedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([DemoDecoderLayer(config) for _ in range(config.num_hidden_layers)])
        self.norm = RMSNorm(config.hidden_size)
        self.layers_to_capture = []

    def forward(self, input_ids, positions):
        hidden_states, residual = self.embed_tokens(input_ids), None
        aux_hidden_states = []
        for i, layer in enumerate(self.layers):
            if i in self.layers_to_capture:
                aux_hidden_states.append({captured})
            hidden_states, residual = layer(positions, hidden_states, residual)
        {last}
        hidden_states, _ = self.norm(hidden_states, residual)
        return hidden_states, aux_hidden_states


class DemoForCausalLM(nn.Module):
    def __init__(self, config, quant_config=None, prefix=""):
        super().__init__()
        self.model = DemoModel(config)
        self.lm_head = None
        self.logits_processor = LogitsProcessor()

    def set_eagle3_layers_to_capture(self, layer_ids=None):
        self.model.layers_to_capture = [2, 4, 5] if layer_ids is None else [i + 1 for i in layer_ids]

    def forward(self, input_ids, positions, forward_batch):
        hidden_states, aux_hidden_states = self.model(input_ids, positions)
        return self.logits_processor(input_ids, hidden_states, self.lm_head, forward_batch, aux_hidden_states)


EntryClass = DemoForCausalLM
"""

_REDUCE = "hidden_states = tensor_model_parallel_all_reduce(hidden_states)"
_GATHER = "hidden_states = tensor_model_parallel_all_gather(hidden_states, dim=0)"
_SCATTER = "hidden_states = tensor_model_parallel_reduce_scatter(hidden_states, dim=0)"
_OWN_TOKENS = (
    "(hidden_states if residual is None else hidden_states + residual.chunk(get_tensor_model_parallel_world_size(), dim=0)"
    "[get_tensor_model_parallel_rank()])"
)

PARALLEL: dict[str, dict[str, str]] = {
    "reduced in the layer": {},
    "captured before the reduction": {"reduces": "False", "gather": _REDUCE, "last": _REDUCE},
    "reduced for the capture": {
        "reduces": "False",
        "gather": _REDUCE,
        "last": _REDUCE,
        "captured": "tensor_model_parallel_all_reduce(hidden_states) + residual",
    },
    "captured while scattered": {
        "reduces": "False",
        "scatter": _SCATTER,
        "gather": _GATHER,
        "last": _GATHER,
        "captured": _OWN_TOKENS,
    },
    "gathered for the capture": {
        "reduces": "False",
        "scatter": _SCATTER,
        "gather": _GATHER,
        "last": _GATHER,
        "captured": "tensor_model_parallel_all_gather(hidden_states, dim=0) + residual",
    },
}
"""One model that shares each layer among ranks, in forms that are right and forms that are not."""


def parallel_model(form: str) -> str:
    """The model's file in one of the forms of ``PARALLEL``."""
    text = {"reduces": "True", "gather": "pass", "scatter": "pass", "last": "pass", **PARALLEL[form]}
    text.setdefault("captured", "hidden_states if residual is None else hidden_states + residual")
    for key, value in text.items():
        text[key] = value
    source = _MODEL
    for key, value in text.items():
        source = source.replace("{" + key + "}", value)
    return source


def model_file(
    before: str = "", captured: str = "hidden_states if residual is None else hidden_states + residual"
) -> str:
    """A model that captures as is said; ``before`` runs when its file is imported."""
    return before + parallel_model("reduced in the layer").replace(
        "hidden_states if residual is None else hidden_states + residual", captured
    )


def write_engine(root: Path, model: str) -> Path:
    """An engine whose only model is in ``models/demo.py``."""
    files = {
        "models/demo.py": model,
        "layers/logits_processor.py": _LOGITS,
        "model_executor/forward_batch_info.py": _BATCH,
    }
    for name, text in files.items():
        path = root / "sglang" / "srt" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root
