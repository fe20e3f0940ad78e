"""A small engine in vLLM's form: a mixin that captures by boundary ids, a resolver that looks in many places."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from eaglelint.derive import ServingRequest, derive_serving
from eaglelint.serving import open_serving
from eaglelint.wiring import LayerIds, Wiring

FILES = {
    "version.py": '__version__ = "0.33.0+mini"\n',
    "model_executor/models/registry.py": """
        _TEXT_GENERATION_MODELS = {
            "LlamaForCausalLM": ("llama", "LlamaForCausalLM"),
            "RenamedForCausalLM": ("llama", "LlamaForCausalLM"),
        }
        _MULTIMODAL_MODELS = {"VisionForConditionalGeneration": ("vision", "VisionForConditionalGeneration")}
    """,
    "model_executor/models/interfaces.py": """
        from typing import ClassVar, Literal, Protocol

        class EagleModelMixin:
            aux_hidden_state_layers: tuple[int, ...] = ()

            def _set_aux_hidden_state_layers(self, layers):
                self.aux_hidden_state_layers = tuple(sorted(set(layers)))

            def _maybe_add_hidden_state(self, aux_hidden_states, layer_idx, hidden_states, residual):
                if layer_idx in self.aux_hidden_state_layers:
                    value = hidden_states + residual if residual is not None else hidden_states
                    aux_hidden_states.append(value)
                return aux_hidden_states

        class SupportsEagle3(Protocol):
            supports_eagle3: ClassVar[Literal[True]] = True

            def set_aux_hidden_state_layers(self, layers):
                parent = self.get_language_model() if hasattr(self, "get_language_model") else self
                holder = getattr(parent, "model", parent)
                assert isinstance(holder, EagleModelMixin)
                holder._set_aux_hidden_state_layers(layers)

            def get_eagle3_default_aux_hidden_state_layers(self):
                parent = self.get_language_model() if hasattr(self, "get_language_model") else self
                num_layers = len(getattr(parent, "model", parent).layers)
                return (2, num_layers // 2, num_layers - 3)
    """,
    "model_executor/models/llama.py": """
        from itertools import islice

        from torch import nn
        from vllm.model_executor.layers.layernorm import RMSNorm
        from vllm.model_executor.models.interfaces import EagleModelMixin, SupportsEagle3

        class LlamaDecoderLayer(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.self_attn = nn.Linear(1, 1)
                self.mlp = nn.Linear(1, 1)
                self.input_layernorm = RMSNorm(config.hidden_size)
                self.post_attention_layernorm = RMSNorm(config.hidden_size)

            def forward(self, positions, hidden_states, residual):
                if residual is None:
                    residual = hidden_states
                    hidden_states = self.input_layernorm(hidden_states)
                else:
                    hidden_states, residual = self.input_layernorm(hidden_states, residual)
                hidden_states = self.self_attn(hidden_states)
                hidden_states, residual = self.post_attention_layernorm(hidden_states, residual)
                return self.mlp(hidden_states), residual

        class LlamaModel(nn.Module, EagleModelMixin):
            def __init__(self, *, vllm_config, prefix=""):
                super().__init__()
                config = vllm_config.model_config.hf_config
                self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
                self.start_layer, self.end_layer, self.layers = self.make_layers(
                    config.num_hidden_layers, lambda prefix: LlamaDecoderLayer(config)
                )
                self.norm = RMSNorm(config.hidden_size)

            @staticmethod
            def make_layers(count, build):
                return 0, count, nn.ModuleList([build(prefix=f"layers.{i}") for i in range(count)])

            def forward(self, input_ids, positions, intermediate_tensors, inputs_embeds=None):
                hidden_states = self.embed_tokens(input_ids)
                residual = None
                aux_hidden_states = self._maybe_add_hidden_state([], self.start_layer, hidden_states, residual)
                for idx, layer in enumerate(
                    islice(self.layers, self.start_layer, self.end_layer), start=self.start_layer
                ):
                    hidden_states, residual = layer(positions, hidden_states, residual)
                    self._maybe_add_hidden_state(aux_hidden_states, idx + 1, hidden_states, residual)
                hidden_states, _ = self.norm(hidden_states, residual)
                if len(aux_hidden_states) > 0:
                    return hidden_states, aux_hidden_states
                return hidden_states

        class LlamaForCausalLM(nn.Module, SupportsEagle3):
            def __init__(self, *, vllm_config, prefix=""):
                super().__init__()
                self.model = LlamaModel(vllm_config=vllm_config, prefix=prefix)

            def forward(self, input_ids, positions, intermediate_tensors=None, inputs_embeds=None):
                return self.model(input_ids, positions, intermediate_tensors, inputs_embeds)
    """,
    "model_executor/models/vision.py": """
        from torch import nn
        from vllm.model_executor.models.interfaces import SupportsEagle3
        from vllm.model_executor.models.llama import LlamaForCausalLM

        class VisionForConditionalGeneration(nn.Module, SupportsEagle3):
            def __init__(self, *, vllm_config, prefix=""):
                super().__init__()
                self.language_model = LlamaForCausalLM(vllm_config=vllm_config)

            def get_language_model(self):
                return self.language_model

            def forward(self, input_ids, positions, intermediate_tensors=None, inputs_embeds=None):
                return self.language_model.model(input_ids, positions, intermediate_tensors, inputs_embeds)
    """,
    "model_executor/layers/layernorm.py": """
        from torch import nn

        class RMSNorm(nn.Module):
            def forward(self, x, residual=None):
                return self.weight * x
    """,
    "v1/worker/gpu/eagle3_utils.py": """
        def requires_aux_hidden_states(spec_config):
            if spec_config.method == "eagle3":
                eagle_config = getattr(spec_config.draft_model_config.hf_config, "eagle_config", None) or {}
                return eagle_config.get("use_aux_hidden_state", True)
            return spec_config.method in ("dflash", "dspark")

        def set_eagle3_aux_hidden_state_layers(model, spec_config, use_pp=False):
            layers = get_eagle3_aux_layers_from_config(spec_config)
            model.set_aux_hidden_state_layers(layers or model.get_eagle3_default_aux_hidden_state_layers())

        def get_eagle3_aux_layers_from_config(spec_config):
            hf_config = spec_config.draft_model_config.hf_config
            layer_ids = getattr(hf_config, "eagle_aux_hidden_state_layer_ids", None)
            if not layer_ids:
                dflash_config = getattr(hf_config, "dflash_config", None)
                if dflash_config and isinstance(dflash_config, dict):
                    layer_ids = [i + 1 for i in (dflash_config.get("target_layer_ids") or [])]
            if not layer_ids:
                for name in ("dflash_config", "eagle_config"):
                    section = getattr(hf_config, name, None)
                    if section and isinstance(section, dict):
                        layer_ids = section.get("layer_ids")
                        if layer_ids:
                            break
            if layer_ids and isinstance(layer_ids, (list, tuple)):
                return tuple(layer_ids)
            return None
    """,
    "v1/worker/gpu/spec_decode/speculator.py": """
        import torch

        class Speculator:
            def propose(self, aux_hidden_states, last_hidden_states):
                if aux_hidden_states:
                    return self.model.combine_hidden_states(torch.cat(aux_hidden_states, dim=-1))
                return last_hidden_states
    """,
}


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), "utf-8")
    return tmp_path


def derive(
    root: Path,
    ids: LayerIds = "default",
    *,
    draft: dict[str, Any] | None = None,
    kind: str = "eagle3",
    name: str = "LlamaForCausalLM",
) -> Wiring:
    found = open_serving(f"vllm@{root}", root=root, display_root=root)
    binding = found.engine.target_class(found.source, name)
    assert binding is not None
    request = ServingRequest(binding, 32, {"num_hidden_layers": 32}, kind, draft, ids)
    return derive_serving(found.engine, found.source, request)


@pytest.mark.parametrize(
    ("ids", "slots"),
    [
        ("default", "h[2] ⊕ h[16] ⊕ h[29]"),
        ((28, 1, 15), "h[1] ⊕ h[15] ⊕ h[28]"),
        ((0, 32, 32), "h[0] ⊕ h[32]"),
        ((33, 5), "h[5]"),
    ],
)
def test_ids_are_boundaries_sorted_and_unique(engine: Path, ids: LayerIds, slots: str) -> None:
    """Boundary 0 and N included; an id past the end captures nothing."""
    wiring = derive(engine, ids)
    assert (wiring.status, str(wiring), wiring.engine_version) == ("exact", slots, "0.33.0+mini")


@pytest.mark.parametrize(
    ("draft", "slots", "ids_from"),
    [
        ({}, "h[2] ⊕ h[16] ⊕ h[29]", None),
        ({"eagle_aux_hidden_state_layer_ids": [3, 7]}, "h[3] ⊕ h[7]", "eagle_aux_hidden_state_layer_ids"),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [3, 7]}}, "h[2] ⊕ h[16] ⊕ h[29]", None),
        ({"eagle_config": {"layer_ids": [3, 7]}}, "h[3] ⊕ h[7]", "eagle_config.layer_ids"),
        ({"eagle_aux_hidden_state_layer_ids": []}, "h[2] ⊕ h[16] ⊕ h[29]", None),
    ],
)
def test_where_the_resolver_looks(engine: Path, draft: dict[str, Any], slots: str, ids_from: str | None) -> None:
    """The resolver is run on the draft's own config; ids below eagle_config's EAGLE-3 key are not found."""
    wiring = derive(engine, draft=draft)
    assert (wiring.status, str(wiring), wiring.ids_from and ".".join(wiring.ids_from)) == ("exact", slots, ids_from)


def test_dflash_ids_are_layer_outputs(engine: Path) -> None:
    """The same resolver adds one to another kind's ids."""
    wiring = derive(engine, draft={"dflash_config": {"target_layer_ids": [1, 9]}}, kind="dflash")
    assert (wiring.status, str(wiring)) == ("exact", "h[2] ⊕ h[10]")


def test_a_draft_that_asks_for_no_states(engine: Path) -> None:
    """use_aux_hidden_state turns the capture off."""
    wiring = derive(engine, draft={"eagle_config": {"use_aux_hidden_state": False}})
    assert (wiring.status, wiring.reason) == ("unknown", "the engine captures no auxiliary states for this config")


@pytest.mark.parametrize("name", ["RenamedForCausalLM", "VisionForConditionalGeneration"])
def test_other_names_and_wrappers(engine: Path, name: str) -> None:
    """The registry maps an architecture to a class; a multimodal class hands the ids to its language model."""
    assert str(derive(engine, (4, 8), name=name)) == "h[4] ⊕ h[8]"


def test_target_classes(engine: Path) -> None:
    """The classes that inherit the interface, not the interface."""
    found = open_serving(f"vllm@{engine}", root=engine)
    names = [binding.item.name for binding in found.engine.target_classes(found.source)]  # type: ignore[union-attr]
    assert sorted(names) == ["LlamaForCausalLM", "VisionForConditionalGeneration"]


def test_the_evidence(engine: Path) -> None:
    """The mixin's two lines and the runner's concatenation."""
    found = derive(engine, (4,)).evidence
    assert [(item.path, item.note) for item in found] == [
        ("vllm/model_executor/models/interfaces.py", "aux_hidden_state_layers = [4]"),
        (
            "vllm/model_executor/models/llama.py",
            "self._maybe_add_hidden_state(aux_hidden_states, idx + 1, hidden_states, residual)",
        ),
        ("vllm/model_executor/models/interfaces.py", "aux_hidden_states.append(value)"),
        ("vllm/v1/worker/gpu/spec_decode/speculator.py", "torch.cat(aux_hidden_states, dim=-1)"),
    ]
