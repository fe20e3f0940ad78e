"""Targets whose final norm multiplies with one more than its weight, and the classes that do so."""

from __future__ import annotations

from eaglelint.artifacts.target import TargetConfig

__all__ = ["ONE_MORE_CLASSES", "one_more"]

# transformers 5.24.0, models/*/modeling_*.py: ``output * (1.0 + self.weight.float())`` in the class of ``self.norm``;
# tests/real/test_norm_gains.py reads them there.
_CLASSES = {
    "GemmaRMSNorm": ("gemma",),
    "Gemma2RMSNorm": ("gemma2",),
    "Gemma3RMSNorm": ("gemma3", "gemma3_text"),
    "MiniMaxM3VLRMSNorm": ("minimax_m3_vl", "minimax_m3_vl_text"),
    "Qwen3NextRMSNorm": ("qwen3_next",),
    "Qwen3_5RMSNorm": ("qwen3_5", "qwen3_5_text"),
    "Qwen3_5MoeRMSNorm": ("qwen3_5_moe", "qwen3_5_moe_text"),
    "RecurrentGemmaRMSNorm": ("recurrent_gemma",),
    "Step3p7RMSNorm": ("step3p5", "step3p7"),
    "T5GemmaRMSNorm": ("t5_gemma_module", "t5gemma"),
    "T5Gemma2RMSNorm": ("t5gemma2", "t5gemma2_decoder", "t5gemma2_text"),
    "VaultGemmaRMSNorm": ("vaultgemma",),
}

ONE_MORE_CLASSES = frozenset(_CLASSES)


def one_more(target: TargetConfig) -> str | None:
    """The target's ``model_type`` where its final norm multiplies with one more than its weight."""
    sections = (target.data.get("text_config"), target.data)
    kinds = [section.get("model_type") for section in sections if isinstance(section, dict)]
    known = {kind for kinds_of_class in _CLASSES.values() for kind in kinds_of_class}
    return next((kind for kind in kinds if isinstance(kind, str) and kind in known), None)
