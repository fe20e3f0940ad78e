"""A draft that is to be loaded beside its target: what an engine is handed that loads it and shares modules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from eaglelint.engines.base import EngineSource
from eaglelint.source.machine import Machine
from eaglelint.source.slices import Site
from eaglelint.source.values import Instance, Unknown

__all__ = ["EMBEDDING", "HEAD", "MAP", "DraftLoading", "LoadsBesideTarget", "Part", "Trial"]

HEAD, EMBEDDING, MAP = "lm_head", "embed_tokens", "d2t"
# Loaders go by names; one tensor of a layer and the projection stand for all that is a draft's alone.
_NAMES = ("layers.0.self_attn.q_proj.weight", "fc.weight", f"{EMBEDDING}.weight", f"{HEAD}.weight", MAP, "t2d")


@dataclass(frozen=True, slots=True)
class Part:
    """A module and its weight."""

    module: Instance
    weight: Instance


@dataclass(slots=True)
class Trial:
    """A draft that is to be loaded, and the target with which it may share modules.

    Attributes:
        model: The draft's model, which holds ``own`` before it is loaded.
        target: The target's model, which holds ``theirs``.
        handed: Each name of the checkpoint that reached a loader: what it was called by then, and the line that has
            the loader leave it out, if one does.
    """

    model: Instance
    own: dict[str, Part]
    target: Instance
    theirs: dict[str, Part]
    handed: list[tuple[str, str, Site | None]] = field(default_factory=list)
    weights: tuple[tuple[str, Unknown], ...] = tuple((name, Unknown(name, present=True)) for name in _NAMES)

    def original(self, weight: Any) -> str | None:
        """The name under which the checkpoint has a weight, whatever the loader calls it."""
        return next((name for name, known in self.weights if known is weight), None)


@runtime_checkable
class DraftLoading(Protocol):
    """An engine of which it is known where it loads a draft and shares the target's modules with it."""

    def load_draft(self, machine: Machine, source: EngineSource, kind: str, trial: Trial) -> bool:
        """Load and share as the engine does; False where this release has nothing that does so at a known place."""


@runtime_checkable
class LoadsBesideTarget(Protocol):
    """An engine that builds a draft with a configuration which was made for the target."""

    def build_beside_target(
        self,
        machine: Machine,
        source: EngineSource,
        kind: str,
        draft: Instance,
        target: Instance,
        quantization: Instance,
    ) -> Instance | None:
        """The draft's model as it is built beside a target with this quantisation.

        None where this release has no such class, or hands it a configuration of its own.
        """
