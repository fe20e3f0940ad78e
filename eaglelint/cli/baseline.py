"""``eaglelint baseline``: live with today's findings, and see only new ones."""

from __future__ import annotations

from pathlib import Path

import typer

from eaglelint.cli import options as opt

__all__ = ["app"]

app = typer.Typer(help="Findings that are known: `create` the list once, `update` takes out what is mended.")


def _run(baseline: Path | None, paths: list[Path] | None, *, update: bool) -> None:
    from dataclasses import replace

    from eaglelint.baseline import FILE_NAME, Baseline, read_baseline, write_baseline
    from eaglelint.cli.progress import progress_bar
    from eaglelint.project.discovery import display_path
    from eaglelint.session import Inputs, open_session

    session = open_session(Inputs(paths=paths or (), baseline=baseline))
    place = session.baseline or session.root / FILE_NAME
    old = read_baseline(place) if update else Baseline({})
    with progress_bar() as progress:
        result = replace(session, baseline=None).scan(progress)
    for problem in result.problems:
        typer.echo(f"error: {problem}", err=True)
    if result.problems:
        # What was not read would look mended.
        raise typer.Exit(2)
    new = old.shrunk(result.findings, session.root) if update else Baseline.of(result.findings, session.root)
    if not update or new != old:
        write_baseline(place, new, overwrite=update)
    gone = len(old.entries) - len(new.entries)
    said = f"{len(new.entries)} known" + (f", {gone} taken out" if update else "")
    typer.echo(f"{display_path(place)}: {said}", err=True)
    if session.baseline is None:
        typer.echo(
            f'Use it with --baseline {display_path(place)}, or baseline = "{place.name}" in the settings.', err=True
        )


@app.command("create")
def create(paths: opt.Paths = None, baseline: opt.BaselineFile = None) -> None:
    """Write down all findings of a scan; from then on only others are reported."""
    _run(baseline, paths, update=False)


@app.command("update")
def update(paths: opt.Paths = None, baseline: opt.BaselineFile = None) -> None:
    """Take out what is not found any more. New findings do not come in."""
    _run(baseline, paths, update=True)
