"""A small engine in TensorRT-LLM's form: layers hand their states to the step's metadata, which copies those it wants."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from typer.testing import CliRunner

from eaglelint.cli.app import app
from eaglelint.derive import ServingRequest, derive_serving
from eaglelint.serving import open_serving
from eaglelint.source.tree import Binding
from eaglelint.wiring import LayerIds, Wiring

FILES = {
    "version.py": '__version__ = "1.2.0+mini"\n',
    "_torch/speculative/interface.py": """
        from dataclasses import dataclass
        from enum import IntEnum, auto

        class SpeculativeDecodingMode(IntEnum):
            MTP = auto()
            EAGLE3 = auto()
            EAGLE3_ONE_MODEL = auto()
            NONE = auto()

            def is_eagle3(self):
                return self == SpeculativeDecodingMode.EAGLE3

            def is_eagle3_one_model(self):
                return self == SpeculativeDecodingMode.EAGLE3_ONE_MODEL

        @dataclass
        class SpecMetadata:
            max_num_requests: int
            spec_dec_mode: SpeculativeDecodingMode = SpeculativeDecodingMode.NONE
            num_layers: int = 0

            def is_layer_capture(self, layer_id):
                return False

            def maybe_capture_hidden_states(self, layer_id, hidden_states, residual=None):
                pass
    """,
    "_torch/speculative/eagle3.py": """
        from dataclasses import dataclass
        from typing import Optional, Set
        import torch
        from .interface import SpecMetadata

        @dataclass
        class OneModelMetadata(SpecMetadata):
            hidden_states: Optional[torch.Tensor] = None
            layers_to_capture: Optional[Set[int]] = None
            hidden_size: int = 0
            max_num_tokens: int = 0
            dtype: torch.dtype = torch.bfloat16

            def __post_init__(self):
                if self.layers_to_capture is None:
                    if self.num_layers <= 5:
                        raise ValueError("too few layers")
                    self.layers_to_capture = (1, self.num_layers // 2 - 1, self.num_layers - 4)
                else:
                    self.layers_to_capture = sorted(list(self.layers_to_capture))
                    if self.layers_to_capture[0] == -1:
                        self.layers_to_capture = self.layers_to_capture[1:] + [-1]
                self.hidden_states = torch.empty(
                    (self.max_num_tokens, self.hidden_size * len(self.layers_to_capture)),
                    dtype=self.dtype, device="cuda")

            def is_layer_capture(self, layer_id):
                return layer_id in self.layers_to_capture

            def maybe_capture_hidden_states(self, layer_id, hidden_states, residual=None):
                for i, wanted in enumerate(self.layers_to_capture):
                    if wanted == layer_id:
                        num_tokens = hidden_states.shape[0]
                        state = hidden_states + residual if residual is not None else hidden_states
                        self.hidden_states[:num_tokens, i * self.hidden_size:(i + 1) * self.hidden_size].copy_(
                            state, non_blocking=True)
                        break
    """,
    "_torch/speculative/utils.py": """
        from .eagle3 import OneModelMetadata

        def get_spec_metadata(spec_config, model_config, max_num_requests, max_num_tokens, is_draft_model=False):
            if spec_config.spec_dec_mode.is_eagle3():
                return None
            if spec_config.spec_dec_mode.is_eagle3_one_model():
                return OneModelMetadata(
                    max_num_requests=max_num_requests,
                    spec_dec_mode=spec_config.spec_dec_mode,
                    num_layers=model_config.num_hidden_layers,
                    hidden_size=model_config.hidden_size,
                    max_num_tokens=max_num_tokens,
                    layers_to_capture=spec_config.eagle3_layers_to_capture,
                )
            return None
    """,
    "_torch/modules/rms_norm.py": """
        import torch
        from torch import nn

        class RMSNorm(nn.Module):
            def forward(self, hidden_states, residual=...):
                if isinstance(residual, torch.Tensor):
                    hidden_states = hidden_states + residual
                    residual = hidden_states
                hidden_states = self.weight * hidden_states
                if residual is ...:
                    return hidden_states
                return hidden_states, residual
    """,
    "_torch/models/modeling_utils.py": """
        from torch import nn

        MODEL_CLASS_MAPPING = {}

        def register_auto_model(name):
            def decorator(cls):
                MODEL_CLASS_MAPPING[name] = cls
                return cls
            return decorator

        class DecoderModelForCausalLM(nn.Module):
            def __init__(self, model, *, config):
                super().__init__()
                self.model_config = config
                self.model = model
                self.lm_head = nn.Linear(8, 8)
                self.layer_idx = -1
                self.spec_worker = None

            def load_weights(self, weights):
                for name, module in self.named_modules():
                    module.load(weights[name])

            def forward(self, attn_metadata, input_ids=None, position_ids=None, spec_metadata=None, **kwargs):
                hidden_states = self.model(
                    input_ids=input_ids, attn_metadata=attn_metadata, position_ids=position_ids,
                    spec_metadata=spec_metadata, **kwargs)
                if spec_metadata is not None and spec_metadata.is_layer_capture(self.layer_idx):
                    spec_metadata.maybe_capture_hidden_states(self.layer_idx, hidden_states)
                if attn_metadata.padded_num_tokens is not None:
                    hidden_states = hidden_states[:attn_metadata.num_tokens]
                if self.spec_worker is not None:
                    return self.spec_worker(hidden_states, spec_metadata=spec_metadata)
                return self.lm_head(hidden_states)
    """,
    "_torch/models/modeling_plain.py": """
        from torch import nn
        from ..modules.attention import QKNormAttention
        from ..modules.rms_norm import RMSNorm
        from .modeling_utils import DecoderModelForCausalLM, register_auto_model

        class PlainDecoderLayer(nn.Module):
            def __init__(self, model_config, layer_idx):
                super().__init__()
                config = model_config.pretrained_config
                self.layer_idx = layer_idx
                self.self_attn = QKNormAttention(config=model_config, layer_idx=layer_idx)
                self.mlp = nn.Linear(config.hidden_size, config.hidden_size)
                self.input_layernorm = RMSNorm(config.hidden_size)
                self.post_attention_layernorm = RMSNorm(config.hidden_size)

            def forward(self, position_ids, hidden_states, attn_metadata, residual, spec_metadata=None):
                if residual is None:
                    residual = hidden_states
                    hidden_states = self.input_layernorm(hidden_states)
                else:
                    hidden_states, residual = self.input_layernorm(hidden_states, residual)
                hidden_states = self.self_attn(hidden_states)
                hidden_states, residual = self.post_attention_layernorm(hidden_states, residual)
                hidden_states = self.mlp(hidden_states)
                if spec_metadata is not None:
                    spec_metadata.maybe_capture_hidden_states(self.layer_idx, hidden_states, residual)
                return hidden_states, residual

        class PlainModel(nn.Module):
            def __init__(self, model_config):
                super().__init__()
                config = model_config.pretrained_config
                self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
                self.layers = nn.ModuleList(
                    [PlainDecoderLayer(model_config, layer_idx) for layer_idx in range(config.num_hidden_layers)])
                self.norm = RMSNorm(config.hidden_size)

            def forward(self, attn_metadata, input_ids=None, position_ids=None, spec_metadata=None):
                hidden_states = self.embed_tokens(input_ids)
                residual = None
                for decoder_layer in self.layers:
                    hidden_states, residual = decoder_layer(
                        position_ids=position_ids, hidden_states=hidden_states, attn_metadata=attn_metadata,
                        residual=residual, spec_metadata=spec_metadata)
                hidden_states, _ = self.norm(hidden_states, residual)
                return hidden_states

        @register_auto_model("Qwen3ForCausalLM")
        class PlainForCausalLM(DecoderModelForCausalLM):
            def __init__(self, model_config):
                super().__init__(PlainModel(model_config), config=model_config)
    """,
    "_torch/models/modeling_llama.py": """
        from torch import nn
        from ..modules.rms_norm import RMSNorm
        from .modeling_utils import DecoderModelForCausalLM, register_auto_model

        class LlamaDecoderLayer(nn.Module):
            def __init__(self, model_config, layer_idx):
                super().__init__()
                config = model_config.pretrained_config
                self.layer_idx = layer_idx
                self.self_attn = nn.Linear(config.hidden_size, config.hidden_size)
                self.mlp = nn.Linear(config.hidden_size, config.hidden_size)
                self.input_layernorm = RMSNorm(config.hidden_size)
                self.post_attention_layernorm = RMSNorm(config.hidden_size)
                self.next_layer_layernorm = None

            def forward(self, position_ids, hidden_states, attn_metadata, residual=None, spec_metadata=None):
                hidden_states = self.self_attn(hidden_states)
                hidden_states, residual = self.post_attention_layernorm(hidden_states, residual)
                hidden_states = self.mlp(hidden_states)
                if spec_metadata is not None:
                    spec_metadata.maybe_capture_hidden_states(self.layer_idx, hidden_states, residual)
                if self.next_layer_layernorm is not None:
                    hidden_states, residual = self.next_layer_layernorm(hidden_states, residual)
                return hidden_states, residual

        class LlamaModel(nn.Module):
            def __init__(self, model_config):
                super().__init__()
                config = model_config.pretrained_config
                self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
                self.layers = nn.ModuleList(
                    [LlamaDecoderLayer(model_config, layer_idx) for layer_idx in range(config.num_hidden_layers)])
                self.norm = RMSNorm(config.hidden_size)

            def forward(self, attn_metadata, input_ids=None, position_ids=None, spec_metadata=None):
                hidden_states = self.embed_tokens(input_ids)
                residual = hidden_states
                hidden_states = self.layers[0].input_layernorm(hidden_states)
                for decoder_layer in self.layers:
                    hidden_states, residual = decoder_layer(
                        position_ids=position_ids, hidden_states=hidden_states, attn_metadata=attn_metadata,
                        residual=residual, spec_metadata=spec_metadata)
                return hidden_states

        @register_auto_model("MistralForCausalLM")
        @register_auto_model("LlamaForCausalLM")
        class LlamaForCausalLM(DecoderModelForCausalLM):
            def __init__(self, model_config):
                super().__init__(LlamaModel(model_config), config=model_config)

            def load_weights(self, weights):
                super().load_weights(weights)
                last = len(self.model.layers) - 1
                for idx, layer in enumerate(self.model.layers):
                    if idx == last:
                        layer.next_layer_layernorm = self.model.norm
                    else:
                        layer.next_layer_layernorm = self.model.layers[idx + 1].input_layernorm
    """,
}


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "tensorrt_llm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), "utf-8")
    return tmp_path


def derive(root: Path, name: str, ids: LayerIds = "default", draft: dict[str, Any] | None = None) -> Wiring:
    found = open_serving(f"tensorrt-llm@{root}", root=root, display_root=root)
    binding = found.target_class(name)
    assert binding is not None
    request = ServingRequest(binding, 36, {"num_hidden_layers": 36}, layer_ids=ids, draft_data=draft)
    return derive_serving(found.engine, found.source, request)


@pytest.mark.parametrize("name", ["Qwen3ForCausalLM", "LlamaForCausalLM"])
def test_the_default_list_names_layers_whose_outputs_are_captured(engine: Path, name: str) -> None:
    wiring = derive(engine, name)
    assert wiring.status == "exact", wiring.reason
    assert [slot.boundary for slot in wiring.slots] == [2, 18, 33]


def test_layers_are_taken_in_ascending_order(engine: Path) -> None:
    """The option is a set."""
    assert [slot.boundary for slot in derive(engine, "Qwen3ForCausalLM", (30, 2, 17)).slots] == [3, 18, 31]


def test_the_layer_behind_the_last_is_the_normed_state(engine: Path) -> None:
    """-1 asks for what the model gives back, and its state comes last."""
    slots = derive(engine, "Qwen3ForCausalLM", (-1, 2, 17)).slots
    assert [(slot.boundary, slot.form) for slot in slots] == [(3, "stream"), (18, "stream"), (36, "norm")]


def test_no_key_of_a_drafts_config_is_read(engine: Path) -> None:
    draft = {"architectures": ["LlamaForCausalLMEagle3"], "eagle_aux_hidden_state_layer_ids": [2, 17, 30]}
    wiring = derive(engine, "LlamaForCausalLM", draft=draft)
    assert (wiring.layer_ids, [slot.boundary for slot in wiring.slots]) == ("default", [2, 18, 33])


def test_a_target_that_is_too_shallow_is_refused(engine: Path) -> None:
    found = open_serving(f"tensorrt-llm@{engine}", root=engine, display_root=engine)
    binding = found.target_class("Qwen3ForCausalLM")
    assert binding is not None
    request = ServingRequest(binding, 4, {"num_hidden_layers": 4})
    wiring = derive_serving(found.engine, found.source, request)
    assert (wiring.status, wiring.reason and "too few layers" in wiring.reason) == ("unknown", True)


def test_registered_classes_whose_layers_hand_on_their_states_are_targets(engine: Path) -> None:
    found = open_serving(f"tensorrt-llm@{engine}", root=engine, display_root=engine)
    names = [binding.item.name for binding in found.engine.target_classes(found.source)]
    assert names == ["LlamaForCausalLM", "PlainForCausalLM"]
    for architecture in ("LlamaForCausalLM", "MistralForCausalLM"):
        binding = found.target_class(architecture)
        assert isinstance(binding, Binding)
        assert binding.item.name == "LlamaForCausalLM"


def test_the_evidence_leads_from_the_list_to_the_copy(engine: Path) -> None:
    """What makes the list, and for each slot the layer's call and the copy into the buffer."""
    evidence = derive(engine, "Qwen3ForCausalLM").evidence
    assert [(Path(item.path).name, item.slot) for item in evidence] == [
        ("eagle3.py", None),
        *(place for slot in range(3) for place in (("modeling_plain.py", slot), ("eagle3.py", slot))),
    ]


def test_the_option_that_mends_it_is_told(engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The config's ids are read by nobody: the engine is told the layers at its start."""
    monkeypatch.chdir(tmp_path)
    target = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "num_hidden_layers": 36, "hidden_size": 64}
    draft = {
        "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1,
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 17, 30]},
    }  # fmt: skip
    for name, config in (("draft", draft), ("target", target)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config), "utf-8")
    words = ["scan", "--draft", "draft", "--target", "target", "--trained-by", "layer-output", "--serving"]
    result = CliRunner().invoke(app, [*words, f"tensorrt-llm@{engine}", "--select", "CFG001"])
    assert result.exit_code == 1
    assert "help: Start it with eagle3_layers_to_capture [2, 17, 30]." in result.stdout
