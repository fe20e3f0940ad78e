"""The flow of a probe: what a scan read is tried, one pipeline after the other, as long as the budget lasts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from eaglelint.finding import Finding, Probe
from eaglelint.probe.options import Budget, DumpOptions, ProbeOptions
from eaglelint.probe.outcome import Outcome
from eaglelint.probe.runs import (
    Counted,
    Judge,
    Progress,
    of_dump,
    run_dump,
    run_dump_of,
    run_shapes_of,
    run_surveyed,
    run_wirings,
)
from eaglelint.rule import Facts
from eaglelint.scan import Origin, ScanResult

__all__ = ["DumpOptions", "ProbeOptions", "Probed", "probe_scan"]


@dataclass(frozen=True, slots=True)
class Probed:
    """The findings of a scan with their verdicts, and what each run saw."""

    findings: tuple[Finding, ...]
    outcomes: tuple[Outcome, ...]

    @property
    def failed(self) -> bool:
        return any(outcome.result == "failed" for outcome in self.outcomes)

    @property
    def unheard(self) -> tuple[Outcome, ...]:
        """Runs that failed where no finding that they confirm says so, and dumps that told nothing."""
        confirmed = {found.span.path for found in self.findings if found.probe and found.probe.verdict == "confirmed"}
        return tuple(
            outcome
            for outcome in self.outcomes
            if (outcome.result == "failed" and outcome.subject not in confirmed)
            or (outcome.result == "inconclusive" and outcome.probe == "dump")
        )


def probe_scan(
    result: ScanResult,
    options: ProbeOptions,
    progress: Progress = lambda _: None,
    counted: Counted = lambda done, total: None,
    clock: Callable[[], float] = time.monotonic,
) -> Probed:
    """Try what a scan read: shapes first, then the engines' code where that may be run, then dumps.

    Args:
        result: Findings, and the facts of each pipeline.
        options: How.
        progress: Told what is being done.
        counted: Told how many of the target's layers are recomputed.
        clock: Seconds, for the budget.

    Raises:
        WrongUsage: The device that was asked for is not here.
        UnreadableInput: The dump or the model that was named cannot be read, or code cannot be contained here.
    """
    budget = Budget(options.budget, clock, clock())
    findings = result.findings
    outcomes: list[Outcome] = []
    origins: Sequence[Origin | None] = result.origins or (None,) * len(result.facts)
    pipelines = [
        (facts, origin) for facts, origin in zip(result.facts, origins, strict=True) if facts.draft is not None
    ]
    # Findings on code do not say whose it is; with one pipeline there is no question.
    alone = len(pipelines) == 1
    dump = None
    if options.dump is not None:
        progress("reading the dump")
        dump, outcome = run_dump(options.dump, [facts for facts, _ in pipelines], counted)
        outcomes.append(outcome)
    for facts, origin in pipelines:
        assert facts.draft is not None
        subject = facts.draft.path
        if dump is not None:
            findings = _with(findings, facts, partial(of_dump, dump, facts), also_code=alone)
        tries: list[tuple[str, Callable[[], tuple[list[Outcome], Judge]]]] = [
            ("shape", partial(run_shapes_of, facts, options))
        ]
        if origin is not None and facts.servings:
            tries.append(("wiring", partial(run_wirings, facts, origin, findings, options, budget, progress)))
        if origin is not None and dump is None and origin.pipeline.dump is not None:
            tries.append(("dump", partial(run_dump_of, facts, origin.pipeline, options, budget, counted)))
        for name, attempt in tries:
            if budget.left <= 0:
                outcomes.append(Outcome(name, subject, "inconclusive", budget.untried.detail))
                findings = _with(findings, facts, partial(_always, budget.untried), also_code=alone)
                break
            progress(f"probing {subject}")
            found, judge = attempt()
            outcomes += found
            findings = _with(findings, facts, judge, also_code=alone and name != "shape")
    for spec in result.engines:
        verdicts = run_surveyed(spec, findings, options, budget, progress)
        findings = tuple(replace(found, probe=_both(found.probe, verdicts.get(found))) for found in findings)
    return Probed(findings, tuple(outcomes))


def _with(findings: Sequence[Finding], facts: Facts, judge: Judge, *, also_code: bool = False) -> tuple[Finding, ...]:
    """The findings of one draft with what a probe says of them, beside what an earlier one said."""
    assert facts.draft is not None
    return tuple(
        replace(finding, probe=_both(finding.probe, judge(finding)))
        if also_code or finding.span.path == facts.draft.path
        else finding
        for finding in findings
    )


def _both(earlier: Probe | None, later: Probe | None) -> Probe | None:
    """Two runs' word on one finding: what refutes it stands above what confirms it, and either above neither."""
    if earlier is None or later is None:
        return earlier or later
    order = ("refuted", "confirmed", "inconclusive")
    first, second = sorted((earlier, later), key=lambda probe: order.index(probe.verdict))
    return first if second.verdict == "inconclusive" else Probe(first.verdict, f"{first.detail}; {second.detail}")


def _always(probe: Probe, finding: Finding) -> Probe | None:
    return None if finding.probe is not None else probe
