"""What rules on headers ask: numbers that a config states, the tensors of a layer, rows that name them."""

from __future__ import annotations

from dataclasses import dataclass

from eaglelint.artifacts.checkpoint import Checkpoint, Tensor
from eaglelint.artifacts.decoder_layers import first_layer, layer_tensors, layers_of
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.artifacts.target import TargetConfig
from eaglelint.finding import Related, Span

from ._messages import DFLASH_FAMILY, key_phrase

__all__ = [
    "Stated",
    "config_row",
    "first_layer",
    "layer_tensors",
    "layers_of",
    "state_counts",
    "stated_by",
    "stated_by_target",
    "takes_states_of",
    "target_width",
    "tensor_row",
]

# Without a count and without ids engines build fc for three states: SGLang 0.5.23 and vLLM 0.33.0 (llama_eagle3.py).
_DEFAULT_STATES = 3
_EAGLE_SECTIONS = ("eagle_config", "dflash_config")


@dataclass(frozen=True, slots=True)
class Stated:
    """An integer that a config states, and where."""

    key: str
    value: int
    span: Span

    def __str__(self) -> str:
        return f"{self.key} {self.value}"


def stated_by(draft: DraftConfig, *keys: str) -> Stated | None:
    """The first of these keys that holds an integer: in the draft's shape, else in its section for speculation."""
    for key in keys:
        nodes = (draft.text_node(key), *(draft.node(section, key) for section in _EAGLE_SECTIONS))
        for node in nodes:
            if node is not None and type(node.value) is int:
                return Stated(key, node.value, node.span)
    return None


def stated_by_target(target: TargetConfig | None, *keys: str) -> Stated | None:
    """The first of these keys that holds an integer in the target's language model."""
    for key in keys:
        node = None if target is None else target.text_node(key)
        if node is not None and type(node.value) is int:
            return Stated(key, node.value, node.span)
    return None


def state_counts(draft: DraftConfig) -> list[tuple[int, str, Span | None]]:
    """How many captured states reach fc, with the reason.

    Several where a config has several lists of ids; none for a DFlash draft without ids, of which engines guess.
    """
    count = stated_by(draft, "num_aux_hidden_states")
    if count is not None:
        return [(count.value, f"num_aux_hidden_states is {count.value}", count.span)]
    if draft.layer_ids:
        return [
            (len(ids.values), f"the config names {len(ids.values)} layers in {key_phrase(ids.key_path)}", ids.span)
            for ids in draft.layer_ids
        ]
    if draft.kind in DFLASH_FAMILY:
        return []
    return [(_DEFAULT_STATES, "engines take three where a config names no layers", None)]


def takes_states_of(width: int, draft: DraftConfig, checkpoint: Checkpoint | None) -> bool:
    """Whether the checkpoint's fc is made for states of this width."""
    fc = None if checkpoint is None else checkpoint.find("fc.weight")
    if fc is None or len(fc.shape) != 2:
        return False
    return any(fc.shape[1] == count * width for count, _, _ in state_counts(draft))


def target_width(draft: DraftConfig, target: TargetConfig | None) -> Stated | None:
    """How wide the target's states are, by its own config or by what the draft's says; None where that is no width."""
    stated = stated_by_target(target, "hidden_size") or stated_by(draft, "target_hidden_size")
    return stated if stated is not None and stated.value > 0 else None


def tensor_row(tensor: Tensor) -> Related:
    """A tensor for the rows below a finding."""
    return Related("checkpoint", str(tensor), Span.at(tensor.path, 1))


def config_row(label: str, stated: Stated) -> Related:
    """A stated number for the rows below a finding."""
    return Related(label, str(stated), stated.span)
