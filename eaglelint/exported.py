"""What a training run set and the exported config does not say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Dropped"]


@dataclass(frozen=True, slots=True)
class Dropped:
    """One setting of a training run that the draft's config lacks, or says otherwise.

    Attributes:
        key: The setting, ``eagle_aux_hidden_state_layer_ids``.
        trained: Its value in training.
        exported: Its value in the draft's config, None where it has none.
        path: Where training sets it: file and line.
        stack: The training stack and its release.
        exporter: The function that writes the config, ``file:line``; empty where it is not known.
        place: The key path in the draft's config where the value should stand.
        read: Whether that function writes the run's setting by itself; None where that is not known.
    """

    key: str
    trained: Any
    exported: Any
    path: str
    line: int
    stack: str
    exporter: str
    place: tuple[str, ...]
    read: bool | None = None
