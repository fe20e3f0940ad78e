"""An engine that records graphs for one mode of keeping states, and asks before each prefill whether they will do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from eaglelint.engines.base import EngineSource
from eaglelint.engines.workers import Request
from eaglelint.source.machine import Machine
from eaglelint.source.values import ClassValue, Instance

__all__ = ["GraphsForModes"]


@runtime_checkable
class GraphsForModes(Protocol):
    """Where such an engine's graphs begin.

    Attributes:
        gates: The method by which a runner of graphs says whether they will do for a batch.
    """

    gates: tuple[str, ...]

    def graph_files(self, source: EngineSource) -> list[Path]:
        """The files with what records the target's graphs and what makes that."""

    def modes(self, machine: Machine, source: EngineSource) -> dict[str, Instance]:
        """The modes, by name."""

    def graph_options(self, machine: Machine, source: EngineSource) -> tuple[str | None, ...]:
        """The back ends that record graphs for prefills, where the server names one; None where it does not."""

    def requests(self, machine: Machine, source: EngineSource) -> Iterator[Request]:
        """What each worker asks of a prefill of the target."""

    def target_runner(
        self, machine: Machine, source: EngineSource, option: str | None, cls: ClassValue | None
    ) -> Instance:
        """The target's model runner with that back end, of that class or a stand-in."""

    def prefill(self, machine: Machine, source: EngineSource, mode: Instance) -> Instance:
        """A batch of prefills in that mode."""
