"""The decoder layers of a checkpoint, by the names of its tensors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eaglelint.artifacts.checkpoint import Checkpoint, Tensor

__all__ = ["first_layer", "layer_tensors", "layers_of", "place_in_layers"]

# `midlayer` is what SafeAILab and SpecForge call the one layer of EAGLE-3; all others number their layers.
_LAYER = re.compile(r"(?:^|\.)(?:layers\.(\d{1,4})|midlayer(?:\.(\d{1,4}))?)\.(.+)")


def place_in_layers(name: str) -> tuple[int, str] | None:
    """The number of the decoder layer that a tensor or module is in, and its name within; None outside of layers."""
    match = _LAYER.search(name)
    return None if match is None else (int(match[1] or match[2] or 0), match[3])


def layer_tensors(checkpoint: Checkpoint) -> Iterator[tuple[int, str, Tensor]]:
    """The tensors inside of decoder layers, each with its layer's number and its name within the layer."""
    for name, tensor in checkpoint.tensors.items():
        found = place_in_layers(name)
        if found is not None:
            yield *found, tensor


def layers_of(checkpoint: Checkpoint) -> frozenset[int]:
    """The numbers of the decoder layers, by the names alone."""
    places = map(place_in_layers, checkpoint.names)
    return frozenset(place[0] for place in places if place is not None)


def first_layer(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """The tensors of the first decoder layer by their names within it."""
    numbered = tuple(layer_tensors(checkpoint))
    lowest = min((number for number, _, _ in numbered), default=0)
    return {name: tensor for number, name, tensor in numbered if number == lowest}
