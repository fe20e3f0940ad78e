"""``eaglelint rules``: list what is checked."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

__all__ = ["rules"]


class RulesFormat(str, Enum):
    """How the list is printed."""

    text = "text"
    json = "json"


def rules(format: Annotated[RulesFormat, typer.Option("--format", help="Text or JSON.")] = RulesFormat.text) -> None:
    """List all rules: code, name, severity and what each forbids."""
    from eaglelint.registry import all_rules

    found = all_rules()
    if format is RulesFormat.json:
        import json

        rows = [{"code": r.code, "name": r.name, "severity": r.severity, "summary": r.summary} for r in found]
        typer.echo(json.dumps({"schema_version": 1, "rules": rows}, indent=2))
        return
    width = max((len(rule.name) for rule in found), default=0)
    for rule in found:
        typer.echo(f"{rule.code}  {rule.name:<{width}}  {rule.severity:<7}  {rule.summary}")
