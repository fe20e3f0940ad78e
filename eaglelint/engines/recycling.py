"""An engine that drafts several tokens in a row: what it hands a draft first, and what the draft hands itself then."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

from eaglelint.engines.base import EngineSource
from eaglelint.source.machine import Machine
from eaglelint.source.tree import Binding, SourceModule

__all__ = ["RecyclesStates", "builds_on"]


@runtime_checkable
class RecyclesStates(Protocol):
    """Where the last state of the target, and then the draft's own, goes to the draft's next step.

    Each run gives the state that is handed on and the one that the head of the same model reads, as the engine takes
    them of that model; None where it hands on something of another kind.
    """

    def prepare(self, machine: Machine, source: EngineSource, kind: str) -> None:
        """Set up intercepts for a run."""

    def targets_of(self, source: EngineSource, module: SourceModule) -> Iterator[Binding]:
        """The classes of targets that a file defines, and then those of files that import from it.

        None where the file defines no target: what it holds is no target's own.
        """

    def hands_first(self, machine: Machine, source: EngineSource, target: Binding) -> tuple[Any, Any] | None:
        """Run the target, whose state the draft is handed at its first step."""

    def hands_on(self, machine: Machine, source: EngineSource, draft: Binding) -> tuple[Any, Any] | None:
        """Run the draft, whose state it is handed at each later step."""


def builds_on(text: bytes, module: SourceModule) -> bool:
    """Whether a file imports from a module of that name: its models may be made of that one's layers."""
    name = re.escape(module.name.rpartition(".")[2].encode())
    return re.search(rb"^\s*from\s+[\w.]*\b%s\s+import\b" % name, text, re.M) is not None
