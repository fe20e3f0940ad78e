"""``eaglelint scan``: check drafts, training code and engines against each other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eaglelint.cli import options as opt

if TYPE_CHECKING:
    from eaglelint.report.formats import Output
    from eaglelint.scan import ScanResult

__all__ = ["scan"]


class Level(str, Enum):
    """Severities, the gravest first."""

    error = "error"
    warning = "warning"
    note = "note"


def scan(
    paths: opt.Paths = None,
    draft: opt.Draft = None,
    target: opt.Target = None,
    online: opt.Online = False,
    training: opt.Training = None,
    trained_by: opt.TrainedBy = None,
    captured_by: opt.CapturedBy = None,
    serving: opt.Serving = None,
    draft_kind: opt.DraftKind = None,
    launch: opt.Launch = None,
    dump: opt.Dump = None,
    fine_tuned_from: opt.FineTunedFrom = None,
    num_layers: opt.NumLayers = None,
    target_class: opt.TargetClass = None,
    assume: opt.Assume = None,
    output_format: Annotated[
        list[str] | None,
        typer.Option(
            "--output-format",
            metavar="FORMAT[:FILE]",
            help="full (default), concise, json, jsonl, sarif, github, gitlab, junit or lsp. Repeatable: "
            "sarif:eaglelint.sarif writes that one to a file.",
        ),
    ] = None,
    output_file: Annotated[
        Path | None, typer.Option("--output-file", help="Where the format without a file of its own goes.")
    ] = None,
    select: Annotated[
        list[str] | None, typer.Option("--select", help="Rules to use: code, name or family. Repeatable.")
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option("--ignore", help="Rules to leave out. Repeatable.")] = None,
    fail_on: Annotated[
        Level | None, typer.Option("--fail-on", help="Exit with 1 from this severity on (default: error).")
    ] = None,
    min_confidence: Annotated[
        opt.Confidence | None,
        typer.Option("--min-confidence", help="Report findings from this confidence on (default: possible)."),
    ] = None,
    baseline: opt.BaselineFile = None,
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Count the findings by rule, on standard error.")
    ] = False,
    force_exclude: Annotated[
        bool, typer.Option("--force-exclude", help="Leave out excluded files also where they are named.")
    ] = False,
    stdin_filename: Annotated[
        Path | None,
        typer.Option(
            "--stdin-filename", help="Read standard input in place of this file, and check it.", metavar="FILE"
        ),
    ] = None,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit with 0 whatever is found.")] = False,
    no_cache: opt.NoCache = False,
    fix: Annotated[bool, typer.Option("--fix", help="Make the safe edits; what is left is reported.")] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Print what --fix would change, write nothing; exit with 1 if it would.")
    ] = False,
    unsafe_fixes: Annotated[
        bool, typer.Option("--unsafe-fixes", help="With --fix or --diff: the unsafe edits too.")
    ] = False,
    probe: Annotated[
        bool,
        typer.Option("--probe", help="Try the findings out with tensors (needs 'eaglelint\\[probe]'); see `probe`."),
    ] = False,
    execute: Annotated[
        bool,
        typer.Option(
            "--execute",
            help="With --probe: run the code of --serving ENGINE@PATH itself, in a process without rights, and see "
            "what it captures for the draft.",
        ),
    ] = False,
    probe_budget: Annotated[
        float, typer.Option("--probe-budget", min=0.0, help="Seconds after which --probe begins nothing more.")
    ] = 60.0,
) -> None:
    """Check what a draft was trained on against what it is served.

    Exit code 0: nothing at or above --fail-on. 1: findings. 2: wrong usage or unreadable input. 3: our own fault.
    """
    from eaglelint.cli.progress import progress_bar
    from eaglelint.exceptions import WrongUsage
    from eaglelint.finding import any_from
    from eaglelint.fix import Fixed, make_edits, unified_diff, write_changes
    from eaglelint.overlay import overlaid
    from eaglelint.report.formats import parse_outputs
    from eaglelint.report.summary import by_rule
    from eaglelint.session import Inputs, open_session

    if probe:
        from eaglelint.probe import require

        require("torch")
    elif execute:
        raise WrongUsage("--execute goes with --probe: scanned code is run to try findings out.")
    try:
        outputs = parse_outputs(output_format or [], output_file)
    except WrongUsage as error:
        raise typer.BadParameter(str(error), param_hint="--output-format") from None
    if stdin_filename is not None and fix and not diff:
        raise WrongUsage("--fix writes files and does not go with --stdin-filename. Use --diff.")
    named = [*(paths or ()), *((stdin_filename,) if stdin_filename is not None and draft is None else ())]
    inputs = Inputs(
        paths=named,
        draft=draft,
        target=target,
        training=training or (),
        trained_by=trained_by,
        captured_by=captured_by or (),
        serving=serving or (),
        draft_kind=draft_kind,
        launch=launch,
        dump=dump,
        fine_tuned_from=fine_tuned_from,
        num_layers=num_layers,
        target_class=target_class,
        assume=assume or (),
        select=select or (),
        ignore=ignore or (),
        min_confidence=min_confidence.value if min_confidence else None,
        baseline=baseline,
        force_exclude=force_exclude,
        cache=not no_cache,
        online=online,
    )
    unsaved = {} if stdin_filename is None else {stdin_filename: sys.stdin.buffer.read()}
    with overlaid(unsaved):
        session = open_session(inputs)
        with progress_bar() as progress:
            if fix or diff:
                fixed = make_edits(lambda: session.scan(progress), unsafe=unsafe_fixes)
            else:
                fixed = Fixed((), session.scan(progress))
            if probe:
                fixed = Fixed(fixed.changes, _probed(fixed.result, probe_budget, progress, execute=execute))
        if diff:
            _print_problems(fixed.result)
            typer.echo(unified_diff(fixed.changes), nl=False)
        else:
            write_changes(fixed.changes)
            _print(fixed.result, outputs, nothing=session.empty)
    for change in fixed.changes:
        edits = "1 edit" if change.count == 1 else f"{change.count} edits"
        typer.echo(f"{'would make' if diff else 'made'} {edits} in {change.path}", err=True)
    for row in by_rule(fixed.result.findings) if statistics else ():
        typer.echo(row, err=True)
    if fixed.result.problems:
        raise typer.Exit(2)
    limit = (fail_on.value if fail_on else None) or session.settings.settings.fail_on
    found = bool(fixed.changes) if diff else any_from(fixed.result.findings, limit)
    if found and not exit_zero:
        raise typer.Exit(1)


def _probed(result: ScanResult, budget: float, progress: Callable[[str], None], *, execute: bool) -> ScanResult:
    from eaglelint.probe.flow import ProbeOptions, probe_scan

    def counted(done: int, total: int) -> None:
        progress(f"recomputing the target's states: layer {done} of {total}")

    probed = probe_scan(result, ProbeOptions(budget=budget, execute=execute), progress, counted)
    notes = tuple(f"{outcome.subject}: {outcome.summary} (eaglelint probe)" for outcome in probed.unheard)
    return replace(result, findings=probed.findings, notes=result.notes + notes)


def _print_problems(result: ScanResult) -> None:
    from eaglelint.report.notes import gathered

    for line in (
        *(f"note: {note}" for note in gathered(result.notes)),
        *(f"error: {problem}" for problem in result.problems),
    ):
        typer.echo(line, err=True)


def _print(result: ScanResult, outputs: Sequence[Output], *, nothing: bool) -> None:
    from eaglelint import __version__
    from eaglelint.report.formats import Format, Report, write_file
    from eaglelint.report.summary import summarise

    _print_problems(result)
    summary = summarise(result.findings, suppressed=len(result.suppressed), baselined=len(result.baselined))
    report = Report(
        result.findings,
        result.wirings,
        summary,
        problems=result.problems,
        notes=result.notes,
        suppressed=result.suppressed,
        version=__version__,
    )
    if nothing:
        typer.echo(
            "Nothing to check: no draft config and no engine was found. Name a draft with --draft PATH.", err=True
        )
    for output in outputs:
        if output.file is not None:
            write_file(report, output)
        # "Found no problems" of files that were not read would be a wrong comfort.
        elif output.format is not Format.full or result.findings or not (result.problems or nothing):
            report.write(output.format, sys.stdout)
