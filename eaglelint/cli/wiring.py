"""``eaglelint wiring``: show what a draft was trained on and what it is served, slot by slot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from eaglelint.cli import options as opt

if TYPE_CHECKING:
    from eaglelint.project.pipelines import PipelineInput
    from eaglelint.rule import Facts
    from eaglelint.scan import Options
    from eaglelint.session import Session
    from eaglelint.wiring import Wiring

__all__ = ["wiring"]


class WiringFormat(str, Enum):
    """How wirings are printed."""

    table = "table"
    svg = "svg"
    html = "html"
    mermaid = "mermaid"
    json = "json"


def wiring(
    paths: opt.Paths = None,
    draft: opt.Draft = None,
    target: opt.Target = None,
    online: opt.Online = False,
    training: opt.Training = None,
    trained_by: opt.TrainedBy = None,
    captured_by: opt.CapturedBy = None,
    serving: opt.Serving = None,
    draft_kind: opt.DraftKind = None,
    dump: opt.Dump = None,
    num_layers: opt.NumLayers = None,
    target_class: opt.TargetClass = None,
    assume: opt.Assume = None,
    format: Annotated[
        WiringFormat, typer.Option("--format", help="A table, a picture (svg, html, mermaid), or JSON.")
    ] = WiringFormat.table,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Write the list with which the one engine of --serving serves what was trained."),
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Print what --fix would change, write nothing; exit with 1 if it would.")
    ] = False,
    no_cache: opt.NoCache = False,
) -> None:
    """Show which hidden states reach the draft's fc, in which order: trained against served, with the lines.

    Without --serving the draft is held against every release whose profile is bundled.
    """
    from rich.console import Console

    from eaglelint.cache.units import caching
    from eaglelint.cli.progress import progress_bar
    from eaglelint.exceptions import WrongUsage
    from eaglelint.report.verdicts import verdicts
    from eaglelint.scan import gather
    from eaglelint.session import Inputs, open_session

    session = open_session(
        Inputs(
            paths=paths or (),
            draft=draft,
            target=target,
            training=training or (),
            trained_by=trained_by,
            captured_by=captured_by or (),
            serving=serving or (),
            draft_kind=draft_kind,
            dump=dump,
            num_layers=num_layers,
            target_class=target_class,
            assume=assume or (),
            cache=not no_cache,
            online=online,
        )
    )
    if not session.pipelines:
        raise WrongUsage("There is no draft to show: none was found. Name its config with --draft PATH.")
    if fix or diff:
        _mend(session, diff)
        return
    by_pipeline: dict[str, list[Wiring]] = {}
    problems: list[str] = []
    rows: dict[str, list[str]] = {}
    with caching(session.cache), progress_bar() as progress:
        for named in session.pipelines:
            pipeline = _with_engines(named, session.options)
            facts, unreadable, notes, _ = gather(pipeline, session.options, progress)
            trained = [facts.training] if facts.training is not None else []
            served = [end.wiring for end in facts.servings]
            by_pipeline.setdefault(pipeline.name, []).extend([*trained, *served])
            rows.setdefault(pipeline.name, []).extend(verdicts(facts))
            problems += [
                *(f"note: {note}" for note in (*pipeline.notes, *notes, *_origin(facts))),
                *(f"error: {text}" for text in unreadable),
            ]
    for line in problems:
        typer.echo(line, err=True)
    if format is WiringFormat.table:
        from eaglelint.report.wiring_table import render_wirings

        console = Console(highlight=False)
        for name, wirings in by_pipeline.items():
            render_wirings(wirings, rows[name], console=console)
    else:
        typer.echo(_document(by_pipeline, format), nl=False)
    if any(line.startswith("error") for line in problems):
        raise typer.Exit(2)


def _with_engines(pipeline: PipelineInput, options: Options) -> PipelineInput:
    """The pipeline with every bundled release, where no engine was named and the target's class is known."""
    if pipeline.serving or not (pipeline.target or (options.num_layers and options.target_class)):
        return pipeline
    from eaglelint.engines.profile_file import bundled_servers, bundled_versions

    every = tuple(f"{engine}=={version}" for engine in bundled_servers() for version in bundled_versions(engine))
    return replace(pipeline, serving=every, usual_serving=True)


def _mend(session: Session, diff: bool) -> None:
    """Write the edit for the named engine, or print it."""
    from eaglelint.cache.units import caching
    from eaglelint.cli.progress import progress_bar
    from eaglelint.fix import unified_diff, write_changes
    from eaglelint.mend import mend

    with caching(session.cache), progress_bar() as progress:
        mended = mend(session.pipelines, session.options, progress)
    result = mended.fixed.result
    for line in (*(f"note: {note}" for note in result.notes), *(f"error: {text}" for text in result.problems)):
        typer.echo(line, err=True)
    if diff:
        typer.echo(unified_diff(mended.fixed.changes), nl=False)
    else:
        write_changes(mended.fixed.changes)
    for change in mended.fixed.changes:
        edits = "1 edit" if change.count == 1 else f"{change.count} edits"
        typer.echo(f"{'would make' if diff else 'made'} {edits} in {change.path}", err=True)
    typer.echo(mended.sentence, err=True)
    if result.problems:
        raise typer.Exit(2)
    if not mended.serves or (diff and mended.fixed.changes):
        raise typer.Exit(1)


def _origin(facts: Facts) -> Iterator[str]:
    """Where the config is from, where nobody said what it was trained on and the config does not tell it either."""
    if facts.draft is None or facts.training is not None:
        return
    from eaglelint.provenance import provenance_note

    note = provenance_note(facts.draft, None if facts.target is None else facts.target.num_layers)
    if note is not None:
        yield note


def _document(by_pipeline: dict[str, list[Wiring]], format: WiringFormat) -> str:
    if format is WiringFormat.json:
        from eaglelint.report.json import render_json, wiring_document

        return render_json(wiring_document(wiring for wirings in by_pipeline.values() for wiring in wirings)) + "\n"
    from eaglelint.report.picture import panels

    several = len(by_pipeline) > 1
    shown = [
        replace(panel, about=name) if several else panel
        for name, wirings in by_pipeline.items()
        for panel in panels(wirings)
    ]
    if format is WiringFormat.svg:
        from eaglelint.report.picture import svg_document

        return svg_document(shown) + "\n"
    if format is WiringFormat.html:
        from eaglelint.report.page import html_document

        return html_document(shown)
    from eaglelint.report.mermaid import mermaid_document

    return mermaid_document(shown)
