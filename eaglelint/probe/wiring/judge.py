"""An engine's own code run for a draft: what it says of a scan's findings, as an outcome and as their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from eaglelint.deployment import Deployment
from eaglelint.finding import Finding, Probe
from eaglelint.probe.outcome import Outcome, Result
from eaglelint.probe.wiring.contain import Limits
from eaglelint.probe.wiring.engine import ENGINES, ClassProbe, run_requests
from eaglelint.probe.wiring.launch import LIMITS
from eaglelint.registry import find_rule
from eaglelint.rule import Facts, Served
from eaglelint.serving import EngineHandle
from eaglelint.serving_end import End
from eaglelint.wiring import Slot, Wiring, compare

__all__ = ["OF_CODE", "ServedRun", "named_in", "run_end", "unrun", "wiring_outcomes", "wiring_verdict"]

OF_CODE = frozenset(
    {"CAP001", "CAP002", "CAP003", "CAP004", "CAT001", "CAT003", "VAL001", "VAL002", "VAL003"}
)  # fmt: skip
"""Rules that say what an engine's code captures for a draft."""

# Of these, the ones that look at nothing else of an engine than its wiring: they can be asked again with what was seen.
_ASKED_AGAIN = frozenset({"CAP001", "CAP002", "CAP004"})
_ACROSS_RANKS = "VAL003"


@dataclass(frozen=True, slots=True)
class ServedRun:
    """One engine's end of a pipeline, and its code run for the draft.

    Attributes:
        probe: What came of it; None where nothing was run, and ``why`` says why.
        ranks: The same on two ranks, where a finding speaks of them.
    """

    served: Served
    probe: ClassProbe | None
    ranks: ClassProbe | None = None
    why: str = ""

    @property
    def label(self) -> str:
        """The engine and its release."""
        wiring = self.served.wiring
        return wiring.name.removesuffix(f" ({wiring.target_class})") if wiring.target_class else wiring.name


def unrun(served: Served, end: End, *, execute: bool) -> str | None:
    """Why one engine's code is not run; None where it can be."""
    label = ServedRun(served, None).label
    if not isinstance(end.source, EngineHandle):
        engine = served.wiring.engine or label
        return f"not tried: {label}'s profile holds no code to run: name its source, --serving {engine}@PATH"
    if end.source.engine.name not in ENGINES:
        return f"not tried: the wiring probe runs {' and '.join(ENGINES)}, not {label}"
    beyond = [name for name, _ in end.request.deployment.given if name != "tp"]
    if beyond:
        return f"not tried: the wiring probe runs one stage on usual terms, and {beyond[0]} is assumed"
    if not execute:
        return f"not tried: it is told by running {label}'s own code, which --execute does in a process without rights"
    return None


def run_end(
    served: Served,
    end: End,
    findings: Sequence[Finding],
    *,
    seconds: float,
    limits: Limits = LIMITS,
    progress: Callable[[str], None] = lambda text: None,
) -> ServedRun:
    """Run one engine's setter and forward pass for the draft. Scanned code is executed: only where the user asked.

    Raises:
        UnreadableInput: Scanned code cannot be contained on this machine.
    """
    assert isinstance(end.source, EngineHandle)
    requests = [end.request]
    about = ServedRun(served, None)
    if any(finding.code == _ACROSS_RANKS and named_in(finding, about) for finding in findings):
        requests.append(replace(end.request, deployment=Deployment((("tp", "2"),))))
    limits = replace(limits, wall_seconds=min(limits.wall_seconds, seconds))
    derived = [served.wiring] * len(requests)
    first, *more = run_requests(end.source, requests, derived, limits=limits, progress=progress)
    return ServedRun(served, first, more[0] if more else None)


def named_in(finding: Finding, run: ServedRun) -> bool:
    """Whether a finding is about this engine: its identity, else its message, names it."""
    return any(run.label in text for text in (*finding.identity, finding.message))


def wiring_outcomes(facts: Facts, runs: Sequence[ServedRun]) -> list[Outcome]:
    """What each engine's code was seen to feed the draft, beside what is derived and what was trained."""
    assert facts.draft is not None
    subject = facts.draft.path
    outcomes = []
    for run in runs:
        if run.probe is None:
            outcomes.append(Outcome("wiring", subject, "inconclusive", run.why))
            continue
        probe, training = run.probe, facts.training
        result: Result = "inconclusive" if probe.observed is None or probe.verdict == "open" else "passed"
        summary = _told(run, probe)
        if probe.verdict == "disagrees":
            result, summary = "failed", f"{summary}, and {probe.derived} is derived"
        elif result == "passed" and training is not None and compare(training, probe.observed or probe.derived):
            result, summary = "failed", f"{summary}, and the draft was trained on {training}"
        rows = [f"{probe.verdict}: {probe.why}"]
        rows += [f"it tried {attempt}" for attempt in probe.attempts]
        rows += [f"assumed: {text}" for text in (probe.observed.assumptions if probe.observed is not None else ())]
        rows += [f"on 2 ranks: {_shown(run.ranks)}"] if run.ranks is not None else []
        rows.append(f"scanned code was run with {'; '.join(probe.enforced)}" if probe.enforced else "nothing was run")
        outcomes.append(Outcome("wiring", subject, result, summary, tuple(rows), probe.to_json()))
    return outcomes


