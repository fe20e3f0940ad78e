"""Where a run begins in each engine: how a model is made, handed its ids and called, and where its states come out.

The same places as the engines' files name for the interpreter (``eaglelint/engines/``), here with real objects.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any, Protocol

import torch

from eaglelint.probe.wiring.building import register_operator
from eaglelint.probe.wiring.config import Config, target_config
from eaglelint.probe.wiring.signatures import TOKENS
from eaglelint.probe.wiring.standin import StandIn
from eaglelint.probe.wiring.task import Task
from eaglelint.probe.wiring.world import World

__all__ = ["STARTS", "Start"]

_SETTERS = {
    "eagle3": ("set_eagle3_layers_to_capture",),
    "peagle": ("set_eagle3_layers_to_capture",),
    "dflash": ("set_dflash_layers_to_capture",),
    "domino": ("set_dflash_layers_to_capture",),
    "dspark": ("set_dspark_layers_to_capture", "set_dflash_layers_to_capture"),
}


class Start(Protocol):
    """One engine, as a run meets it."""

    def real(self, module: str) -> bool:
        """Whether a module is loaded from the tree; all others are stand-ins."""

    def functions(self, task: Task) -> dict[str, Any]:
        """Functions that are taken in the place of the tree's, by name."""

    def build(self, task: Task, cls: Any) -> Any:
        """The target model."""

    def configure(self, task: Task, model: Any) -> None:
        """Hand over the ids."""

    def forward(self, model: Any, world: World) -> tuple[Any, str]:
        """Run the model; the states that come out, and what joined them."""


def _tokens() -> dict[str, Any]:
    return {"input_ids": torch.arange(TOKENS), "positions": torch.arange(TOKENS)}


class SGLangStart:
    """SGLang: the models, the layer communicator, the logits processor and what they rest on."""

    _REAL = (
        "sglang.srt.models.",
        "sglang.srt.layers.communicator",
        "sglang.srt.layers.logits_processor",
        "sglang.srt.layers.utils",
        "sglang.srt.model_executor.forward_batch_info",
        "sglang.srt.utils",
        "sglang.srt.managers.mm_utils",
    )
    _NOT_REAL = ("sglang.srt.models.registry",)

    def real(self, module: str) -> bool:
        return module.startswith(self._REAL) and module not in self._NOT_REAL

    def functions(self, task: Task) -> dict[str, Any]:
        return {"direct_register_custom_op": register_operator}

    def build(self, task: Task, cls: Any) -> Any:
        config = target_config(task.target, task.num_layers)
        return cls(config=config, quant_config=None, prefix="")

    def configure(self, task: Task, model: Any) -> None:
        setter = next((getattr(model, name) for name in _SETTERS[task.kind] if hasattr(model, name)), None)
        if setter is None:
            raise AttributeError(f"{type(model).__name__} has no {_SETTERS[task.kind][0]}")
        setter(None if task.layer_ids is None else list(task.layer_ids))

    def forward(self, model: Any, world: World) -> tuple[Any, str]:
        processing = importlib.import_module("sglang.srt.layers.logits_processor")
        batches = importlib.import_module("sglang.srt.model_executor.forward_batch_info")
        processor = processing.LogitsProcessor
        given: list[Any] = []
        signature = inspect.signature(processor.forward)

        def process(self: Any, *args: Any, **kwargs: Any) -> Any:
            given.append(signature.bind(self, *args, **kwargs).arguments.get("aux_hidden_states"))
            return StandIn("logits")

        original, processor.forward = processor.forward, process
        batch = StandIn("forward_batch")
        for name in ("input_embeds", "mm_inputs"):
            setattr(batch, name, None)
        try:
            result = model.forward(**_tokens(), forward_batch=batch)
        finally:
            processor.forward = original
        if not given:
            captured = result[1] if isinstance(result, tuple) and len(result) == 2 else None
            return captured, "the model returned them"
        captured = given[0]
        if captured is None:
            return None, "the logits processor was given none"
        store = processor._get_hidden_states_to_store
        names = list(inspect.signature(store).parameters)
        values: dict[str, Any] = dict.fromkeys(names[1:])
        metadata = StandIn("logits metadata")
        metadata.__dict__["capture_hidden_mode"] = batches.CaptureHiddenMode.FULL
        values.update(hidden_states=StandIn("hidden_states", state=True), aux_hidden_states=captured)
        values["logits_metadata"] = metadata
        joined = store(processor.__new__(processor), **values)
        return joined, "joined by LogitsProcessor._get_hidden_states_to_store"


