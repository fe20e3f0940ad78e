"""What tells the kind and the dialect of a draft config: one table each, a reason in every row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

__all__ = [
    "DIALECT_SIGNS",
    "IDS_KEYS",
    "KIND_SIGNS",
    "Dialect",
    "DraftKind",
    "Sign",
    "is_draft_config",
    "is_embedded_draft",
    "recognise_dialect",
    "recognise_kind",
]

DraftKind = Literal["eagle3", "eagle", "peagle", "dflash", "dspark", "domino", "mtp", "unknown"]
Dialect = Literal["sglang", "speculators", "modelopt", "dflash", "angelslim", "eagle", "unknown"]
Result = TypeVar("Result", DraftKind, Dialect)

IDS_KEYS: Mapping[str, tuple[str, ...] | None] = {
    "eagle_aux_hidden_state_layer_ids": None,  # SGLang and ModelOpt nest it in eagle_config, vLLM reads the top level
    "aux_hidden_state_layer_ids": None,  # speculators 0.9.0, DFlash family
    "aux_hidden_states_layer_ids": None,  # AngelSlim, one letter more
    "aux_hidden_state_layers": None,
    "target_layer_ids": None,  # z-lab DFlash, in dflash_config or at the top level
    "dspark_target_layer_ids": None,  # DeepSeek V4, inside the target's own config
    "capture_layer_ids": None,
    "eagle3_layers_to_capture": None,  # TensorRT-LLM option
    "layers_to_capture": None,
    "extract_layers": None,  # GGUF metadata
    "target_layers": None,  # GGUF metadata
    "layer_ids": ("eagle_config", "dflash_config"),  # vLLM 0.33 runner V2; elsewhere the name says too little
}
"""Key spellings under which layer ids stand; where a tuple is given, only directly below one of these keys."""

# Keys of which a model config has at least one. A report, a log or training options may quote a draft's keys.
_MODEL_KEYS = ("architectures", "model_type", "hidden_size", "num_hidden_layers", "transformer_layer_config")


@dataclass(frozen=True, slots=True)
class Sign(Generic[Result]):
    """A mark of one kind or dialect: there is a value at ``key_path``, and it matches ``pattern`` if one is given.

    Of a list each element is tried. ``beside`` names top-level keys that must be there too, ``unless`` such beside
    which the mark means something else.
    """

    result: Result
    key_path: tuple[str, ...]
    pattern: str | None
    reason: str
    beside: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()

    def matches(self, data: Mapping[str, Any]) -> bool:
        value: Any = data
        for key in self.key_path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is None or any(key in data for key in self.unless) or not all(key in data for key in self.beside):
            return False
        if self.pattern is None:
            # A key by its name alone is weak, so it has to stand in a model's config.
            return any(key in data for key in _MODEL_KEYS)
        texts = value if isinstance(value, list) else [value]
        return any(isinstance(text, str) and re.search(self.pattern, text) is not None for text in texts)

    def __str__(self) -> str:
        return f"{'.'.join(self.key_path)}: {self.reason}"


_VISION = ("vision_config", "mm_vision_tower")

_DECLARED = "speculators declares the algorithm"
_PROJECTOR = "SpecForge names the projector on a DFlash body"

# The first row that matches decides: what is declared before a class name, a class name before a key.
KIND_SIGNS: tuple[Sign[DraftKind], ...] = (
    Sign("eagle3", ("speculators_model_type",), r"^eagle3$", _DECLARED),
    Sign("peagle", ("speculators_model_type",), r"^p[-_]?eagle$", _DECLARED),
    Sign("dflash", ("speculators_model_type",), r"^dflash$", _DECLARED),
    Sign("dspark", ("speculators_model_type",), r"^dspark$", _DECLARED),
    Sign("eagle", ("speculators_model_type",), r"^eagle$", _DECLARED),
    Sign("mtp", ("speculators_model_type",), r"^mtp$", _DECLARED),
    Sign("dspark", ("dflash_config", "projector_type"), r"^dspark$", _PROJECTOR),
    Sign("domino", ("dflash_config", "projector_type"), r"^domino$", _PROJECTOR),
    Sign("dspark", ("architectures",), r"DSpark", "a DSpark draft class (SpecForge, vLLM)"),
    Sign("domino", ("architectures",), r"^DominoDraftModel$", "SpecForge's Domino draft class"),
    Sign("dflash", ("architectures",), r"DFlash", "a DFlash draft class (z-lab, SpecForge, AngelSlim, speculators)"),
    Sign("peagle", ("architectures",), r"^P[Ee]agle", "a P-EAGLE draft class (SpecForge, vLLM)"),
    Sign("eagle3", ("architectures",), r"ForCausalLM\w*Eagle3$", "an EAGLE-3 draft class as SGLang names them"),
    Sign("eagle3", ("architectures",), r"Eagle3(?!_?VL)\w*ForCausalLM$", "an EAGLE-3 draft class as vLLM names them"),
    Sign("eagle3", ("architectures",), r"^Eagle3(DraftModel|Speculator)$", "speculators' EAGLE-3 draft class"),
    Sign("eagle", ("architectures",), r"ForCausalLMEagle$", "an EAGLE draft class as SGLang names them"),
    Sign(
        "eagle",
        ("architectures",),
        r"^Eagle[A-Z]\w*(ForCausalLM|MTPModel)$|^EAGLEModel$",
        "an EAGLE draft class as vLLM names them; NVIDIA's vision-language models called Eagle have a vision tower",
        unless=("vision_config", "mm_vision_tower"),
    ),
    Sign("mtp", ("architectures",), r"MTP(Model|ForCausalLM)?$|NextN$", "the class of a multi-token-prediction head"),
    Sign("eagle3", ("model_type",), r"^eagle3$", "the model type under which vLLM wraps a draft's config"),
    Sign("eagle", ("model_type",), r"^eagle$", "the model type under which vLLM wraps a draft's config"),
    Sign("dspark", ("dspark_target_layer_ids",), None, "DeepSeek V4 keeps its drafter in the target's config"),
    Sign("dspark", ("text_config", "dspark_target_layer_ids"), None, "as in DeepSeek V4, below text_config"),
    Sign("dflash", ("dflash_config",), None, "only the DFlash family has one"),
    Sign("dflash", ("target_layer_ids",), None, "DFlash's key at the top level, where SGLang and vLLM look second"),
    Sign("eagle3", ("eagle_config",), None, "SpecForge and ModelOpt write it for EAGLE-3"),
    Sign("eagle3", ("eagle_aux_hidden_state_layer_ids",), None, "auxiliary hidden states came with EAGLE-3"),
    Sign("eagle3", ("aux_hidden_states_layer_ids",), None, "AngelSlim's spelling of EAGLE-3's auxiliary layers"),
    Sign("eagle3", ("draft_vocab_size",), None, "the reduced vocabulary came with EAGLE-3 (SafeAILab)"),
)

_EXPORTED = "ModelOpt's export template writes it"

DIALECT_SIGNS: tuple[Sign[Dialect], ...] = (
    Sign("speculators", ("speculators_model_type",), r"", "only speculators writes it"),
    Sign("speculators", ("speculators_config",), None, "only speculators writes it"),
    Sign("modelopt", ("eagle_config", "use_input_layernorm_in_first_layer"), None, _EXPORTED),
    Sign("modelopt", ("eagle_config", "use_last_layernorm"), None, _EXPORTED),
    Sign("modelopt", ("eagle_config", "use_mtp_layernorm"), None, _EXPORTED),
    Sign("modelopt", ("eagle_config", "next_layer_regular"), None, _EXPORTED),
    Sign("angelslim", ("aux_hidden_states_layer_ids",), None, "AngelSlim's spelling"),
    Sign("angelslim", ("architectures",), r"^QwenDFlashDraftModel$|^CosyVoice3Eagle3", "a class of AngelSlim"),
    Sign(
        "angelslim",
        ("architectures",),
        r"^Eagle3LlamaForCausalLM$",
        "AngelSlim's trainer names the target's model type beside this class",
        beside=("target_model_type",),
    ),
    Sign("dflash", ("dflash_config",), None, "the layout of z-lab, which SpecForge keeps"),
    Sign("dflash", ("architectures",), r"^(DFlash|DSpark|Domino)DraftModel$", "a class of z-lab or SpecForge"),
    Sign("sglang", ("eagle_config",), None, "nested as SGLang reads it"),
    Sign("sglang", ("architectures",), r"ForCausalLMEagle3?$|^PEagleDraftModel$", "a class of SGLang or SpecForge"),
    Sign("eagle", ("model_type",), r"^eagle3?$", "SafeAILab's draft in vLLM's wrapper"),
    Sign(
        "eagle",
        ("architectures",),
        r"^(?!\w*(Eagle|EAGLE|Draft))\w+ForCausalLM$",
        "SafeAILab writes a plain causal class and a reduced vocabulary",
        beside=("draft_vocab_size",),
    ),
)


def recognise_kind(data: Mapping[str, Any]) -> tuple[DraftKind, str]:
    """The kind of draft that a config describes, and what tells so; ``unknown`` where nothing does."""
    sign = _first(KIND_SIGNS, data)
    return ("unknown", "") if sign is None else (sign.result, str(sign))


def recognise_dialect(data: Mapping[str, Any]) -> tuple[Dialect, str]:
    """Whose layout a draft config follows, and what tells so; ``unknown`` where nothing does."""
    sign = _first(DIALECT_SIGNS, data)
    return ("unknown", "") if sign is None else (sign.result, str(sign))


def is_draft_config(data: object) -> bool:
    """Whether parsed JSON is a draft's config, not a target's and nothing else; when in doubt, no."""
    return isinstance(data, Mapping) and _first(KIND_SIGNS, data) is not None


def is_embedded_draft(data: object) -> bool:
    """Whether a draft's ids stand in the config of its own target, as in DeepSeek V4."""
    sign = _first(KIND_SIGNS, data) if isinstance(data, Mapping) else None
    return sign is not None and sign.key_path[-1] == "dspark_target_layer_ids"


def _first(signs: tuple[Sign[Result], ...], data: Mapping[str, Any]) -> Sign[Result] | None:
    return next((sign for sign in signs if sign.matches(data)), None)
