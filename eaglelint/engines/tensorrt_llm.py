"""TensorRT-LLM's PyTorch back end: where its wiring begins; everything else is derived from the source.

Read in NVIDIA/TensorRT-LLM: _torch/speculative/eagle3.py (001e670, f933a60), utils.py (011d093), and of _torch/models
modeling_qwen3.py (010bb95), modeling_llama.py (012cf90) and modeling_speculative.py (00679c6).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from eaglelint.engines.base import EngineSource, TakesNoIds, enum_member, stand_in, token_indices
from eaglelint.source.calls import call_value
from eaglelint.source.construct import function_node
from eaglelint.source.index import ClassInfo
from eaglelint.source.lookup import find_method, get_attribute
from eaglelint.source.machine import Machine, Raised
from eaglelint.source.slices import Site
from eaglelint.source.tree import Binding
from eaglelint.source.values import BoundMethod, ClassValue, Dim, Function, Instance, TensorBuffer, Unknown

__all__ = ["TensorRTLLM"]

_KINDS = ("eagle3",)
_CAPTURES = b"maybe_capture_hidden_states"
# Looking ahead to the class, so that each of several registrations of one class is found.
_REGISTERED = re.compile(rb"@register_auto_model\(\s*[\"'](\w+)[\"']\s*\)(?=\s*(?:@[^\n]*\s*)*class\s+(\w+))")
_METADATA = "spec_metadata"
_LAYERS = "layers_to_capture"
_LOADING = ("DecoderModelForCausalLM", "SpecDecOneEngineForCausalLM")


class TensorRTLLM(TakesNoIds):
    """The engine's entry points, by name: the registry of models, what makes the metadata of a step, their forward.

    A layer hands its state to the step's metadata, which knows the layers and copies it into a buffer. They are an
    option of the server (``eagle3_layers_to_capture``): no key of a draft's config is read.
    """

    name = "tensorrt-llm"
    setters: tuple[str, ...] = ("maybe_capture_hidden_states",)
    usual_offset = 1
    ids_option = "eagle3_layers_to_capture"

    def find_package(self, path: Path) -> Path | None:
        for candidate in (path, path / "tensorrt_llm"):
            if (candidate / "_torch" / "speculative" / "utils.py").is_file():
                return candidate
        return None

    def target_class(self, source: EngineSource, name: str) -> Binding | None:
        """The class that is registered for an architecture, else the class of that name."""
        for file in source.tree.files(self._models(source)):
            for architecture, registered in _REGISTERED.findall(source.tree.read(file)):
                if architecture.decode() == name:
                    return source.tree.find_class(registered.decode(), (file.parent,))
        return source.tree.find_class(name, (self._models(source),))

    def target_classes(self, source: EngineSource, kind: str = "eagle3") -> list[Binding]:
        """The registered classes in whose files layers hand on their states; those of drafts are no targets."""
        found: list[Binding] = []
        for file in source.tree.files(self._models(source)) if kind in _KINDS else ():
            text = source.tree.read(file)
            module = source.tree.module_at(file) if _CAPTURES in text else None
            for architecture, registered in _REGISTERED.findall(text) if module is not None else ():
                info = module.index.classes.get(registered.decode()) if module is not None else None
                drafts = re.search(rb"EAGLE|Eagle|Draft|MTP", architecture)
                if module is not None and info is not None and drafts is None:
                    binding = Binding(module, info)
                    found += [binding] if not any(info is other.item for other in found) else []
        return found

    def _models(self, source: EngineSource) -> Path:
        return source.package / "_torch" / "models"

    def prepare(self, machine: Machine, source: EngineSource, kind: str) -> None:
        """The weights themselves are not read."""
        for name in _LOADING:
            machine.intercepts[f"{name}.load_weights"] = lambda m, args, kwargs, site: None

    def build_model(self, machine: Machine, cls: Binding, target: Any) -> Instance:
        assert isinstance(cls.item, ClassInfo)
        config = stand_in(machine, "the model's config", pretrained_config=target)
        made = Instance(ClassValue(cls.module, cls.item), (), {"model_config": config}, name=cls.item.name)
        return machine.new_instance(made)

    def build_draft(
        self, machine: Machine, source: EngineSource, kind: str, draft: Instance, target: Instance
    ) -> Instance | None:
        """The draft is built from the checkpoint's own config by one class for all, which no name leads to."""
        return None

    def configure(
        self, machine: Machine, source: EngineSource, model: Instance, kind: str, draft: Any, ids: Any
    ) -> bool:
        if kind not in _KINDS:
            return False
        directories = (source.package / "_torch" / "speculative",)
        made = source.tree.find_function("get_spec_metadata", directories)
        mode = enum_member(machine, source, directories, "SpeculativeDecodingMode", "EAGLE3_ONE_MODEL")
        if made is None or mode is None:
            raise Raised("LookupError", "no get_spec_metadata with a mode EAGLE3_ONE_MODEL in _torch/speculative", None)
        asked = None if ids is None else machine.heap.born(set(ids))
        options = stand_in(
            machine,
            "the speculative config",
            spec_dec_mode=mode,
            eagle3_layers_to_capture=asked,
            eagle_choices=None,
            use_dynamic_tree=False,
        )
        config = stand_in(
            machine, "the target's config", num_hidden_layers=machine.num_layers, hidden_size=Dim(1), torch_dtype=None
        )
        function = Function(made.module, made.item)  # type: ignore[arg-type]
        numbers = {name: Unknown(name, present=True) for name in ("max_num_requests", "max_num_tokens")}
        metadata = call_value(machine, function, (options, config), numbers, None)
        if not isinstance(metadata, Instance):
            raise Raised("LookupError", "get_spec_metadata makes nothing for EAGLE-3", None)
        machine.heap.set(model.attrs, _METADATA, metadata)
        _record_layers(machine, metadata)
        _finish_loading(machine, model)
        return True

    def forward(self, machine: Machine, source: EngineSource, model: Instance, received: Any = None) -> Any:
        """Run the target alone; its worker hands the metadata's buffer to the draft."""
        method = get_attribute(machine, model, "forward")
        if not isinstance(method, BoundMethod):
            raise Raised("AttributeError", f"{model.name} has no forward", None)
        machine.heap.set(model.attrs, "spec_worker", None)
        metadata = model.attrs[_METADATA]
        arguments = {
            "attn_metadata": stand_in(machine, "attn_metadata", padded_num_tokens=None),
            "input_ids": token_indices(machine, "input_ids"),
            "position_ids": token_indices(machine, "position_ids"),
            _METADATA: metadata,
        }
        call_value(machine, method, (), arguments, None)
        buffer = get_attribute(machine, metadata, "hidden_states")
        return buffer if isinstance(buffer, TensorBuffer) else None

    def concatenate(self, machine: Machine, source: EngineSource, captured: Any) -> Any:
        """The states stand side by side in the buffer already."""
        return captured


def _record_layers(machine: Machine, metadata: Instance) -> None:
    """The layers that the metadata has made of the option, as what a setter stores elsewhere."""
    assert metadata.cls is not None
    layers = get_attribute(machine, metadata, _LAYERS)
    method = find_method(machine, metadata.cls, "__post_init__")
    if method is not None and isinstance(layers, list | tuple) and all(isinstance(layer, int) for layer in layers):
        machine.record("set", _LAYERS, list(layers), Site(*function_node(method)))


def _finish_loading(machine: Machine, model: Instance) -> None:
    """What a class does behind the loading of its weights: it gives each layer the next one's norm."""
    assert model.cls is not None
    for name in ("load_weights", "post_load_weights", "setup_aliases"):
        method = find_method(machine, model.cls, name)
        if method is not None and method.owner is not None and method.owner.info is model.cls.info:
            weights = (Unknown("the weights", present=True),) if name == "load_weights" else ()
            call_value(machine, BoundMethod(method, model), weights, {}, None)
