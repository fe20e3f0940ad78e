"""The decoder layers of a checkpoint, by the names of its tensors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eaglelint.artifacts.checkpoint import Checkpoint, Tensor

__all__ = ["first_layer", "layer_tensors", "layers_of"]

# `midlayer` is what SafeAILab and SpecForge call the one layer of EAGLE-3; all others number their layers.
_LAYER = re.compile(r"(?:^|\.)(?:layers\.(\d{1,4})|midlayer(?:\.(\d{1,4}))?)\.(.+)")


def layer_tensors(checkpoint: Checkpoint) -> Iterator[tuple[int, str, Tensor]]:
    """The tensors inside of decoder layers, each with its layer's number and its name within the layer."""
    for name, tensor in checkpoint.tensors.items():
        match = _LAYER.search(name)
        if match is not None:
            yield int(match[1] or match[2] or 0), match[3], tensor


def layers_of(checkpoint: Checkpoint) -> frozenset[int]:
    """The numbers of the decoder layers, by the names alone."""
    matches = (_LAYER.search(name) for name in checkpoint.names)
    return frozenset(int(match[1] or match[2] or 0) for match in matches if match is not None)


def first_layer(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """The tensors of the first decoder layer by their names within it."""
    numbered = tuple(layer_tensors(checkpoint))
    lowest = min((number for number, _, _ in numbered), default=0)
    return {name: tensor for number, name, tensor in numbered if number == lowest}
