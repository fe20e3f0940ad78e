"""The facts about an engine's source that rules may look at: frozen, picklable, with the place of each."""

from __future__ import annotations

from dataclasses import dataclass

from eaglelint.finding import Span
from eaglelint.wiring import LayerIds, Slot, Wiring

__all__ = ["ClassFacts", "EngineFacts", "GraphsBeforeIds", "Place", "Run", "Stored"]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A piece of code: where it stands and how it reads, on one line."""

    span: Span
    code: str

    def __str__(self) -> str:
        return f"{self.span.path}:{self.span.start.line}"


@dataclass(frozen=True, slots=True)
class Stored:
    """A list or set of layer numbers that a setter stored; ``ordered`` is false for a set."""

    name: str
    values: tuple[int, ...]
    ordered: bool
    place: Place


@dataclass(frozen=True, slots=True)
class Run:
    """What a target class makes of one list of ids, or of none.

    Attributes:
        ids: The list that its setter was given, ``"default"`` for none, ``None`` where a draft's config decided.
        wiring: What reached the draft.
        stored: What the setter stored, in order; the last one counts.
        captures: The line that captured each slot; the call in the model's own file where a helper does it.
        stopped: Where the code would raise, if it would, and with what.
        cut_short: Whether the interpretation ended before it saw anything: the budget did not suffice.
        uncopied: Slots that share their memory with what a norm may have added to since.
    """

    ids: LayerIds
    wiring: Wiring
    stored: tuple[Stored, ...] = ()
    captures: tuple[Place, ...] = ()
    stopped: Place | None = None
    error: str | None = None
    cut_short: bool = False
    uncopied: tuple[int, ...] = ()

    @property
    def slots(self) -> tuple[Slot, ...]:
        return self.wiring.slots


@dataclass(frozen=True, slots=True)
class ClassFacts:
    """One target class of an engine.

    Attributes:
        name: The class.
        place: Its definition.
        setter: The method that takes the ids, where it has one.
        default: The run without ids.
        last: The run that asks for a state in the middle and for h[N], in the way in which the class counts ids.
        middle: The run that asks for the one in the middle alone, where the other one failed.
        served: The run for the draft of a pipeline; then the others are not made.
    """

    name: str
    place: Place
    setter: Place | None = None
    default: Run | None = None
    last: Run | None = None
    middle: Run | None = None
    served: Run | None = None

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs under the usual assumptions."""
        return tuple(run for run in (self.served, self.default, self.last, self.middle) if run is not None)


@dataclass(frozen=True, slots=True)
class GraphsBeforeIds:
    """A start-up that records graphs of the model's forward pass and hands it the ids only afterwards.

    Attributes:
        start: The call in the start-up that leads to the recording.
        ids: The call that hands over the ids.
        with_defaults: The call without ids that decides what is recorded, where there is one.
        record: Where a graph is recorded.
    """

    start: Place
    ids: Place
    with_defaults: Place | None
    record: Place


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """One engine's source. ``label`` is the engine and its release."""

    name: str
    label: str
    version: str | None = None
    classes: tuple[ClassFacts, ...] = ()
    graphs_before_ids: tuple[GraphsBeforeIds, ...] = ()
