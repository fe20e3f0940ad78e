"""``eaglelint explain``: a rule's page."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

__all__ = ["explain"]


def explain(rule: Annotated[str, typer.Argument(help="A rule's code or name: CAP002, boundary-mismatch.")]) -> None:
    """Print a rule's page: what it forbids, why, an example and its repair."""
    from eaglelint.registry import find_rule, rule_page

    page = rule_page(find_rule(rule))
    if not sys.stdout.isatty():
        typer.echo(page)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(page))
