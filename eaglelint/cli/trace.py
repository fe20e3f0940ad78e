"""``eaglelint trace``: where a variable comes from, what it becomes, and where it goes."""

from __future__ import annotations

import gc
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["trace"]


class TraceFormat(str, Enum):
    """How a trace is printed."""

    text = "text"
    json = "json"
    mermaid = "mermaid"
    svg = "svg"


def trace(
    symbol: Annotated[
        str, typer.Argument(help="A name, Class.attribute, file.py:function:name, or the key of a config.")
    ],
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files, directories, or an engine as in --serving (sglang, sglang@PATH); "
            "the working directory if left out."
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", help="Only what lies between this place and the symbol: a name, or FILE:LINE."),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", help="Only what lies between the symbol and this place, such as fc."),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option("--mode", help="Only what is reached for this member of an enum: FULL, LAST, ForwardMode.EXTEND."),
    ] = None,
    format: Annotated[
        TraceFormat, typer.Option("--format", help="A tree, JSON as schemas/trace.schema.json has it, or a diagram.")
    ] = TraceFormat.text,
) -> None:
    """Follow a variable: every occurrence with its conditions, and the way of its value through calls and renamings."""
    from eaglelint.trace import trace as run

    # Nearly all that a trace reads is kept to the end: looking for circles in it costs a fifth of the time.
    gc.disable()
    try:
        found = run(symbol, [_path(text) for text in paths or ["."]], start=start, end=end, mode=mode)
    finally:
        gc.freeze()
        gc.enable()
    for line in found.skipped:
        typer.echo(f"skipped: {line}", err=True)
    if format is TraceFormat.json:
        from eaglelint.report.json import render_json

        typer.echo(render_json(found.to_json()))
    elif format is TraceFormat.mermaid:
        from eaglelint.report.trace_mermaid import render_mermaid

        typer.echo(render_mermaid(found))
    elif format is TraceFormat.svg:
        from eaglelint.report.trace_svg import render_svg

        typer.echo(render_svg(found))
    else:
        from rich.console import Console

        from eaglelint.report.trace_tree import render_trace

        render_trace(found, console=Console(highlight=False))
    if format is not TraceFormat.text:
        for line in found.notes:
            typer.echo(f"note: {line}", err=True)


def _path(text: str) -> Path:
    """A path, or the package of an engine that is named as ``--serving`` names it."""
    from eaglelint.exceptions import UnreadableInput
    from eaglelint.project.discovery import ENGINE_MARKS, engine_named

    path = Path(text)
    if path.exists():
        return path
    if text.partition("@")[0].partition("==")[0] in map(engine_named, ENGINE_MARKS):
        from eaglelint.serving import open_source

        return open_source(text, root=Path.cwd()).source.package
    raise UnreadableInput(f"{text} does not exist. Check the path, or name an engine: sglang, sglang@PATH.")
