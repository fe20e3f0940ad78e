"""``eaglelint config``: the settings that hold here, and their schema for editors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(help="The settings: what holds here, and their JSON Schema.")


@app.command("show")
def show(
    path: Annotated[
        Path | None, typer.Argument(help="Where settings are looked for, from there upwards; here if left out.")
    ] = None,
) -> None:
    """Print every setting as it holds, defaults included, as TOML."""
    from eaglelint.project.discovery import display_path
    from eaglelint.project.settings import as_toml, find_settings

    found = find_settings(path or Path.cwd())
    place = "no settings file: the defaults" if found.path is None else display_path(found.path)
    typer.echo(f"# {place}\n{as_toml(found.settings)}", nl=False)


@app.command("schema")
def schema() -> None:
    """Print the JSON Schema of [tool.eaglelint]."""
    from importlib.resources import files

    typer.echo((files("eaglelint.schemas") / "settings.schema.json").read_text("utf-8"), nl=False)
