"""What a config says of its layers' attention does not fit together, or is read differently."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.document import Node
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._header import stated_by
from .._messages import DFLASH_FAMILY

__all__ = ["RULE"]

_SLIDING, _FULL = "sliding_attention", "full_attention"


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    types = None if draft is None else draft.text_node("layer_types")
    if draft is None or types is None or types.kind != "array" or draft.embedded or draft.kind in ("unknown", "mtp"):
        return
    layers = stated_by(draft, "num_hidden_layers")
    if layers is not None and len(types.elements) != layers.value:
        longer = len(types.elements) > layers.value
        yield rule.finding(
            f"layer_types has {_entries(len(types.elements))} for {layers.value} layers",
            types.span,
            confidence="likely" if longer else "certain",
            # Some readers count a draft's layers on from those of its target.
            severity="warning" if longer else "error",
            help="Write one entry for each of the draft's layers.",
            identity=("count", str(len(types.elements)), str(layers.value)),
        )
    kinds = {element.value for element in types.elements if isinstance(element.value, str)}
    if _SLIDING in kinds:
        yield from _sliding(rule, draft, types, kinds)


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _sliding(rule: Rule, draft: DraftConfig, types: Node, kinds: set[str]) -> Iterator[Finding]:
    if not any(_number(draft, key) for key in ("sliding_window", "window_size", "swa_window_size")):
        node = draft.text_node("sliding_window") or draft.node("sliding_window")
        yield rule.finding(
            "layer_types has sliding layers, and no sliding_window says how far they see",
            types.span if node is None else node.span,
            confidence="certain",
            help="Write the window that the draft was trained with.",
            identity=("no window",),
        )
        return
    off = draft.text_node("use_sliding_window")
    if off is not None and off.value is False:
        yield rule.finding(
            "layer_types has sliding layers, and use_sliding_window is false: readers of one see everything, readers "
            "of the other a window",
            off.span,
            confidence="likely",
            severity="warning",
            help="Write true, or full_attention for every layer, as the draft was trained.",
            identity=("off",),
        )
    if draft.kind not in DFLASH_FAMILY or _FULL not in kinds:
        return
    causal = draft.node("sliding_window_non_causal")
    sliding = sum(element.value == _SLIDING for element in types.elements)
    if causal is not None and causal.value is False:
        yield rule.finding(
            f"sliding_window_non_causal is false with {sliding} sliding and {len(types.elements) - sliding} full "
            "layers: it speaks of the sliding ones, and adapters that make one flag of it for all layers mask the "
            "full ones too",
            causal.span,
            confidence="possible",
            severity="warning",
            help="Check that the engine's release keeps the full layers without a mask, as they were trained.",
            identity=("causal",),
        )
    else:
        yield rule.finding(
            f"{sliding} of {len(types.elements)} layers see a window alone: converters and engines that do not read "
            "layer_types let them see everything",
            types.span,
            confidence="possible",
            severity="note",
            help="Check that the engine reads layer_types of this draft; texts longer than the window show it.",
            identity=("mixed",),
        )


def _number(draft: DraftConfig, key: str) -> bool:
    nodes = (draft.text_node(key), draft.node("dflash_config", key))
    return any(node is not None and type(node.value) is int and node.value > 0 for node in nodes)


RULE = Rule(
    code="CFG008",
    name="inconsistent-attention",
    summary="What the config says of its layers' attention does not fit together.",
    severity="error",
    check=_check,
)
