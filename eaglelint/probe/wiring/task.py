"""What one run is asked, and what it answers: plain data that crosses a pipe as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Observation", "Seen", "Task"]


@dataclass(frozen=True, slots=True)
class Task:
    """One target class of an engine's tree, with ids or, for None, the engine's default list."""

    engine: str
    root: str
    module: str
    cls: str
    num_layers: int
    target: dict[str, Any]
    kind: str
    layer_ids: tuple[int, ...] | None
    registry: dict[str, tuple[str, str]] = field(default_factory=dict)
    example: str = ""
    ranks: int = 1

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Task:
        ids = data["layer_ids"]
        return cls(**{**data, "layer_ids": None if ids is None else tuple(ids)})


@dataclass(frozen=True, slots=True)
class Seen:
    """One captured state: as a slot, what it holds in words, and how many of the tokens are in it."""

    form: str
    boundary: int | None
    holds: str
    tokens: str = "all"


@dataclass(frozen=True, slots=True)
class Observation:
    """What a run saw. Without ``error`` the model ran to its end.

    Attributes:
        seen: The captured states, in order.
        joined: What put them in that order.
        layers: The decoder layers that ran, in order.
        stood_in: Parts of the scanned code that were replaced because they failed, with the reason.
        collectives: Exchanges between ranks that were taken to change nothing, there being one rank.
        fused: The captured states where norms add in place instead, if they are others.
    """

    seen: tuple[Seen, ...] = ()
    joined: str = ""
    layers: tuple[int, ...] = ()
    stood_in: tuple[tuple[str, str], ...] = ()
    collectives: tuple[str, ...] = ()
    fused: tuple[Seen, ...] | None = None
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Observation:
        seen = tuple(Seen(**item) for item in data["seen"])
        fused = data["fused"]
        return cls(
            seen,
            data["joined"],
            tuple(data["layers"]),
            tuple((str(what), str(why)) for what, why in data["stood_in"]),
            tuple(data["collectives"]),
            None if fused is None else tuple(Seen(**item) for item in fused),
            data["error"],
        )
