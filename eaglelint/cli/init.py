"""``eaglelint init``: write commented settings, made from what lies about."""

from __future__ import annotations

import typer

__all__ = ["init"]


def init() -> None:
    """Write [tool.eaglelint] from the drafts, targets, training code and engines found here. Asks nothing.

    It goes to the end of pyproject.toml where there is one, else into a new eaglelint.toml.
    """
    from pathlib import Path

    from eaglelint.project.starter import write_starter

    path, pipelines = write_starter(Path.cwd())
    found = {0: "no draft was found, so a pipeline is shown as a comment", 1: "1 pipeline"}
    typer.echo(f"{path.name}: {found.get(pipelines, f'{pipelines} pipelines')}", err=True)
    typer.echo("Look through it, then run `eaglelint scan`.", err=True)