class VLLMStart:
    """vLLM: the models and the interfaces that they inherit from; the runner's join is not run."""

    _REAL = (
        "vllm.model_executor.models.",
        "vllm.models.",
        "vllm.model_executor.offloader.base",
        "vllm.utils.math_utils",
        "vllm.utils.collection_utils",
        "vllm.utils.func_utils",
        "vllm.sequence",
    )
    _NOT_REAL = ("vllm.model_executor.models.registry",)

    def real(self, module: str) -> bool:
        return module.startswith(self._REAL) and module not in self._NOT_REAL

    def functions(self, task: Task) -> dict[str, Any]:
        def initialize_model(
            vllm_config: Any, *, prefix: str = "", model_class: Any = None, model_config: Any = None
        ) -> Any:
            if not isinstance(model_class, type):
                model_class = _registered(task, vllm_config.model_config.hf_config)
            return model_class(vllm_config=vllm_config, prefix=prefix)

        return {"direct_register_custom_op": register_operator, "initialize_model": initialize_model}

    def build(self, task: Task, cls: Any) -> Any:
        config = target_config(task.target, task.num_layers)
        return cls(vllm_config=_vllm_config(config, None), prefix="")

    def configure(self, task: Task, model: Any) -> None:
        ids = task.layer_ids
        if ids is None:
            names = ("get_eagle3_default_aux_hidden_state_layers", "get_eagle3_aux_hidden_state_layers")
            ids = next(getattr(model, name) for name in names if hasattr(model, name))()
        model.set_aux_hidden_state_layers(tuple(ids))

    def forward(self, model: Any, world: World) -> tuple[Any, str]:
        result = model.forward(**_tokens(), intermediate_tensors=None, inputs_embeds=None)
        captured = result[1] if isinstance(result, tuple) and len(result) == 2 else None
        return captured, "the model returned them"


def _vllm_config(config: Config, architectures: Any) -> Config:
    """A server's configuration for a language model with this config."""
    if architectures is not None:
        config = Config(config.config_name, {**config.to_dict(), "architectures": list(architectures)})
    text = config.get_text_config()
    model = Config("model_config", {"hf_config": config, "hf_text_config": text, "dtype": torch.float32})
    values = {"model_config": model, "quant_config": None, "lora_config": None, "speculative_config": None}
    server = Config("vllm_config", values)

    def with_hf_config(hf_config: Any, architectures: Any = None) -> Config:
        return _vllm_config(hf_config, architectures)

    server.__dict__["with_hf_config"] = with_hf_config
    model.__dict__["get_hidden_size"] = lambda: text.hidden_size
    model.__dict__["get_num_layers"] = lambda *args: text.num_hidden_layers
    model.__dict__["get_vocab_size"] = lambda: text.vocab_size
    return server


def _registered(task: Task, config: Any) -> Any:
    """The class that the registry has for a config's architectures; the example's where it names none."""
    names = getattr(config, "architectures", None)
    for name in [*(names if isinstance(names, list) else ()), task.example]:
        row = task.registry.get(name)
        if row is not None:
            return getattr(importlib.import_module(row[0]), row[1])
    raise LookupError(f"no model is registered for {names}")


STARTS: dict[str, Callable[[], Start]] = {"sglang": SGLangStart, "vllm": VLLMStart}
