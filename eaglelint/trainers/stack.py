"""What a public training stack trains: its steps, and those of the engine that captures, are run one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from eaglelint.exceptions import EaglelintError
from eaglelint.exported import WeightMap
from eaglelint.trainers.base import Captured, Export, Fed, HandOver, Run, Step, Trainer, TrainerSource
from eaglelint.trainers.bench import Bench, NotFollowed
from eaglelint.wiring import Condition, Evidence, Slot, Status, Wiring

if TYPE_CHECKING:
    from eaglelint.serving import ServingEnd

__all__ = ["Engines", "StackTraining", "TrainerHandle"]

_T = TypeVar("_T")
_WAYS = {"dump": "from a dump"}


@dataclass(frozen=True, slots=True)
class Engines:
    """The engines at hand to tell what a stack's captures are, and the target as they know it.

    Attributes:
        ends: Engines' releases; the one that the stack asks for is taken, else the first of that engine.
        architectures: The target's architectures.
        target: The target's config.
        named: Whether the user says that the states were captured with these.
    """

    ends: tuple[ServingEnd, ...]
    architectures: tuple[str, ...]
    target: Mapping[str, Any]
    named: bool = False


@dataclass(frozen=True, slots=True)
class StackTraining:
    """What one run of a stack trains.

    Attributes:
        wiring: What ``fc`` is fed and which state is the label. Unknown where a step could not be followed.
        fed: What the stack makes of captured states; None where that is not told, ``problems`` says why.
        export: The exported config, likewise.
    """

    run: Run
    wiring: Wiring
    ids: tuple[int, ...] | None
    chosen: Step | None
    capture: Captured | HandOver | None
    fed: Fed | None
    export: Export | None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrainerHandle:
    """A stack together with the source to interpret."""

    trainer: Trainer
    source: TrainerSource

    @property
    def label(self) -> str:
        return self.source.label

    @property
    def problems(self) -> tuple[str, ...]:
        unreadable = self.source.tree.unreadable
        return tuple(unreadable[name] for name in sorted(unreadable))

    def bench(self, num_layers: int, *, rows: bool = False) -> Bench:
        return Bench(self.source.tree, self.source.package, num_layers, rows=rows)

    def ways(self, kind: str, num_layers: int = 32) -> tuple[str, ...]:
        """The ways in which the stack trains a kind of draft; empty for none."""
        if kind not in self.trainer.kinds:
            return ()
        try:
            return self.trainer.ways(self.bench(num_layers), kind)
        except NotFollowed:
            return ()

    def derive(self, run: Run, engines: Engines) -> StackTraining:
        """What a run trains; never raises for what the stack's code does."""
        trainer, count = self.trainer, run.num_layers
        problems: list[str] = []
        chosen = _try(lambda: trainer.layer_ids(self.bench(count), run), problems)
        wiring = Wiring(
            "training",
            f"{self.label} ({run.kind}, {_WAYS.get(run.way, run.way)})",
            (),
            "unknown",
            draft_kind=run.kind,
            layer_ids=None if run.layer_ids is None else tuple(run.layer_ids),
            num_layers=count,
        )
        if chosen is None:
            return StackTraining(run, _unknown(wiring, problems), None, None, None, None, None, tuple(problems))
        ids, step = chosen
        wiring = replace(wiring, layer_ids=ids or None)
        capture = _try(lambda: trainer.capture(self.bench(count), run, ids), problems)
        exported = _try(lambda: trainer.export(self.bench(count), run, ids), [])
        if capture is None:
            return StackTraining(run, _unknown(wiring, problems), ids, step, None, None, exported, tuple(problems))
        states, captured = self._captured(capture, wiring, engines)
        fed = _try(lambda: self._fed(run, len(states), len(ids)), problems)
        if fed is None:
            return StackTraining(run, _unknown(wiring, problems), ids, step, capture, None, exported, tuple(problems))
        return StackTraining(
            run, _wired(captured, states, fed, step), ids, step, capture, fed, exported, tuple(problems)
        )

    def weights(self, run: Run) -> tuple[tuple[WeightMap, ...], tuple[str, ...]]:
        """What the stack's exporters make of the names of a draft's tensors, and what could not be followed."""
        from eaglelint.recursion import deep_recursion
        from eaglelint.source.machine import BudgetExceeded, Raised
        from eaglelint.trainers.exporters import EXPORTERS

        found: list[WeightMap] = []
        problems: list[str] = []
        for exporter in EXPORTERS.get(self.trainer.name, ()):
            try:
                with deep_recursion():
                    found.extend(exporter(self.bench(run.num_layers), run))
            except (BudgetExceeded, NotFollowed, Raised, RecursionError, SyntaxError) as error:
                problems.append(str(error))
        return tuple(replace(weights, stack=self.label) for weights in found), tuple(problems)

    def _fed(self, run: Run, states: int, ids: int) -> Fed:
        count = run.num_layers
        return self.trainer.feed(self.bench(count), self.bench(count, rows=True), run, states or ids)

    def _captured(
        self, capture: Captured | HandOver, wiring: Wiring, engines: Engines
    ) -> tuple[tuple[Slot, ...], Wiring]:
        """The captured states in order, and the wiring with what is known of them."""
        provisos = tuple(Condition(text) for text in capture.provisos)
        evidence = tuple(step.evidence for step in capture.steps)
        if isinstance(capture, Captured):
            status: Status = "conditional" if provisos else "exact"
            if any(not slot.known for slot in capture.states) or not capture.states:
                status = "unknown"
            return capture.states, replace(
                wiring,
                label=capture.label,
                status=status,
                conditions=provisos,
                assumptions=capture.assumptions,
                evidence=evidence,
            )
        return _by_engine(capture, replace(wiring, conditions=provisos, evidence=evidence), engines)


