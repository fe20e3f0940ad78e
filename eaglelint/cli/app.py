"""The commands of ``eaglelint``, and what happens to errors that reach the top."""

from __future__ import annotations

import sys
from copy import copy
from typing import Annotated

import typer

from eaglelint import __version__
from eaglelint.cli import baseline, config, engines, explain, init, lsp, probe, rules, scan, trace, wiring
from eaglelint.exceptions import EaglelintError
from eaglelint.recursion import roomy

__all__ = ["app", "run"]

app = typer.Typer(
    name="eaglelint",
    help="Prove that a speculative-decoding draft model is served the hidden states it was trained on.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    # In rich's own markup "[tool.eaglelint]" would be a style, and not be printed.
    rich_markup_mode="markdown",
)
app.command("scan")(scan.scan)
app.command("wiring")(wiring.wiring)
app.command("trace")(trace.trace)
app.command("probe")(probe.probe)
app.command("rules")(rules.rules)
app.command("explain")(explain.explain)
app.add_typer(engines.app, name="engines")
app.command("init")(init.init)
app.command("lsp")(lsp.lsp)
app.add_typer(baseline.app, name="baseline")
app.add_typer(config.app, name="config")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"eaglelint {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    for stream in (sys.stdout, sys.stderr):
        # A console that cannot print the direct-sum sign prints a question mark instead of a traceback.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _with_command(name: str) -> typer.Typer:
    """The app with the command of this name alone: typer makes parsers for all that it knows before it chooses one."""
    chosen = [command for command in app.registered_commands if command.name == name]
    if not chosen:
        return app
    alone = copy(app)
    alone.registered_commands, alone.registered_groups = chosen, []
    return alone


@roomy
def run() -> None:
    """Run the command line; exit 2 on errors that the user can act on, 3 on faults of our own."""
    try:
        _with_command(sys.argv[1] if len(sys.argv) > 1 else "")()
    except EaglelintError as error:
        print(f"eaglelint: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        print(
            f"eaglelint: internal fault, {type(error).__name__}: {error}\n"
            "This is a bug in eaglelint. Please report it with the command and the files that led here; "
            "EAGLELINT_TRACEBACK=1 prints where it happened.",
            file=sys.stderr,
        )
        import os

        if os.environ.get("EAGLELINT_TRACEBACK"):
            raise
        sys.exit(3)
