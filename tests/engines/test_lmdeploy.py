"""A small engine in LMDeploy's form: a builder writes the layers into the target's config, the model joins its states."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from eaglelint.derive import ServingRequest, derive_serving
from eaglelint.serving import open_serving
from eaglelint.wiring import LayerIds, Wiring

FILES = {
    "version.py": '__version__ = "0.14.0+mini"\n',
    "pytorch/models/module_map.py": """
        PATH = "lmdeploy.pytorch.models"
        MODULE_MAP = dict()
        MODULE_MAP.update({"LlamaForCausalLM": f"{PATH}.llama.LlamaForCausalLM"})
        MODULE_MAP.update({"OtherForCausalLM": f"{PATH}.llama.LlamaForCausalLM"})
        MODULE_MAP.update({"Eagle3LlamaForCausalLM": f"{PATH}.llama_eagle3.Eagle3LlamaForCausalLM"})
    """,
    "pytorch/configurations/builder.py": """
        class AutoModelConfigBuilder:
            @classmethod
            def condition(cls, hf_config):
                raise NotImplementedError(cls.__name__)
    """,
    "pytorch/configurations/default.py": """
        from .builder import AutoModelConfigBuilder

        class DefaultModelConfigBuilder(AutoModelConfigBuilder):
            @classmethod
            def condition(cls, hf_config):
                return True

            @classmethod
            def build(cls, hf_config, model_path=None, **kwargs):
                return ModelConfig(num_layers=hf_config.num_hidden_layers)

        class ModelConfig:
            def __init__(self, num_layers):
                self.num_layers = num_layers
    """,
    "pytorch/configurations/llama.py": """
        from .builder import AutoModelConfigBuilder
        from .default import DefaultModelConfigBuilder

        class LlamaModelConfigBuilder(AutoModelConfigBuilder):
            @classmethod
            def condition(cls, hf_config):
                return hf_config.architectures[0] in ["LlamaForCausalLM"]

            @classmethod
            def build(cls, hf_config, model_path=None, is_draft_model=False, spec_method=None, **kwargs):
                cfg = DefaultModelConfigBuilder.build(hf_config, model_path, **kwargs)
                if spec_method == "eagle3":
                    hf_config.aux_hidden_state_layers = (2, cfg.num_layers // 2, cfg.num_layers - 3)
                return cfg
    """,
    "pytorch/models/llama.py": """
        import torch
        from torch import nn
        from lmdeploy.pytorch.nn import RMSNorm

        class LlamaDecoderLayer(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.input_layernorm = RMSNorm(config.hidden_size)
                self.self_attn = nn.Linear(config.hidden_size, config.hidden_size)
                self.post_attention_layernorm = RMSNorm(config.hidden_size)
                self.mlp = nn.Linear(config.hidden_size, config.hidden_size)
                self.register_buffer('scale', torch.ones(1), persistent=False)

            def forward(self, hidden_states, residual=None):
                if residual is None:
                    residual = hidden_states
                    hidden_states = self.input_layernorm(hidden_states)
                else:
                    hidden_states, residual = self.input_layernorm(hidden_states, residual)
                hidden_states = self.self_attn(hidden_states * self.scale)
                hidden_states, residual = self.post_attention_layernorm(hidden_states, residual)
                return self.mlp(hidden_states), residual

        class LlamaModel(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
                self.layers = nn.ModuleList([LlamaDecoderLayer(config) for _ in range(config.num_hidden_layers)])
                self.aux_hidden_state_layers = getattr(config, "aux_hidden_state_layers", tuple())
                self.norm = RMSNorm(config.hidden_size)

            def forward(self, input_ids, inputs_embeds=None):
                hidden_states = self.embed_tokens(input_ids) if inputs_embeds is None else inputs_embeds
                aux_hidden_states = []
                residual = None
                for idx, decoder_layer in enumerate(self.layers):
                    if idx in self.aux_hidden_state_layers:
                        aux_hidden_states.append(hidden_states + residual)
                    hidden_states, residual = decoder_layer(hidden_states, residual=residual)
                hidden_states, _ = self.norm(hidden_states, residual)
                if len(aux_hidden_states) > 0:
                    return dict(hidden_states=hidden_states, aux_hidden_states=torch.cat(aux_hidden_states, dim=-1))
                return hidden_states

        class LlamaForCausalLM(nn.Module):
            def __init__(self, config, ctx_mgr, dtype=None, device=None):
                super().__init__()
                self.model = LlamaModel(config)

            def forward(self, input_ids, position_ids, past_key_values, attn_metadata=None, inputs_embeds=None, **kwargs):
                return self.model(input_ids=input_ids, inputs_embeds=inputs_embeds)
    """,
    "pytorch/nn/__init__.py": """
        from torch import nn

        class RMSNorm(nn.Module):
            def forward(self, x, residual=None):
                if residual is None:
                    return self.weight * x
                x = x + residual
                return self.weight * x, x
    """,
}


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "lmdeploy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), "utf-8")
    return tmp_path


def derive(root: Path, ids: LayerIds = "default", kind: str = "eagle3", draft: dict[str, Any] | None = None) -> Wiring:
    found = open_serving(f"lmdeploy@{root}", root=root, display_root=root)
    binding = found.target_class("LlamaForCausalLM")
    assert binding is not None
    return found.wiring(ServingRequest(binding, 32, {"num_hidden_layers": 32}, kind, draft, ids))


def test_the_builder_s_layers_are_boundaries(engine: Path) -> None:
    """Written into the config by the builder, read by the model, tested before each layer; joined in the model."""
    wiring = derive(engine)
    assert (wiring.status, str(wiring)) == ("exact", "h[2] ⊕ h[16] ⊕ h[29]")
    notes = [item.note for item in wiring.evidence]
    assert notes[0] == "aux_hidden_state_layers = [2, 16, 29]"
    assert notes[-1] == "torch.cat(aux_hidden_states, dim=-1)"
    assert wiring.engine_version == "0.14.0+mini"


def test_a_draft_s_ids_are_never_read(engine: Path) -> None:
    """Wherever they stand: no key names layers."""
    draft = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 2, 3]}, "eagle_aux_hidden_state_layer_ids": [4]}
    wiring = derive(engine, draft=draft)
    assert (str(wiring), wiring.layer_ids, wiring.ids_from) == ("h[2] ⊕ h[16] ⊕ h[29]", "default", None)


def test_other_ids_cannot_be_asked_for(engine: Path) -> None:
    """The answer says why, and is none."""
    wiring = derive(engine, (1, 2, 3))
    assert (wiring.status, wiring.slots) == ("unknown", ())
    assert "no option and no key" in (wiring.reason or "")


def test_a_kind_of_draft_without_capture(engine: Path) -> None:
    """Its builder writes layers for EAGLE-3 alone."""
    assert derive(engine, kind="dflash").reason == "the engine captures no auxiliary states for this config"


def test_target_classes_are_those_that_capture(engine: Path) -> None:
    """Each once, whatever names the map gives it; the classes of drafts are none."""
    found = open_serving(f"lmdeploy@{engine / 'lmdeploy'}", root=engine, display_root=engine)
    names = [getattr(getattr(binding, "item", None), "name", None) for binding in found.target_classes()]
    assert names == ["LlamaForCausalLM"]
    assert found.target_class("OtherForCausalLM") is not None
    assert found.target_class("Nothing") is None


def test_derive_serving_is_what_the_handle_gives(engine: Path) -> None:
    """One derivation, whichever way it is asked for."""
    found = open_serving(f"lmdeploy@{engine}", root=engine, display_root=engine)
    binding = found.engine.target_class(found.source, "LlamaForCausalLM")  # type: ignore[union-attr]
    request = ServingRequest(binding, 32, {"num_hidden_layers": 32})
    assert derive_serving(found.engine, found.source, request) == derive(engine)  # type: ignore[union-attr]
