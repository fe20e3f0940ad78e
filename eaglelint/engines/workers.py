"""An engine's workers, which run the target and then the draft: what was seen of a prefill of theirs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from eaglelint.engines.base import EngineSource
from eaglelint.source.machine import Machine
from eaglelint.source.slices import Site

__all__ = ["DraftPrefill", "HandsEmbeddings", "Request"]


@dataclass(frozen=True, slots=True)
class Request:
    """The mode of keeping states in which a worker has the target run a prefill, and the call."""

    worker: str
    mode: Any
    site: Site


@dataclass(frozen=True, slots=True)
class DraftPrefill:
    """How a worker runs the draft on a prompt that the target has seen, on one path.

    Attributes:
        call: The worker's own call that leads there.
        forward: The call that runs the draft.
        handed: Whether it has the embeddings of images that the target made.
    """

    worker: str
    call: Site
    forward: Site
    handed: bool


@runtime_checkable
class HandsEmbeddings(Protocol):
    """An engine whose drafts are handed the embeddings of images, that the target made of them.

    Attributes:
        embeddings: What a draft's class reads them from, an attribute of the batch.
    """

    embeddings: str

    def draft_prefills(self, machine: Machine, source: EngineSource) -> Iterator[DraftPrefill]:
        """How each worker runs the draft after the target, whose answer holds such embeddings."""
