"""Target classes of an engine run in a world of stand-ins, each answer held against the interpreter's."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from eaglelint.derive import ServingRequest, definition
from eaglelint.engines.vllm_registry import module_rows
from eaglelint.exceptions import WrongUsage
from eaglelint.probe import require
from eaglelint.probe.wiring.contain import Limits
from eaglelint.probe.wiring.launch import LIMITS, Answer, run_tasks
from eaglelint.probe.wiring.task import Seen, Task
from eaglelint.serving import EngineHandle
from eaglelint.wiring import Condition, Form, LayerIds, Slot, Status, Wiring

__all__ = ["ENGINES", "ClassProbe", "Verdict", "compared", "probe_engine", "run_requests"]

Verdict = Literal["agrees", "disagrees", "open"]

ENGINES = ("sglang", "vllm")
"""Engines of which ``starts.py`` knows where a run begins."""

_EXAMPLE = "LlamaForCausalLM"  # as for the interpreter: stands for a language model that only a config names
_PLACE = re.compile(r"(\w+) at (\S+\.py):(\d+)")


@dataclass(frozen=True, slots=True)
class ClassProbe:
    """One target class: what was seen when it ran, and whether the interpreter says the same.

    Attributes:
        observed: The wiring that was seen; None where the class did not run to its end.
        error: Why it did not.
        contained: Whether the run had to be ended, or ended itself.
        stood_in: Parts of the scanned code that failed and were passed over, with the reason: assumed, not seen.
        attempts: What the code tried beside computing.
        enforced: What the kernel denied it.
        derived: The interpreter's answer.
        verdict: ``open`` where one of the two has no answer.
        why: The verdict in a sentence.
    """

    target_class: str
    observed: Wiring | None
    error: str | None
    contained: bool
    stood_in: tuple[tuple[str, str], ...]
    attempts: tuple[str, ...]
    enforced: tuple[str, ...]
    derived: Wiring
    verdict: Verdict
    why: str

    @property
    def ran(self) -> bool:
        """Whether the setter and the forward pass ran to their end and captured something."""
        return self.observed is not None and bool(self.observed.slots)

    def to_json(self) -> dict[str, Any]:
        return {
            "target_class": self.target_class,
            "observed": None if self.observed is None else self.observed.to_json(),
            "error": self.error,
            "contained": self.contained,
            "stood_in": [{"part": part, "reason": reason} for part, reason in self.stood_in],
            "attempts": list(self.attempts),
            "enforced": list(self.enforced),
            "derived": self.derived.to_json(),
            "verdict": self.verdict,
            "why": self.why,
        }


def probe_engine(
    handle: EngineHandle,
    requests: Sequence[ServingRequest],
    *,
    limits: Limits = LIMITS,
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[ClassProbe, ...]:
    """Run target classes of a source tree in a child process, and compare what is seen with what is derived.

    Scanned code is executed: call it only when the user has asked for that. Ids come from ``layer_ids``, or where the
    request has a draft's config, from what the interpreter finds in it.

    Raises:
        WrongUsage: No probe knows the engine, or torch is not installed.
        UnreadableInput: Scanned code cannot be contained on this machine.
    """
    if handle.engine.name not in ENGINES:
        raise WrongUsage(f"--execute knows {' and '.join(ENGINES)}, not {handle.engine.name}.")
    require("torch")
    derived = []
    for request in requests:
        progress(f"deriving {definition(request).item.name}")  # type: ignore[union-attr]
        derived.append(handle.wiring(request))
    return run_requests(handle, requests, derived, limits=limits, progress=progress)


def run_requests(
    handle: EngineHandle,
    requests: Sequence[ServingRequest],
    derived: Sequence[Wiring],
    *,
    limits: Limits = LIMITS,
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[ClassProbe, ...]:
    """As ``probe_engine``, where the wirings are already derived and the engine is one of ``ENGINES``."""
    registry = module_rows(handle.source) if handle.engine.name == "vllm" else {}
    tasks = [_task(handle, request, wiring, registry) for request, wiring in zip(requests, derived, strict=True)]
    answers = run_tasks(tasks, limits=limits, progress=progress)
    return tuple(map(compared, answers, derived))


def _task(handle: EngineHandle, request: ServingRequest, derived: Wiring, registry: dict[str, tuple[str, str]]) -> Task:
    binding = definition(request)
    ids: LayerIds = derived.layer_ids if request.draft_data is not None else request.layer_ids
    return Task(
        handle.engine.name,
        str(handle.source.package.parent),
        binding.module.name,
        binding.item.name,  # type: ignore[union-attr]
        request.num_layers,
        request.target_data,
        request.kind,
        ids if isinstance(ids, tuple) else None,
        registry,
        _EXAMPLE,
        request.deployment.number("tp"),
    )


def compared(answer: Answer, derived: Wiring) -> ClassProbe:
    """What came back of a run, held against what is derived of the same class."""
    seen = answer.observation
    observed = None if seen.error is not None else _observed(answer, derived)
    verdict, why = _verdict(observed, seen.error, derived)
    return ClassProbe(
        derived.target_class or "",
        observed,
        seen.error,
        answer.contained,
        seen.stood_in,
        answer.attempts,
        answer.enforced,
        derived,
        verdict,
        why,
    )


def _observed(answer: Answer, derived: Wiring) -> Wiring:
    """What was seen, as a wiring of the same party."""
    seen = answer.observation
    slots = tuple(map(_slot, seen.seen))
    unknown = [item.holds for item in seen.seen if item.form == "unknown"]
    partly = [
        f"slot {index} holds the tokens {item.tokens}" for index, item in enumerate(seen.seen) if item.tokens != "all"
    ]
    status: Status = "exact" if slots and not unknown else "unknown"
    conditions: tuple[Condition, ...] = ()
    if seen.fused is not None:
        status = "unknown" if status == "unknown" else "conditional"
        text = "when norms add into the residual's memory, as fused kernels do"
        conditions = (Condition(text, tuple(map(_slot, seen.fused))),)
    ranks = "one rank" if answer.ranks == 1 else f"{answer.ranks} ranks"
    assumptions = [f"{ranks}, one stage, CUDA, text alone", "a norm of two states adds them", *partly]
    assumptions += [f"{what} failed and was passed over ({why})" for what, why in seen.stood_in]
    if answer.ranks == 1:
        assumptions += [f"{name} changes nothing on one rank" for name in seen.collectives]
    return replace(
        derived,
        slots=slots,
        status=status,
        conditions=conditions,
        assumptions=tuple(assumptions),
        reason="; ".join(unknown) or (None if slots else "no captured state came out"),
        summaries=0,
        evidence=(),
        faults=(),
        stages=(),
        fc=None,
    )


def _slot(seen: Seen) -> Slot:
    form: Form = seen.form if seen.form in get_args(Form) else "unknown"  # type: ignore[assignment]
    return Slot(form, seen.boundary) if form != "unknown" else Slot("unknown")


def _verdict(observed: Wiring | None, error: str | None, derived: Wiring) -> tuple[Verdict, str]:
    """Whether the two say the same."""
    if observed is None:
        return _same_stop(error or "", derived)
    captured = _shown(observed.slots)
    if not observed.slots:
        if derived.slots:
            return "disagrees", f"nothing was captured; derived is {_shown(derived.slots)}"
        nothing = derived.reason is not None and derived.reason.startswith("no captured state")
        return ("agrees", "nothing is captured") if nothing else ("open", f"not derived: {derived.reason}")
    if not derived.slots or not any(slot.known for slot in derived.slots):
        return "open", f"seen was {captured}; not derived: {derived.reason}"
    if not all(slot.known for slot in observed.slots):
        return "open", f"what was captured could not be read: {observed.reason}"
    pairs = list(zip(derived.slots, observed.slots, strict=False))
    if len(derived.slots) == len(observed.slots) and all(left == right for left, right in pairs if left.known):
        if derived.status != "exact":
            return "agrees", f"{captured}, one of the derived cases"
        if observed.conditions:
            return "open", f"{captured}, but not {observed.conditions[0].text}"
        return "agrees", captured
    if any(condition.slots == observed.slots for condition in derived.conditions):
        return "agrees", f"{captured}, one of the derived cases"
    return "disagrees", f"seen was {captured}, derived is {_shown(derived.slots)}"


def _same_stop(error: str, derived: Wiring) -> tuple[Verdict, str]:
    """A run that ended in an exception, where the interpreter says that the code stops there."""
    place = _PLACE.match(error)
    if place is not None:
        kind, path, line = place.groups()
        told = [derived.reason or "", *(condition.text for condition in derived.conditions)]
        told = [text for text in told if f"{path}:{line}" in text]
        at_fault = any(f"{fault.path}:{fault.line}".endswith(f"{path}:{line}") for fault in derived.faults)
        if at_fault or any(kind in text or "which no class among its bases does" in text for text in told):
            return "agrees", f"it stops with {kind} at {path}:{line}"
    return "open", f"it did not run: {error}"


def _shown(slots: tuple[Slot, ...]) -> str:
    return " ⊕ ".join(map(str, slots))
