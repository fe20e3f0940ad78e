"""Which trace a finding leads to: the ids in the config, or the list that an engine makes of them, in its source."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.wiring import Wiring

if TYPE_CHECKING:
    from eaglelint.survey.facts import EngineFacts

__all__ = ["with_trace", "with_tree_trace"]

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


def with_tree_trace(finding: Finding, engine: EngineFacts) -> Finding:
    """The same for a finding on an engine's own tree, in the file that it stands in and the one that stores the value.

    The value is the one that a finding on a place of its own speaks of, else the list that the setter of the class that
    it names stores.
    """
    path = finding.span.path
    if finding.trace is not None or not path.endswith(".py"):
        return finding
    values = [(case.name, path) for case in engine.joined_while_none if case.place.span == finding.span]
    for cls in engine.classes:
        if any(re.search(rf"\b{cls.name}\b", part) for part in finding.identity):
            values += [(run.stored[-1].name, run.stored[-1].place.span.path) for run in cls.runs if run.stored]
    if not values:
        return finding
    name, stored_in = values[0]
    files = " ".join(shlex.quote(file) for file in dict.fromkeys((path, stored_in)))
    return replace(finding, trace=f"eaglelint trace {name.rpartition('.')[2]} {files}")


def _symbol(wiring: Wiring) -> str | None:
    """The config's key that was read, else the attribute that holds the list: ``layers_to_capture = [2, 30, 58]``."""
    if wiring.ids_from:
        return wiring.ids_from[-1]
    names = (item.note.partition(" = ")[0].rpartition(".")[2] for item in wiring.evidence if " = " in item.note)
    return next((name for name in names if name.isidentifier()), None)
