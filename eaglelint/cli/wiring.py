"""``eaglelint wiring``: show what a draft was trained on and what it is served, slot by slot."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from eaglelint.cli import options as opt

if TYPE_CHECKING:
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
    training: opt.Training = None,
    trained_by: opt.TrainedBy = None,
    captured_by: opt.CapturedBy = None,
    serving: opt.Serving = None,
    draft_kind: opt.DraftKind = None,
    num_layers: opt.NumLayers = None,
    target_class: opt.TargetClass = None,
    assume: opt.Assume = None,
    format: Annotated[
        WiringFormat, typer.Option("--format", help="A table, a picture (svg, html, mermaid), or JSON.")
    ] = WiringFormat.table,
    no_cache: opt.NoCache = False,
) -> None:
    """Show which hidden states reach the draft's fc, in which order: trained against served, with the lines."""
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
            num_layers=num_layers,
            target_class=target_class,
            assume=assume or (),
            cache=not no_cache,
        )
    )
    if not session.pipelines:
        raise WrongUsage("There is no draft to show: none was found. Name its config with --draft PATH.")
    wirings: list[Wiring] = []
    problems: list[str] = []
    rows: list[str] = []
    with caching(session.cache), progress_bar() as progress:
        for pipeline in session.pipelines:
            facts, unreadable, notes = gather(pipeline, session.options, progress)
            wirings += [facts.training] if facts.training is not None else []
            wirings += [served.wiring for served in facts.servings]
            rows += verdicts(facts)
            problems += [
                *(f"note: {note}" for note in (*pipeline.notes, *notes)),
                *(f"error: {text}" for text in unreadable),
            ]
    for line in problems:
        typer.echo(line, err=True)
    if format is WiringFormat.table:
        from eaglelint.report.wiring_table import render_wirings

        render_wirings(wirings, rows, console=Console(highlight=False))
    else:
        typer.echo(_document(wirings, format), nl=False)
    if any(line.startswith("error") for line in problems):
        raise typer.Exit(2)


def _document(wirings: list[Wiring], format: WiringFormat) -> str:
    if format is WiringFormat.json:
        from eaglelint.report.json import render_json, wiring_document

        return render_json(wiring_document(wirings)) + "\n"
    if format is WiringFormat.svg:
        from eaglelint.report.picture import svg_document

        return svg_document(wirings) + "\n"
    if format is WiringFormat.html:
        from eaglelint.report.page import html_document

        return html_document(wirings)
    from eaglelint.report.mermaid import mermaid_document

    return mermaid_document(wirings)