def wiring_verdict(finding: Finding, facts: Facts, runs: Sequence[ServedRun]) -> Probe | None:
    """What the runs say of a finding; ``None`` where they do not speak of it."""
    if finding.code not in OF_CODE:
        return None
    named = [run for run in runs if named_in(finding, run)]
    ran = {run.label for run in named if run.probe is not None}
    # A release that is named as a profile and as source too is told by its source.
    said = [_verdict(finding, facts, run) for run in named if run.probe is not None or run.label not in ran]
    if not said:
        return None
    # A finding that names several engines holds if each of them does what it says.
    first = next((one for one in said if one.verdict == "refuted"), None)
    first = first or next((one for one in said if one.verdict == "inconclusive"), said[0])
    return Probe(first.verdict, "; ".join(one.detail for one in said))


def _verdict(finding: Finding, facts: Facts, run: ServedRun) -> Probe:
    probe = run.probe
    if probe is None:
        return Probe("inconclusive", run.why)
    if finding.code == _ACROSS_RANKS:
        return _across_ranks(run)
    observed, said = probe.observed, _told(run, probe)
    if observed is None:
        # The code stops: borne out where the finding names the very line.
        stops = probe.verdict == "agrees" and probe.why.rpartition(" at ")[2] in finding.message
        return Probe("confirmed" if stops else "inconclusive", said)
    if not observed.slots or not all(slot.known for slot in observed.slots):
        return Probe("inconclusive", said)
    if finding.code == "VAL001":
        branch = any(slot.form == "partial" for slot in observed.slots)
        return Probe("confirmed" if branch else "refuted", said)
    if finding.code == "VAL002":
        later = [f"{_joined(other.slots)} {other.text}" for other in observed.conditions if other.slots]
        if later:
            return Probe("confirmed", f"{said}, but {later[0]}")
        return Probe("refuted", f"{said}, also where norms add in place")
    if observed.slots == probe.derived.slots:
        return Probe("confirmed", said)
    detail = f"{said}, and {probe.derived} is derived"
    if finding.code not in _ASKED_AGAIN:
        return Probe("inconclusive", detail)
    seen = replace(probe.derived, slots=observed.slots, status="exact", conditions=())
    rule = find_rule(finding.code)
    again = rule.check(rule, replace(facts, servings=(replace(run.served, wiring=seen),)))
    return Probe("confirmed" if any(named_in(one, run) for one in again) else "refuted", detail)


def _across_ranks(run: ServedRun) -> Probe:
    if run.ranks is None or run.ranks.observed is None:
        return Probe("inconclusive", f"on 2 ranks, {_told(run, run.ranks) if run.ranks else 'nothing was run'}")
    detail = f"on 2 ranks, {_told(run, run.ranks)}"
    if any(slot.form == "shard" for slot in run.ranks.observed.slots):
        return Probe("confirmed", detail)
    return Probe("inconclusive", f"{detail}; stand-ins do not put off an all-reduce as fused kernels do")


def _told(run: ServedRun, probe: ClassProbe) -> str:
    """``sglang 0.5.9 (LlamaForCausalLM), run with the ids 2, 30, 58 over 61 layers, captured h[3] ⊕ …``."""
    wiring: Wiring = run.served.wiring
    ids = wiring.layer_ids
    given = f"the ids {', '.join(map(str, ids))}" if isinstance(ids, tuple) else "its default list"
    cls = f" ({wiring.target_class})" if wiring.target_class else ""
    return f"{run.label}{cls}, run with {given} over {wiring.num_layers} layers, {_shown(probe)}"


def _shown(probe: ClassProbe) -> str:
    if probe.observed is not None:
        return f"captured {_joined(probe.observed.slots) or 'nothing'}"
    return (
        f"{probe.why.removeprefix('it ')}, as derived" if probe.verdict == "agrees" else f"did not end: {probe.error}"
    )


def _joined(slots: Sequence[Slot]) -> str:
    return " ⊕ ".join(map(str, slots))
