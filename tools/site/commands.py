"""The page of the commands, from what ``--help`` says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from eaglelint.cli.app import app

__all__ = ["commands_page"]


def commands_page() -> str:
    """Every command with its arguments and options."""
    return "\n".join(["# Commands", "", *_command(typer.main.get_command(app), "eaglelint")])


def _command(command: Any, name: str) -> Iterator[str]:
    """A command and those below it."""
    context = command.make_context(name, [], resilient_parsing=True)
    yield from (f"## {name}", "", _text(command.help or ""), "")
    yield from ("```console", f"$ {name} {' '.join(command.collect_usage_pieces(context))}", "```", "")
    panels: dict[str, list[str]] = {}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and parameter.name != "help":
            panel = getattr(parameter, "rich_help_panel", None) or ""
            panels.setdefault(panel, []).append(f"- `{record[0]}`: {_text(record[1])}")
    for panel, rows in sorted(panels.items()):
        yield from ([f"**{panel}**", ""] if panel else [])
        yield from (*rows, "")
    for below, child in getattr(command, "commands", {}).items():
        yield from _command(child, f"{name} {below}")


def _text(text: str) -> str:
    """Help as Markdown: a bracket is a bracket, and begins no link or tag."""
    return text.replace("\\[", "[").replace("[", "\\[").replace("<", "\\<")