def _by_engine(capture: HandOver, wiring: Wiring, engines: Engines) -> tuple[tuple[Slot, ...], Wiring]:
    """What the engine captures for the ids that it is handed."""
    ends = [end for end in engines.ends if end.label.split(" ")[0].lower() == capture.engine]
    wanted = f"{capture.engine} {capture.release}" if capture.release else None
    end = next((end for end in ends if end.label == wanted), ends[0] if ends else None)
    if end is None:
        release = f" {capture.release}" if capture.release else ""
        return (), wiring.with_status(
            "unknown",
            f"the states are captured by {capture.engine}{release}, whose source is not at hand: "
            f"pass it with --captured-by {capture.engine}@PATH",
        )
    try:
        served = _ask(end, capture, wiring, engines)
    except EaglelintError as error:
        return (), wiring.with_status("unknown", str(error))
    conditions = (*wiring.conditions, *served.conditions)
    if wanted is not None and end.label != wanted and not engines.named:
        conditions += (Condition(f"if {wanted}, which the trainer asks for, captures as {end.label} does"),)
    slots, label, status, reason = served.slots, served.label, served.status, served.reason
    if slots and len(slots) != len(capture.ids):
        # Which of them are missing is not told, and the last one need not be the label.
        reason = f"{end.label} captures {len(slots)} states for the {len(capture.ids)} ids {list(capture.ids)}"
        slots, label, status = (), None, "unknown"
    if capture.label and slots:
        slots, label = slots[:-1], slots[-1]
    if status == "exact" and conditions:
        status = "conditional"
    return slots, replace(
        wiring,
        slots=slots,
        label=label,
        status=status,
        reason=reason,
        conditions=conditions,
        assumptions=served.assumptions,
        evidence=(*wiring.evidence, *served.evidence),
        target_class=served.target_class,
        summaries=served.summaries,
    )


def _ask(end: ServingEnd, capture: HandOver, wiring: Wiring, engines: Engines) -> Wiring:
    from eaglelint.derive import ServingRequest
    from eaglelint.exceptions import UnreadableInput

    binding = next((b for b in map(end.target_class, engines.architectures) if b is not None), None)
    if binding is None:
        names = " or ".join(engines.architectures) or "the target's class, which is not named"
        raise UnreadableInput(f"{end.label} {end.where} has no {names}")
    assert wiring.num_layers is not None
    data = {**engines.target, "num_hidden_layers": wiring.num_layers}
    request = ServingRequest(binding, wiring.num_layers, data, capture.kind, layer_ids=capture.ids)
    return end.wiring(request)


def _wired(captured: Wiring, states: tuple[Slot, ...], fed: Fed, chosen: Step) -> Wiring:
    """The captured states as ``fc`` sees them."""
    status, reason = captured.status, captured.reason
    slots: tuple[Slot, ...] = ()
    if states:
        if any(not 0 <= index < len(states) for index in fed.inputs):
            status, reason = "unknown", "what the trainer makes of the captured states is not known"
        else:
            slots = tuple(_normed(states[index], index in fed.normed) for index in fed.inputs)
            if any(not slot.known for slot in slots):
                status = "unknown"
    evidence: list[Evidence] = [chosen.evidence, *captured.evidence, *(step.evidence for step in fed.steps)]
    label = captured.label if fed.label else None
    if fed.label_index is not None and fed.label_index < len(states):
        label = states[fed.label_index]
    return replace(
        captured,
        slots=slots,
        label=_normed(label, fed.label_normed) if label is not None else None,
        status=status,
        reason=reason,
        evidence=tuple(dict.fromkeys(evidence)),
    )


def _normed(slot: Slot, again: bool) -> Slot:
    if not again:
        return slot
    return Slot("norm", slot.boundary) if slot.form == "stream" else Slot("unknown")


def _try(work: Callable[[], _T], problems: list[str]) -> _T | None:
    try:
        return work()
    except NotFollowed as error:
        problems.append(str(error))
        return None


def _unknown(wiring: Wiring, problems: Sequence[str]) -> Wiring:
    return wiring.with_status("unknown", "; ".join(problems))
