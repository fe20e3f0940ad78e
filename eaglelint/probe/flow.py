"""The flow of a probe: what a scan read is tried, one pipeline after the other, as long as the budget lasts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eaglelint.exceptions import EaglelintError
from eaglelint.finding import Finding, Probe
from eaglelint.probe.outcome import Outcome
from eaglelint.project.discovery import display_path
from eaglelint.rule import Facts
from eaglelint.scan import ScanResult

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
        dump: Hidden states that the draft was trained on.
    """

    device: str = "auto"
    dtype: str | None = None
    tokens: int = 4
    weights: bool = False
    budget: float | None = None
    dump: DumpOptions | None = None


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
        """Runs that failed where no finding that they confirm says so."""
        confirmed = {found.span.path for found in self.findings if found.probe and found.probe.verdict == "confirmed"}
        return tuple(
            outcome for outcome in self.outcomes if outcome.result == "failed" and outcome.subject not in confirmed
        )


def probe_scan(
    result: ScanResult,
    options: ProbeOptions,
    progress: Progress = lambda _: None,
    counted: Counted = lambda done, total: None,
    clock: Callable[[], float] = time.monotonic,
) -> Probed:
    """Try what a scan read.

    Args:
        result: Findings, and the facts of each pipeline.
        options: How.
        progress: Told what is being done.
        counted: Told how many of the target's layers are recomputed.
        clock: Seconds, for the budget.

    Raises:
        WrongUsage: The device that was asked for is not here.
        UnreadableInput: The dump or the model cannot be read.
    """
    ends = None if options.budget is None else clock() + options.budget
    findings = result.findings
    outcomes: list[Outcome] = []
    pipelines = [facts for facts in result.facts if facts.draft is not None]
    if options.dump is not None:
        progress("reading the dump")
        observed, outcome = _dump(options.dump, pipelines, counted)
        outcomes.append(outcome)
        for facts in pipelines:
            # Findings on code do not say whose it is; with one pipeline there is no question.
            findings = _with(findings, facts, partial(_of_dump, observed, facts), also_code=len(pipelines) == 1)
    for facts in pipelines:
        assert facts.draft is not None
        subject = facts.draft.path
        if ends is not None and clock() >= ends:
            untried = Probe("inconclusive", f"not tried: the budget of {options.budget:g} s was used up")
            outcomes.append(Outcome("shape", subject, "inconclusive", untried.detail))
            findings = _with(findings, facts, partial(_always, untried))
            continue
        progress(f"probing {subject}")
        found, judge = _shapes(facts, options)
        outcomes += found
        findings = _with(findings, facts, judge)
    return Probed(findings, tuple(outcomes))


Judge = Callable[[Finding], Probe | None]


def _with(findings: Sequence[Finding], facts: Facts, judge: Judge, *, also_code: bool = False) -> tuple[Finding, ...]:
    """The findings of one draft with what a probe says of them; the verdict of an earlier probe stays."""
    assert facts.draft is not None
    return tuple(
        replace(finding, probe=judge(finding))
        if finding.probe is None and (also_code or finding.span.path == facts.draft.path)
        else finding
        for finding in findings
    )


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


def _always(probe: Probe, finding: Finding) -> Probe:
    return probe


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
