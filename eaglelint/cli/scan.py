"""``eaglelint scan``: check drafts, training code and engines against each other."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from eaglelint.cli import options as opt

__all__ = ["scan"]


class OutputFormat(str, Enum):
    """How findings are printed."""

    full = "full"
    concise = "concise"
    json = "json"


class Level(str, Enum):
    """Severities, the gravest first."""

    error = "error"
    warning = "warning"
    note = "note"


def scan(
    paths: opt.Paths = None,
    draft: opt.Draft = None,
    target: opt.Target = None,
    training: opt.Training = None,
    trained_by: opt.TrainedBy = None,
    serving: opt.Serving = None,
    draft_kind: opt.DraftKind = None,
    num_layers: opt.NumLayers = None,
    target_class: opt.TargetClass = None,
    output_format: Annotated[
        OutputFormat, typer.Option("--output-format", help="How findings are printed.")
    ] = OutputFormat.full,
    select: Annotated[
        list[str] | None, typer.Option("--select", help="Rules to use: code, name or family. Repeatable.")
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option("--ignore", help="Rules to leave out. Repeatable.")] = None,
    fail_on: Annotated[
        Level | None, typer.Option("--fail-on", help="Exit with 1 from this severity on (default: error).")
    ] = None,
) -> None:
    """Check what a draft was trained on against what it is served.

    Exit code 0: nothing at or above --fail-on. 1: findings. 2: wrong usage or unreadable input. 3: our own fault.
    """
    from eaglelint import __version__
    from eaglelint.cli.progress import progress_bar
    from eaglelint.project.discovery import discover
    from eaglelint.project.pipelines import assemble_pipelines
    from eaglelint.project.settings import find_settings
    from eaglelint.registry import select_rules
    from eaglelint.scan import Options, ScanResult, scan_pipelines, survey_engine

    named = paths or []
    settings = find_settings(opt.settings_start(named))
    chosen = select_rules(select or settings.settings.select, ignore or settings.settings.ignore)
    places = named or [settings.root or Path.cwd()]
    discovered = (
        None
        if draft is not None and not named
        else discover(places, exclude=settings.settings.exclude, root=settings.root)
    )
    pipelines = assemble_pipelines(
        named,
        draft=draft,
        target=target,
        training=training or (),
        trained_by=trained_by,
        serving=serving or (),
        draft_kind=draft_kind,
        settings=settings,
        discovered=discovered,
    )
    result = ScanResult(notes=discovered.notes if discovered is not None else ())
    with progress_bar() as progress:
        if pipelines:
            result += scan_pipelines(pipelines, chosen, Options(num_layers, target_class), progress)
        elif discovered is not None:
            for root in discovered.engine_roots:
                progress(f"surveying {root}")
                result += survey_engine(str(root), progress)
    _print(result, output_format, __version__, nothing=not pipelines and not (discovered and discovered.engine_roots))
    limit = (fail_on.value if fail_on else None) or settings.settings.fail_on
    levels = [level.value for level in Level]
    if result.problems:
        raise typer.Exit(2)
    if any(levels.index(finding.severity) <= levels.index(limit) for finding in result.findings):
        raise typer.Exit(1)


def _print(result: object, output_format: OutputFormat, version: str, *, nothing: bool) -> None:
    from rich.console import Console

    from eaglelint.report.summary import summarise
    from eaglelint.scan import ScanResult

    assert isinstance(result, ScanResult)
    for line in (*(f"note: {note}" for note in result.notes), *(f"error: {problem}" for problem in result.problems)):
        typer.echo(line, err=True)
    if output_format is OutputFormat.json:
        from eaglelint.report.json import render_json, report_document

        typer.echo(
            render_json(report_document(result.findings, result.wirings, summarise(result.findings).to_json(), version))
        )
        return
    console = Console(highlight=False, soft_wrap=True)
    if output_format is OutputFormat.concise:
        from eaglelint.report.concise import render_concise

        render_concise(result.findings, console=console)
        return
    from eaglelint.report.full import render_full

    if nothing:
        typer.echo(
            "Nothing to check: no draft config and no engine was found. Name a draft with --draft PATH.", err=True
        )
    if result.findings or not (result.problems or nothing):
        render_full(result.findings, console=console)
