"""A small library in transformers' form: hooks on the layers collect the states, a decorator ties the last to the norm."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from eaglelint.derive import ServingRequest, derive_serving
from eaglelint.serving import EngineHandle, open_serving
from eaglelint.wiring import LayerIds, Wiring

FILES = {
    "__init__.py": '__version__ = "5.24.0+mini"\n',
    "modeling_outputs.py": """
        from dataclasses import dataclass
        from .utils.generic import ModelOutput

        @dataclass
        class BaseModelOutput(ModelOutput):
            last_hidden_state: object = None
            hidden_states: object = None
    """,
    "utils/generic.py": """
        from collections import OrderedDict

        class ModelOutput(OrderedDict):
            def __init__(self, *args, **kwargs):
                super().__init__(*args, **kwargs)

            def __post_init__(self):
                for element in self.items():
                    setattr(self, element[0], element[1])

            def __setitem__(self, key, value):
                super().__setitem__(key, value)
                super().__setattr__(key, value)
    """,
    "utils/output_capturing.py": """
        from contextvars import ContextVar
        from dataclasses import dataclass
        from functools import wraps

        class _CanRecordRegistry(dict):
            def get(self, model):
                return super().get(str(model.__class__)) or {}

        _CAN_RECORD_REGISTRY = _CanRecordRegistry()

        @dataclass
        class OutputRecorder:
            target_class: type
            index: int = 0
            layer_name: str = None
            capture_initial_hidden_state: bool = True

        class CompileableContextVar:
            def __init__(self, name):
                self.context_var = ContextVar(name, default=None)

            def get(self):
                return self.context_var.get()

            def set(self, value):
                return self.context_var.set(value)

            def reset(self, token):
                self.context_var.reset(token)

        _active_collector = CompileableContextVar("output_collector")

        def install_output_capuring_hook(module, key, index, capture_initial_hidden_state=True):
            def output_capturing_hook(module, args, output):
                collected = _active_collector.get()
                if collected is None or key not in collected.keys():
                    return
                if capture_initial_hidden_state and len(collected[key]) == 0:
                    collected[key].append(args[0])
                collected[key].append(output if not isinstance(output, tuple) else output[index])

            module.register_forward_hook(output_capturing_hook)

        def recursively_install_hooks(parent_module, module_name, capture_tasks):
            for name, module in parent_module.named_children():
                recursively_install_hooks(module, name, capture_tasks)

        def install_all(model):
            tasks = []
            for key, specs in _CAN_RECORD_REGISTRY.get(model).items():
                if not isinstance(specs, OutputRecorder):
                    specs = OutputRecorder(target_class=specs, index=0 if "hidden_states" in key else 1)
                tasks.append((key, specs))
            recursively_install_hooks(model, "", tasks)

        def capture_outputs(func):
            @wraps(func)
            def wrapper(self, *args, **kwargs):
                collected = {
                    key: [] for key in _CAN_RECORD_REGISTRY.get(self) if kwargs.get(f"output_{key}", False)
                }
                if len(collected) > 0 and not getattr(self, "_output_capturing_hooks_installed", False):
                    install_all(self)
                token = _active_collector.set(collected)
                try:
                    outputs = func(self, *args, **kwargs)
                finally:
                    _active_collector.reset(token)
                for key in collected:
                    if key == "hidden_states" and hasattr(outputs, "last_hidden_state"):
                        collected[key] = collected[key][:-1]
                        collected[key].append(outputs.last_hidden_state)
                    outputs[key] = tuple(collected[key])
                return outputs

            return wrapper
    """,
    "models/llama/modeling_llama.py": """
        from torch import nn
        from ...modeling_outputs import BaseModelOutput
        from ...utils.output_capturing import OutputRecorder, capture_outputs

        class LlamaRMSNorm(nn.Module):
            def forward(self, hidden_states):
                return self.weight * hidden_states

        class LlamaDecoderLayer(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.input_layernorm = LlamaRMSNorm()
                self.self_attn = nn.Linear(config.hidden_size, config.hidden_size)
                self.post_attention_layernorm = LlamaRMSNorm()
                self.mlp = nn.Linear(config.hidden_size, config.hidden_size)

            def forward(self, hidden_states):
                residual = hidden_states
                batch, tokens = hidden_states.shape[:-1]
                hidden_states = residual + self.self_attn(self.input_layernorm(hidden_states))
                residual = hidden_states
                hidden_states = self.post_attention_layernorm(hidden_states)
                return residual + self.mlp(hidden_states)

        class LlamaModel(nn.Module):
            base_model_prefix = "model"
            _can_record_outputs = {"hidden_states": LlamaDecoderLayer}

            def __init__(self, config):
                super().__init__()
                self.config = config
                self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
                self.layers = nn.ModuleList([LlamaDecoderLayer(config) for _ in range(config.num_hidden_layers)])
                self.norm = LlamaRMSNorm()

            @capture_outputs
            def forward(self, input_ids=None, inputs_embeds=None, use_cache=None, **kwargs):
                hidden_states = self.embed_tokens(input_ids)
                for decoder_layer in self.layers[: self.config.num_hidden_layers]:
                    hidden_states = decoder_layer(hidden_states)
                hidden_states = self.norm(hidden_states)
                return BaseModelOutput(last_hidden_state=hidden_states)

        class LlamaForCausalLM(nn.Module):
            base_model_prefix = "model"

            def __init__(self, config):
                super().__init__()
                self.model = LlamaModel(config)

        class UntiedModel(LlamaModel):
            _can_record_outputs = {
                "hidden_states": OutputRecorder(LlamaDecoderLayer, capture_initial_hidden_state=False)
            }

        class UntiedForCausalLM(nn.Module):
            base_model_prefix = "model"

            def __init__(self, config):
                super().__init__()
                self.model = UntiedModel(config)
    """,
    "models/other/modeling_other.py": """
        import torch
        from torch import nn
        from ...modeling_outputs import BaseModelOutput
        from ...utils.output_capturing import capture_outputs
        from ..llama.modeling_llama import LlamaModel, LlamaRMSNorm

        class OtherOutput(BaseModelOutput):
            pass

        def rotate(x):
            return torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)

        class OtherDecoderLayer(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.norm = LlamaRMSNorm()
                self.self_attn = nn.Linear(config.hidden_size, config.hidden_size)
                self.experts = nn.Linear(config.hidden_size, config.hidden_size)
                self.dropout = nn.Dropout(0.1)

            def forward(self, hidden_states, **kwargs):
                residual = hidden_states
                hidden_states = residual + self.dropout(self.self_attn(rotate(self.norm(hidden_states)), **kwargs))
                branch = nn.functional.dropout(self.experts(hidden_states), p=0.1, training=self.training)
                return hidden_states + branch

        class OtherModel(LlamaModel):
            _can_record_outputs = {"hidden_states": OtherDecoderLayer}

            def __init__(self, config):
                super().__init__(config)
                self.layers = nn.ModuleList([OtherDecoderLayer(config) for _ in range(config.num_hidden_layers)])

            @capture_outputs
            def forward(self, input_ids=None, inputs_embeds=None, use_cache=None, **kwargs):
                hidden_states = self.embed_tokens(input_ids)
                for decoder_layer in self.layers:
                    hidden_states = decoder_layer(hidden_states, **kwargs)
                return OtherOutput(last_hidden_state=self.norm(hidden_states))

        class OtherForCausalLM(nn.Module):
            base_model_prefix = "language_model"

            def __init__(self, config):
                super().__init__()
                self.model = OtherModel(config)
    """,
}


@pytest.fixture
def library(tmp_path: Path) -> EngineHandle:
    for name, text in FILES.items():
        path = tmp_path / "transformers" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), "utf-8")
    found = open_serving(f"transformers@{tmp_path}", root=tmp_path, display_root=tmp_path)
    assert isinstance(found, EngineHandle)
    return found


def derive(library: EngineHandle, ids: LayerIds, name: str = "LlamaForCausalLM") -> Wiring:
    binding = library.engine.target_class(library.source, name)
    assert binding is not None
    return derive_serving(
        library.engine, library.source, ServingRequest(binding, 8, {"num_hidden_layers": 8}, layer_ids=ids)
    )


@pytest.mark.parametrize(
    ("ids", "states"),
    [
        ((2, 4, 5), "h[2] ⊕ h[4] ⊕ h[5]"),
        ((0, 7), "h[0] ⊕ h[7]"),
        ((5, 2), "h[5] ⊕ h[2]"),
        ((8,), "norm(h[8])"),
        ((-1, -2), "norm(h[8]) ⊕ h[7]"),
        ("default", " ⊕ ".join([*(f"h[{k}]" for k in range(8)), "norm(h[8])"])),
    ],
)
def test_an_entry_of_hidden_states(library: EngineHandle, ids: LayerIds, states: str) -> None:
    """Entry k is h[k], entry N is h[N] after the final norm; in the order in which they are picked."""
    wiring = derive(library, ids)
    assert (wiring.status, str(wiring), wiring.reason) == ("exact", states, None)


def test_what_models_do_in_and_around_their_layers(library: EngineHandle) -> None:
    """Dropouts, stacked halves, the keyword handed on into layers, an output class of the model's own."""
    found = derive(library, (2, 5, 8), "OtherForCausalLM")
    assert (found.status, " ⊕ ".join(map(str, found.slots))) == ("exact", "h[2] ⊕ h[5] ⊕ norm(h[8])")
    assert "a model in inference" in found.assumptions


def test_an_entry_that_is_not_there(library: EngineHandle) -> None:
    """There are N+1 of them."""
    wiring = derive(library, (9,))
    assert (wiring.status, wiring.slots) == ("unknown", ())
    assert "out of the range" in (wiring.reason or "")


def test_a_recorder_without_the_embedding(library: EngineHandle) -> None:
    """Where the first layer's input is not recorded, entry k is the output of layer k."""
    assert str(derive(library, (0, 1), "UntiedForCausalLM")) == "h[1] ⊕ h[2]"


def test_classes_of_language_models(library: EngineHandle) -> None:
    """Those in files that capture by hooks."""
    names = [getattr(binding.item, "name", None) for binding in library.engine.target_classes(library.source)]
    assert names == ["LlamaForCausalLM", "UntiedForCausalLM", "OtherForCausalLM"]
