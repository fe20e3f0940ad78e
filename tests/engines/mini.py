"""A small engine around one model file: written out, derived by eaglelint, and run for real to see what it captures.

The model is put together from parts (its loop, its layer, its setter, ...), so that a test shows only the part that
it is about. The engine around it is the one of the rules' pages, tests/rules/projects/mini-sglang.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

from eaglelint.derive import ServingRequest, derive_serving
from eaglelint.serving import EngineHandle, open_serving
from eaglelint.source.machine import Budget
from eaglelint.wiring import LayerIds, Wiring

__all__ = ["BEFORE", "Model", "derive", "handle", "write_engine"]

_MINI = Path(__file__).parent.parent / "rules/projects/mini-sglang/sglang"

# Captures the stream before layer i.
BEFORE = """
hidden_states = self.embed_tokens(input_ids)
residual = None
aux = []
for i in range(len(self.layers)):
    if i in self.layers_to_capture:
        aux.append(hidden_states + residual if residual is not None else hidden_states)
    hidden_states, residual = self.layers[i](hidden_states, residual)
hidden_states, _ = self.norm(hidden_states, residual)
return hidden_states, aux
"""

_LAYER = """
if residual is None:
    residual = hidden_states
    hidden_states = self.input_layernorm(hidden_states)
else:
    hidden_states, residual = self.input_layernorm(hidden_states, residual)
hidden_states = self.self_attn(hidden_states)
hidden_states, residual = self.post_attention_layernorm(hidden_states, residual)
return self.mlp(hidden_states), residual
"""

_SETTER = """
if layer_ids is None:
    num_layers = self.config.num_hidden_layers
    self.model.layers_to_capture = [2, num_layers // 2, num_layers - 3]
else:
    self.model.layers_to_capture = [layer_id + 1 for layer_id in layer_ids]
"""

_TEMPLATE = """\
import torch
from itertools import islice
from torch import nn

from sglang.srt.layers.layernorm import RMSNorm
from sglang.srt.layers.logits_processor import LogitsProcessor

{top}

class LlamaDecoderLayer(nn.Module):
    def __init__(self, config, layer_id):
        super().__init__()
        self.layer_id = layer_id
        self.input_layernorm = RMSNorm(config.hidden_size)
        self.self_attn = nn.Linear(config.hidden_size, config.hidden_size)
        self.post_attention_layernorm = RMSNorm(config.hidden_size)
        self.mlp = nn.Linear(config.hidden_size, config.hidden_size)
{layer_init}

    def forward(self, {layer_args}):
{layer}


class LlamaModel({model_bases}nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([LlamaDecoderLayer(config, i) for i in range(config.num_hidden_layers)])
        self.start_layer, self.end_layer = 0, config.num_hidden_layers
        self.norm = RMSNorm(config.hidden_size)
        self.layers_to_capture = []
{init}

    def forward(self, input_ids):
{loop}

{methods}

class LlamaForCausalLM({bases}nn.Module):
    def __init__(self, config, quant_config=None, prefix=""):
        super().__init__()
        self.config = config
        self.model = LlamaModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)
        self.logits_processor = LogitsProcessor(config)

    def forward(self, input_ids, positions, forward_batch):
        hidden_states, aux_hidden_states = self.model(input_ids)
        return self.logits_processor(input_ids, hidden_states, self.lm_head, forward_batch, aux_hidden_states)

{setter}

EntryClass = LlamaForCausalLM
"""

_LAYERNORM = """\
from torch import nn


class RMSNorm(nn.Module):
    def forward(self, x, residual=None):
        if residual is None:
            return self.weight * x
        x = x + residual
        return self.weight * x, x
"""


@dataclass(frozen=True, slots=True)
class Model:
    """The parts of a model file that a test may replace; each is the body of a function, or lines of a class."""

    loop: str = BEFORE
    layer: str = _LAYER
    layer_args: str = "hidden_states, residual"
    layer_init: str = ""
    init: str = ""
    methods: str = ""
    setter: str = _SETTER
    top: str = ""
    bases: str = ""
    model_bases: str = ""
    extra: dict[str, str] = field(default_factory=dict)  # further files of the engine, by path

    @property
    def source(self) -> str:
        setter = self.setter
        if "def " not in setter.split("\n    ")[0]:
            setter = "def set_eagle3_layers_to_capture(self, layer_ids=None):\n" + indent(
                dedent(setter).strip(), "    "
            )
        return _TEMPLATE.format(
            top=dedent(self.top),
            bases=self.bases,
            model_bases=self.model_bases,
            layer=_block(self.layer, 8),
            layer_args=self.layer_args,
            layer_init=_block(self.layer_init, 8),
            init=_block(self.init, 8),
            loop=_block(self.loop, 8),
            methods=_block(self.methods, 4),
            setter=_block(setter, 4),
        )


def _block(text: str, spaces: int) -> str:
    return indent(dedent(text).strip("\n"), " " * spaces)


def write_engine(root: Path, model: Model) -> Path:
    """Write the engine with this model; returns the directory that holds the package."""
    package = root / "sglang"
    shutil.copytree(_MINI, package, dirs_exist_ok=True)
    (package / "srt/models/llama.py").write_text(model.source, "utf-8")
    (package / "srt/layers/layernorm.py").write_text(_LAYERNORM, "utf-8")
    for name, text in model.extra.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), "utf-8")
    return root


def handle(root: Path) -> EngineHandle:
    return open_serving(f"sglang@{root}", root=root, display_root=root)


def derive(
    root: Path,
    model: Model,
    ids: LayerIds = "default",
    num_layers: int = 12,
    *,
    kind: str = "eagle3",
    draft: dict[str, Any] | None = None,
    name: str = "LlamaForCausalLM",
    budget: Budget | None = None,
) -> Wiring:
    """What eaglelint says the model feeds a draft."""
    found = handle(write_engine(root, model))
    binding = found.engine.target_class(found.source, name)
    assert binding is not None
    request = ServingRequest(binding, num_layers, {"num_hidden_layers": num_layers}, kind, draft, ids)
    return derive_serving(found.engine, found.source, request, budget=budget)
