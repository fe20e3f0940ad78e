"""What a probe tries: shapes, the engines' code, dumps, engines' trees; each with what it says of a finding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from eaglelint.exceptions import EaglelintError, WrongUsage
from eaglelint.finding import Finding, Probe
from eaglelint.probe import require
from eaglelint.probe.options import Budget, DumpOptions, OutOfTime, ProbeOptions
from eaglelint.probe.outcome import Outcome
from eaglelint.project.discovery import display_path
from eaglelint.project.pipelines import PipelineInput
from eaglelint.rule import Facts
from eaglelint.scan import Origin

if TYPE_CHECKING:
    from eaglelint.probe.dump.observe import Observed
    from eaglelint.probe.shape import ShapeRun

__all__ = [
    "Counted",
    "Judge",
    "Progress",
    "of_dump",
    "run_dump",
    "run_dump_of",
    "run_shapes_of",
    "run_surveyed",
    "run_wirings",
]

Progress = Callable[[str], None]
Counted = Callable[[int, int], None]
Judge = Callable[[Finding], Probe | None]


def run_dump(options: DumpOptions, pipelines: Sequence[Facts], counted: Counted) -> tuple[Observed, Outcome]:
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


def of_dump(observed: Observed, facts: Facts, finding: Finding) -> Probe | None:
    from eaglelint.probe.dump.verdict import dump_verdict

    return dump_verdict(finding, observed, facts)


def run_dump_of(
    facts: Facts, pipeline: PipelineInput, options: ProbeOptions, budget: Budget, counted: Counted
) -> tuple[list[Outcome], Judge]:
    """The dump that a pipeline names, where its target lies here with its weights."""
    assert pipeline.dump is not None
    device = "auto" if options.device == "meta" else options.device
    subject = display_path(pipeline.dump)

    def within(done: int, total: int) -> None:
        counted(done, total)
        if budget.left <= 0:
            raise OutOfTime

    try:
        if pipeline.target is None or facts.target_checkpoint is None:
            raise WrongUsage("no checkpoint of the target lies here to hold it against")
        require("transformers")
        model = pipeline.target if pipeline.target.is_dir() else pipeline.target.parent
        observed, outcome = run_dump(DumpOptions(pipeline.dump, model, device), [facts], within)
    except (EaglelintError, OutOfTime) as error:
        why = budget.untried.detail if isinstance(error, OutOfTime) else f"not tried: {error}"
        return [Outcome("dump", subject, "inconclusive", why)], lambda finding: None
    return [outcome], partial(of_dump, observed, facts)


def run_wirings(
    facts: Facts,
    origin: Origin,
    findings: Sequence[Finding],
    options: ProbeOptions,
    budget: Budget,
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


def run_surveyed(
    spec: str, findings: Sequence[Finding], options: ProbeOptions, budget: Budget, progress: Progress
) -> dict[Finding, Probe]:
    """Findings on an engine's tree, whose classes are run where that is allowed."""
    from eaglelint.probe.wiring.surveyed import surveyed_verdicts

    return surveyed_verdicts(
        spec,
        findings,
        execute=options.execute,
        left=lambda: budget.left,
        untried=budget.untried,
        progress=progress,
    )


def run_shapes_of(facts: Facts, options: ProbeOptions) -> tuple[list[Outcome], Judge]:
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
