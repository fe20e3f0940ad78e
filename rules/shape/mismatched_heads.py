"""The attention heads in the config are not those that the checkpoint's projections have."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.checkpoint import Tensor
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Edit, Finding
from eaglelint.rule import Facts, Rule

from .._edits import set_value
from .._header import first_layer, stated_by, tensor_row

__all__ = ["RULE"]

# Keys of attention whose projections do not have num_attention_heads × head_dim rows (DeepSeek; MiMo, Gemma 4).
_OTHER_HEADS = ("kv_lora_rank", "v_head_dim", "swa_num_key_value_heads", "swa_head_dim", "global_head_dim")
# Families whose q_proj holds a gate beside each query (transformers 5.24, modeling_qwen3_next.py).
_GATED = ("qwen3_next", "qwen3_5")


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, checkpoint = facts.draft, facts.checkpoint
    if draft is None or checkpoint is None or draft.embedded:
        return
    heads, width = stated_by(draft, "num_attention_heads"), stated_by(draft, "hidden_size")
    if heads is None or width is None or heads.value <= 0 or _is_other_attention(draft):
        return
    each = stated_by(draft, "head_dim")
    size = each.value if each is not None else width.value // heads.value
    grouped = stated_by(draft, "num_key_value_heads")
    groups = heads.value if grouped is None else grouped.value
    layer = first_layer(checkpoint)
    query = _rows(layer.get("self_attn.q_proj.weight"))
    if query is not None and query.shape[0] != heads.value * size:
        yield rule.finding(
            f"{query.name} has {query.shape[0]} rows, and {heads.value} heads of {size}"
            f"{'' if each else ' (hidden_size / num_attention_heads)'} are {heads.value * size}",
            heads.span if each is None else each.span,
            confidence="certain",
            annotation=f"{query.shape[0]} rows in the checkpoint",
            related=(tensor_row(query),),
            help="Write num_attention_heads and head_dim as the draft was trained with.",
            identity=("query", str(query.shape[0]), str(heads.value), str(size)),
        )
        return
    for name in ("self_attn.k_proj.weight", "self_attn.v_proj.weight"):
        tensor = _rows(layer.get(name))
        if tensor is None or tensor.shape[0] == groups * size:
            continue
        found, rest = divmod(tensor.shape[0], size) if size else (0, 1)
        said = f"{groups} key-value heads of {size}" + (
            "" if grouped else " (as many as attention heads, where the config does not say)"
        )
        yield rule.finding(
            f"{tensor.name} has {tensor.shape[0]} rows, and {said} are {groups * size}",
            heads.span if grouped is None else grouped.span,
            confidence="certain",
            annotation=f"{tensor.shape[0]} rows in the checkpoint",
            related=(tensor_row(tensor),),
            help="Write num_key_value_heads as the draft was trained with."
            if rest
            else f"Write num_key_value_heads {found}.",
            edits=() if rest else _edit(draft, found),
            identity=("key-value", str(tensor.shape[0]), str(groups), str(size)),
        )
        return


def _is_other_attention(draft: DraftConfig) -> bool:
    """Latent or gated attention, or heads that differ between layers or between keys and values."""
    gate, family = draft.text_node("attn_output_gate"), draft.text_node("model_type")
    named = str(family.value) if family is not None else ""
    return (
        any(draft.text_node(key) is not None for key in _OTHER_HEADS)
        or (gate is not None and gate.value is True)
        or named.startswith(_GATED)
    )


def _rows(tensor: Tensor | None) -> Tensor | None:
    return tensor if tensor is not None and tensor.is_plain and len(tensor.shape) == 2 else None


def _edit(draft: DraftConfig, groups: int) -> tuple[Edit, ...]:
    for parent in ((), ("transformer_layer_config",), ("text_config",), ("model",)):
        if draft.node(*parent, "num_attention_heads") is not None:
            path = (*parent, "num_key_value_heads")
            edit = set_value(draft.document, path, groups, "safe", "as many as the checkpoint's k_proj has")
            return () if edit is None else (edit,)
    return ()


RULE = Rule(
    code="SHP003",
    name="mismatched-heads",
    summary="The checkpoint's projections have other attention heads than the draft's config.",
    severity="error",
    check=_check,
)
