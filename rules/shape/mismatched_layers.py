"""The checkpoint has other layers than the config says, or a first layer that takes another input."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.checkpoint import Checkpoint
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._edits import replace_value
from .._header import Stated, first_layer, layers_of, stated_by, tensor_row
from .._messages import DFLASH_FAMILY

__all__ = ["RULE"]

# Projections that read the layer's input, and not a product of it.
_INPUTS = (
    "self_attn.q_proj.weight",
    "self_attn.k_proj.weight",
    "self_attn.v_proj.weight",
    "self_attn.qkv_proj.weight",
    "self_attn.q_a_proj.weight",
    "self_attn.kv_a_proj_with_mqa.weight",
    "self_attn.fused_qkv_a_proj_with_mqa.weight",
)
_EAGLE3 = frozenset({"eagle3", "peagle"})
_ONE_INPUT = DFLASH_FAMILY | {"eagle"}
# Drafts have one layer or a few; a target that is no deeper than that tells nothing.
_FEW_LAYERS = 8


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, checkpoint = facts.draft, facts.checkpoint
    if draft is None or draft.embedded or draft.kind in ("unknown", "mtp"):
        return
    layers = stated_by(draft, "num_hidden_layers")
    if checkpoint is not None and layers_of(checkpoint):
        yield from _width(rule, draft, checkpoint)
        if layers is not None and checkpoint.complete:
            yield from _count(rule, draft, checkpoint, layers)
    elif layers is not None:
        yield from _copied(rule, facts, draft, layers)


def _width(rule: Rule, draft: DraftConfig, checkpoint: Checkpoint) -> Iterator[Finding]:
    own = stated_by(draft, "hidden_size")
    joined = draft.kind in _EAGLE3
    if own is None or not (joined or draft.kind in _ONE_INPUT):
        return
    expected = own.value * (2 if joined else 1)
    found = first_layer(checkpoint)
    wrong = [
        tensor
        for name in _INPUTS
        if (tensor := found.get(name)) is not None
        and tensor.is_plain
        and len(tensor.shape) == 2
        and tensor.shape[1] != expected
    ]
    if not wrong:
        return
    tensor = wrong[0]
    takes = f"{tensor.name} takes {tensor.shape[1]} features"
    why = (
        f"the first layer of an EAGLE-3 draft takes the embedding and the state side by side, 2 × {own.value}"
        if joined
        else f"a layer of this kind of draft ({draft.kind}) takes {own.value}"
    )
    yield rule.finding(
        f"{takes}, and {why}",
        own.span,
        confidence="certain" if tensor.shape[1] not in (own.value, 2 * own.value) else "likely",
        annotation=f"{tensor.shape[1]} in the checkpoint",
        related=tuple(map(tensor_row, wrong[:3])),
        help=f"Check hidden_size, and that this checkpoint is a draft of this kind ({draft.kind_reason}).",
        identity=("width", tensor.name, str(tensor.shape[1]), str(expected)),
    )


def _count(rule: Rule, draft: DraftConfig, checkpoint: Checkpoint, layers: Stated) -> Iterator[Finding]:
    there = layers_of(checkpoint)
    if len(there) == layers.value:
        return
    node = draft.text_node("num_hidden_layers")
    assert node is not None
    more = layers.value > len(there)
    has = "1 decoder layer" if len(there) == 1 else f"{len(there)} decoder layers"
    effect = (
        "an engine that builds what the config says stops, or leaves layers without weights"
        if more
        else "an engine that builds what the config says leaves trained layers out"
    )
    yield rule.finding(
        f"num_hidden_layers is {layers.value}, and the checkpoint has {has}: {effect}",
        layers.span,
        confidence="certain",
        annotation=f"{len(there)} in the checkpoint",
        related=tuple(tensor_row(tensor) for tensor in list(first_layer(checkpoint).values())[:1]),
        help=f"Write {len(there)}, the layers that were trained and saved.",
        edits=(replace_value(node, len(there), "safe", "as many layers as the checkpoint has"),),
        identity=("count", str(layers.value), str(len(there))),
    )


def _copied(rule: Rule, facts: Facts, draft: DraftConfig, layers: Stated) -> Iterator[Finding]:
    """Without a checkpoint: an EAGLE draft as deep as its target is one whose config was copied from it."""
    target = facts.target
    if target is None or draft.kind not in ("eagle", "eagle3") or layers.value != target.num_layers:
        return
    if target.num_layers <= _FEW_LAYERS or target.num_layers_span is None:
        return
    yield rule.finding(
        f"num_hidden_layers is {layers.value}, as in the target's config; an EAGLE draft has one layer or a few",
        layers.span,
        confidence="likely",
        severity="warning",
        related=(),
        help="Write the number of the draft's own decoder layers, 1 for EAGLE-3 as published.",
        identity=("copied", str(layers.value)),
    )


RULE = Rule(
    code="SHP002",
    name="mismatched-layers",
    summary="The checkpoint's layers are not those that the draft's config describes.",
    severity="error",
    check=_check,
)
