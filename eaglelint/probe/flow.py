"""The flow of a probe: what a scan read is tried, one pipeline after the other, as long as the budget lasts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eaglelint.exceptions import EaglelintError, WrongUsage
from eaglelint.finding import Finding, Probe
from eaglelint.probe import require
from eaglelint.probe.outcome import Outcome
from eaglelint.project.discovery import display_path
from eaglelint.project.pipelines import PipelineInput
from eaglelint.rule import Facts
from eaglelint.scan import Origin, ScanResult

if TYPE_CHECKING:
    from eaglelint.probe.dump.observe import Observed
    from eaglelint.probe.shape import ShapeRun

__all__ = ["DumpOptions", "ProbeOptions", "Probed", "probe_scan"]

Progress = Callable[[str], None]
Counted = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """How a probe runs.

    Attributes:
        device: ``auto``, ``cuda``, ``cpu`` or ``meta``.
        dtype: By its name in a safetensors header; the checkpoint's if left out.
        tokens: How many tokens are pushed through.
        weights: Whether the checkpoint's values are used.
        budget: Seconds after which nothing more is begun.
        dump: Hidden states that the draft was trained on; without, those that a pipeline names are taken.
        execute: Whether the code of the engines that serve the draft may be run.
    """

    device: str = "auto"
    dtype: str | None = None
    tokens: int = 4
    weights: bool = False
    budget: float | None = None
    dump: DumpOptions | None = None
    execute: bool = False


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """A dump, and the model that it is of.

    Attributes:
        path: One sample, or a directory of them, of which the first is taken.
        model: The target's checkpoint, a directory that transformers can load.
        device: ``auto``, ``cuda`` or ``cpu``.
        tokens: How many of the sample's tokens, from the first, are recomputed.
        memory: Bytes of memory that the target may take; what is more is read from disk layer by layer.
    """

    path: Path
    model: Path
    device: str = "auto"
    tokens: int = 128
    memory: int | None = None


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


class _OutOfTime(Exception):
    """The budget was used up while a target was recomputed."""


@dataclass(frozen=True, slots=True)
class _Budget:
    """Seconds that all runs share, counted from ``start``."""

    seconds: float | None
    clock: Callable[[], float]
    start: float

    @property
    def left(self) -> float:
        return float("inf") if self.seconds is None else self.start + self.seconds - self.clock()

    @property
    def untried(self) -> Probe:
        return Probe("inconclusive", f"not tried: the budget of {self.seconds:g} s was used up")


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
    budget = _Budget(options.budget, clock, clock())
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
        dump, outcome = _dump(options.dump, [facts for facts, _ in pipelines], counted)
        outcomes.append(outcome)
    for facts, origin in pipelines:
        assert facts.draft is not None
        subject = facts.draft.path
        if dump is not None:
            findings = _with(findings, facts, partial(_of_dump, dump, facts), also_code=alone)
        tries: list[tuple[str, Callable[[], tuple[list[Outcome], Judge]]]] = [
            ("shape", partial(_shapes, facts, options))
        ]
        if origin is not None and facts.servings:
            tries.append(("wiring", partial(_wirings, facts, origin, findings, options, budget, progress)))
        if origin is not None and dump is None and origin.pipeline.dump is not None:
            tries.append(("dump", partial(_dump_of, facts, origin.pipeline, options, budget, counted)))
        for name, attempt in tries:
            if budget.left <= 0:
                outcomes.append(Outcome(name, subject, "inconclusive", budget.untried.detail))
                findings = _with(findings, facts, partial(_always, budget.untried), also_code=alone)
                break
            progress(f"probing {subject}")
            found, judge = attempt()
            outcomes += found
            findings = _with(findings, facts, judge, also_code=alone and name != "shape")
    return Probed(findings, tuple(outcomes))


Judge = Callable[[Finding], Probe | None]


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


def _dump(options: DumpOptions, pipelines: Sequence[Facts], counted: Counted) -> tuple[Observed, Outcome]:
    from eaglelint.probe.device import choose_device
    from eaglelint.probe.dump.layouts import recognise
    from eaglelint.probe.dump.observe import observe
    from eaglelint.probe.dump.samples import first_sample, read_sample
    from eaglelint.probe.dump.target import hidden_size_of, loaded, recompute
    from eaglelint.probe.dump.verdict import dump_outcome

    device = choose_device(options.device, values=True)
    file = first_sample(options.path)
    width = hidden_size_of(options.model)
    dump = recognise(read_sample(file), display_path(file), width=width, most_tokens=options.tokens)
    with loaded(options.model, device=device, memory=options.memory) as model:
        shown = display_path(options.model)
        config: Any = model.config
        first = getattr(config.get_text_config(), "bos_token_id", None)
        observed = observe(dump, lambda ids: recompute(model, ids, counted, path=shown), first_token=first)
    return observed, dump_outcome(observed, pipelines)


def _of_dump(observed: Observed, facts: Facts, finding: Finding) -> Probe | None:
    from eaglelint.probe.dump.verdict import dump_verdict

    return dump_verdict(finding, observed, facts)


def _dump_of(
    facts: Facts, pipeline: PipelineInput, options: ProbeOptions, budget: _Budget, counted: Counted
) -> tuple[list[Outcome], Judge]:
    """The dump that a pipeline names, where its target lies here with its weights."""
    assert pipeline.dump is not None
    device = "auto" if options.device == "meta" else options.device
    subject = display_path(pipeline.dump)

    def within(done: int, total: int) -> None:
        counted(done, total)
        if budget.left <= 0:
            raise _OutOfTime

    try:
        if pipeline.target is None or facts.target_checkpoint is None:
            raise WrongUsage("no checkpoint of the target lies here to hold it against")
        require("transformers")
        model = pipeline.target if pipeline.target.is_dir() else pipeline.target.parent
        observed, outcome = _dump(DumpOptions(pipeline.dump, model, device), [facts], within)
    except (EaglelintError, _OutOfTime) as error:
        why = budget.untried.detail if isinstance(error, _OutOfTime) else f"not tried: {error}"
        return [Outcome("dump", subject, "inconclusive", why)], lambda finding: None
    return [outcome], partial(_of_dump, observed, facts)


def _wirings(
    facts: Facts,
    origin: Origin,
    findings: Sequence[Finding],
    options: ProbeOptions,
    budget: _Budget,
    progress: Progress,
) -> tuple[list[Outcome], Judge]:
    """The code of the engines that serve the draft, where it may be run."""
    from eaglelint.probe.wiring.judge import ServedRun, run_end, unrun, wiring_outcomes, wiring_verdict

    runs = []
    for served, end in zip(facts.servings, origin.ends, strict=True):
        why = unrun(served, end, execute=options.execute)
        if why is None and budget.left <= 0:
            why = budget.untried.detail
        if why is not None:
            runs.append(ServedRun(served, None, why=why))
        else:
            runs.append(run_end(served, end, findings, seconds=budget.left, progress=progress))

    def judge(finding: Finding) -> Probe | None:
        return wiring_verdict(finding, facts, runs)

    return wiring_outcomes(facts, runs) if options.execute else [], judge


def _shapes(facts: Facts, options: ProbeOptions) -> tuple[list[Outcome], Judge]:
    from eaglelint.probe.device import DTYPES, choose_device
    from eaglelint.probe.input_path import InputPath, feeds, input_path
    from eaglelint.probe.judge import shape_verdict
    from eaglelint.probe.shape import TooLarge, run_shapes

    assert facts.draft is not None
    subject = facts.draft.path
    device = choose_device(options.device, values=options.weights)
    files = facts.checkpoint.files if options.weights and facts.checkpoint is not None else None
    outcomes: list[Outcome] = []
    runs: list[ShapeRun] = []
    untried = ""
    for feed in feeds(facts):
        path = input_path(facts, feed)
        if not isinstance(path, InputPath):
            untried = path
            break
        under = f" as {feed.by} builds it" if feed.by else ""
        try:
            run = run_shapes(
                path,
                device=device,
                dtype=DTYPES[options.dtype] if options.dtype else None,
                tokens=options.tokens,
                files=files,
            )
        except (TooLarge, EaglelintError) as error:
            untried = f"{subject}: not tried on {device.type}: {error}."
            break
        runs.append(run)
        outcomes.append(_outcome(subject, under, run, device.type))
    if untried or not runs:
        untried = untried or f"{subject}: no width of the states is known, so none can be pushed through."
        outcomes.append(Outcome("shape", subject, "inconclusive", untried))

    def judge(finding: Finding) -> Probe | None:
        return shape_verdict(finding, runs)

    return outcomes, judge


def _outcome(subject: str, under: str, run: ShapeRun, device: str) -> Outcome:
    data = {"device": device, "tokens": run.tokens, "errors": [asdict(error) for error in run.errors]}
    if run.passed:
        summary = f"the input path{under} takes what it is fed: {len(run.steps)} steps on {device}"
        return Outcome("shape", subject, "passed", summary, (*run.steps, *run.notes), data)
    count = "1 error" if len(run.errors) == 1 else f"{len(run.errors)} errors"
    summary = f"the input path{under} fails with {count} on {device}, first {run.errors[0]}"
    return Outcome("shape", subject, "failed", summary, (*map(str, run.errors), *run.notes), data)
