"""Which trace a finding leads to: the ids in the config, or the list that an engine makes of them, in its source."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import replace

from eaglelint.finding import Finding
from eaglelint.wiring import Wiring

__all__ = ["with_trace"]

# Findings on weights, types and positions: where the ids go tells nothing about them.
_NOT_OF_IDS = ("WGT", "DTY", "ROP")


def with_trace(finding: Finding, wirings: Iterable[Wiring]) -> Finding:
    """The finding with the command that traces what it speaks of, where it rests on lines of an engine's source."""
    for wiring in () if finding.code.startswith(_NOT_OF_IDS) else wirings:
        engine, _, package = (wiring.source or "").partition("@")
        symbol = _symbol(wiring)
        if not package or symbol is None:
            continue
        if any(row.span.path.startswith(f"{package}/") for row in finding.related):
            return replace(finding, trace=f"eaglelint trace {symbol} {shlex.quote(f'{engine}@{package}')}")
    return finding


def _symbol(wiring: Wiring) -> str | None:
    """The config's key that was read, else the attribute that holds the list: ``layers_to_capture = [2, 30, 58]``."""
    if wiring.ids_from:
        return wiring.ids_from[-1]
    names = (item.note.partition(" = ")[0].rpartition(".")[2] for item in wiring.evidence if " = " in item.note)
    return next((name for name in names if name.isidentifier()), None)
