"""Which hidden states, in which order and form, reach a draft's ``fc``; and where two wirings differ."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from eaglelint.finding import Span

__all__ = [
    "Condition",
    "Evidence",
    "Fault",
    "Form",
    "LayerIds",
    "Mismatch",
    "Party",
    "Projection",
    "Slot",
    "Stage",
    "Status",
    "Wiring",
    "compare",
]

Party = Literal["serving", "training", "draft"]
Status = Literal["exact", "conditional", "unknown"]
Form = Literal["stream", "norm", "partial", "shard", "unknown"]
LayerIds = tuple[int, ...] | Literal["default"] | None


@dataclass(frozen=True, slots=True)
class Slot:
    """One hidden state in the order in which ``fc`` sees it.

    ``boundary`` is k of h[k], the residual stream after k decoder layers: 0 is the embedding
    output, N the output of the last layer before the final norm.
    """

    form: Form
    boundary: int | None = None

    def __str__(self) -> str:
        if self.boundary is None or self.form == "unknown":
            return "?"
        state = f"h[{self.boundary}]"
        return state if self.form == "stream" else f"{self.form}({state})"

    @property
    def known(self) -> bool:
        return self.boundary is not None and self.form != "unknown"

    def describe(self) -> str:
        """The slot with its usual name, for a message: ``h[0] (the embedding)``."""
        if self.form == "stream" and self.boundary == 0:
            return f"{self} (the embedding)"
        if self.form == "partial":
            return f"{self} (a branch without the residual)"
        if self.form == "shard":
            return f"{self} (one rank's part)"
        return "an unknown state" if not self.known else str(self)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A line of code or configuration that a wiring rests on; ``slot`` is its index where it speaks of one."""

    path: str
    line: int
    note: str
    slot: int | None = None

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Condition:
    """A circumstance under which the wiring is another one."""

    text: str
    slots: tuple[Slot, ...] | None = None
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """Where the code of one end would stop with an error; ``slot`` is the index of the id that leads there."""

    message: str
    path: str
    line: int
    slot: int | None = None
    boundary: int | None = None


@dataclass(frozen=True, slots=True)
class Projection:
    """The ``fc`` that the engine's draft class makes for the draft's config: its widths, and the line that makes it.

    ``fed`` is how many features the wiring brings, None where the target's width is not known; ``agrees`` whether
    that is what ``fc`` takes, None where it cannot be told or where ``fc`` is left out, nothing being to narrow.
    """

    in_features: int
    out_features: int
    path: str
    line: int
    fed: int | None = None
    agrees: bool | None = None

    def __str__(self) -> str:
        fed = "" if self.fed is None or self.agrees else f", fed {self.fed}"
        return f"fc {self.in_features} -> {self.out_features}{fed}"


@dataclass(frozen=True, slots=True)
class Stage:
    """One rank of a pipeline: the layers it runs, the states it captures, and what it hands to the next by name."""

    layers: tuple[int, int]
    captured: tuple[Slot, ...]
    hands_on: tuple[str, ...]

    def __str__(self) -> str:
        captured = " ⊕ ".join(map(str, self.captured)) or "nothing"
        handed = f", hands on {', '.join(self.hands_on)}" if self.hands_on else ""
        return f"layers {self.layers[0]} to {self.layers[1]}, captures {captured}{handed}"


@dataclass(frozen=True, slots=True)
class Wiring:
    """What one party feeds, or fed, the draft.

    ``layer_ids`` are the ids as written in the config, ``"default"`` where the party's own default list
    was taken, ``None`` where no ids exist (a training script that captures by itself).
    ``declared``: said by the user or by the config, not read in code; ``inferred``: by the config alone.
    ``ids_from`` is the key path that the party took the ids from; ``ignored`` lists key paths that hold ids
    and that the party never read. ``source`` is what was interpreted, ``sglang@PATH``; None for a profile.
    """

    party: Party
    name: str
    slots: tuple[Slot, ...]
    status: Status
    engine: str | None = None
    engine_version: str | None = None
    target_class: str | None = None
    draft_kind: str | None = None
    layer_ids: LayerIds = None
    num_layers: int | None = None
    label: Slot | None = None
    conditions: tuple[Condition, ...] = ()
    assumptions: tuple[str, ...] = ()
    reason: str | None = None
    summaries: int = 0
    evidence: tuple[Evidence, ...] = ()
    faults: tuple[Fault, ...] = ()
    ids_from: tuple[str, ...] | None = None
    ignored: tuple[tuple[str, ...], ...] = ()
    declared: bool = field(default=False)
    inferred: bool = False
    source: str | None = None
    stages: tuple[Stage, ...] = ()
    fc: Projection | None = None

    def __str__(self) -> str:
        return " ⊕ ".join(map(str, self.slots)) if self.slots else "?"

    def with_status(self, status: Status, reason: str | None = None) -> Wiring:
        return replace(self, status=status, reason=reason)

    def evidence_for(self, slot: int) -> tuple[Evidence, ...]:
        """The evidence that speaks of one slot, or of the whole list."""
        return tuple(item for item in self.evidence if item.slot in (slot, None))

    def to_json(self) -> dict[str, Any]:
        """The wiring as schemas/wiring.schema.json describes it."""
        return {
            "party": self.party,
            "name": self.name,
            "engine": self.engine,
            "engine_version": self.engine_version,
            "target_class": self.target_class,
            "draft_kind": self.draft_kind,
            "layer_ids": list(self.layer_ids) if isinstance(self.layer_ids, tuple) else self.layer_ids,
            "num_layers": self.num_layers,
            "slots": [str(slot) for slot in self.slots],
            "label": None if self.label is None else str(self.label),
            "status": self.status,
            "conditions": [_condition_json(condition) for condition in self.conditions],
            "assumptions": list(self.assumptions),
            "reason": self.reason,
            "summaries": self.summaries,
            "evidence": [
                {"path": item.path, "line": item.line, "note": item.note, "slot": item.slot} for item in self.evidence
            ],
            "faults": [
                {"message": fault.message, "path": fault.path, "line": fault.line, "slot": fault.slot}
                for fault in self.faults
            ],
            "ids_from": None if self.ids_from is None else ".".join(self.ids_from),
            "fc": None if self.fc is None else asdict(self.fc),
            "stages": [
                {
                    "layers": list(stage.layers),
                    "captured": [str(slot) for slot in stage.captured],
                    "hands_on": list(stage.hands_on),
                }
                for stage in self.stages
            ],
        }


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One slot in which two wirings differ; a side is ``None`` where it has no such slot."""

    index: int
    trained: Slot | None
    served: Slot | None


def compare(trained: Wiring, served: Wiring) -> tuple[Mismatch, ...]:
    """The slots in which two wirings provably differ; unknown slots prove nothing."""
    mismatches = []
    for index in range(max(len(trained.slots), len(served.slots))):
        left = trained.slots[index] if index < len(trained.slots) else None
        right = served.slots[index] if index < len(served.slots) else None
        if (left is not None and not left.known) or (right is not None and not right.known):
            continue
        if left != right:
            mismatches.append(Mismatch(index, left, right))
    return tuple(mismatches)


def _condition_json(condition: Condition) -> dict[str, Any]:
    row: dict[str, Any] = {"text": condition.text}
    if condition.slots is not None:
        row["slots"] = [str(slot) for slot in condition.slots]
    if condition.span is not None:
        row["location"] = {
            "path": condition.span.path,
            "start": {"line": condition.span.start.line, "column": condition.span.start.column},
        }
    return row
