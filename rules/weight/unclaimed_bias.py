"""The checkpoint has biases of which the config says nothing, so that a loader leaves them out or refuses them."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.checkpoint import Checkpoint, Tensor
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Finding, Span
from eaglelint.rule import Facts, Rule

from .._header import layer_tensors, tensor_row

__all__ = ["RULE"]

# Models whose attention has biases in q, k and v without any flag (transformers: Qwen2Attention).
_BIASED_MODELS = ("qwen2",)
_FC_FLAGS = ("eagle_fc_bias", "fc_bias", "bias", "fusion_bias")


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, checkpoint = facts.draft, facts.checkpoint
    if draft is None or checkpoint is None or draft.embedded or draft.kind in ("unknown", "mtp"):
        return
    groups: tuple[tuple[list[Tensor], tuple[str, ...], str], ...] = (
        (_fc(checkpoint), _FC_FLAGS, "EAGLE heads of vLLM read eagle_fc_bias, EAGLE-3 heads of SGLang bias"),
        (_of_layers(checkpoint, "self_attn", _is_biased(draft)), ("attention_bias", "qkv_bias", "bias"), ""),
        (_of_layers(checkpoint, "mlp", False), ("mlp_bias", "bias"), ""),
    )
    for tensors, flags, remark in groups:
        if not tensors or any(_is_true(draft, flag) for flag in flags):
            continue
        names = ", ".join(tensor.name for tensor in tensors[:3]) + (", ..." if len(tensors) > 3 else "")
        span = _flag_span(draft, flags) or draft.key_span("architectures") or draft.span()
        yield rule.finding(
            f"the checkpoint has {names}, and the config does not say so ({flags[0]}): a loader leaves biases that "
            f"it does not expect out, or stops{'; ' + remark if remark else ''}",
            span,
            confidence="likely",
            # SGLang builds the fc of EAGLE with a bias in any case.
            severity="warning" if remark and draft.kind == "eagle" else "error",
            related=tuple(map(tensor_row, tensors[:2])),
            help=f"Write {flags[0]} true where the engine reads that, or train without the bias.",
            identity=(flags[0], *(tensor.name for tensor in tensors[:3])),
        )


def _fc(checkpoint: Checkpoint) -> list[Tensor]:
    found = checkpoint.find("fc.bias")
    return [] if found is None else [found]


def _of_layers(checkpoint: Checkpoint, part: str, expected: bool) -> list[Tensor]:
    if expected:
        return []
    return [
        tensor
        for _, name, tensor in layer_tensors(checkpoint)
        if name.startswith(f"{part}.") and name.endswith("_proj.bias")
    ]


def _is_biased(draft: DraftConfig) -> bool:
    node = draft.text_node("model_type")
    return node is not None and isinstance(node.value, str) and node.value.startswith(_BIASED_MODELS)


def _is_true(draft: DraftConfig, flag: str) -> bool:
    node = draft.text_node(flag)
    return node is not None and node.value is True


def _flag_span(draft: DraftConfig, flags: tuple[str, ...]) -> Span | None:
    return next((node.span for flag in flags if (node := draft.text_node(flag)) is not None), None)


RULE = Rule(
    code="WGT005",
    name="unclaimed-bias",
    summary="The checkpoint has biases that the config does not announce.",
    severity="error",
    check=_check,
)
