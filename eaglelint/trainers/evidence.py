"""The lines that a training wiring rests on: the ids, the captures, the file that was saved, the concatenation."""

from __future__ import annotations

import re
from typing import Any

from eaglelint.source.slices import Site
from eaglelint.trainers.runs import Capture, Path, Run, Save
from eaglelint.trainers.shapes import State
from eaglelint.wiring import Evidence

__all__ = ["evidence"]


def evidence(
    inputs: tuple[State, ...],
    label: State | None,
    path: Path,
    run: Run,
    saves: tuple[Save, ...],
    join: Site | None,
) -> tuple[Evidence, ...]:
    """Evidence in the order in which the states travel; rows about one slot carry its index."""
    found = _ids(inputs, path, run)
    found += _summary(inputs, path)
    for index, state in enumerate(inputs):
        site = state.site or join or (saves[0].site if saves else None)
        if site is not None:
            found.append(Evidence(site.path, site.line, site.code, index))
    found += [Evidence(save.site.path, save.site.line, _short(save.site.code)) for save in saves]
    if join is not None:
        found.append(Evidence(join.path, join.line, f"concatenates {join.code}"))
    if label is not None and label.site is not None:
        found.append(Evidence(label.site.path, label.site.line, f"the label, {label.slot}: {label.site.code}"))
    return tuple(dict.fromkeys(found))


def _ids(inputs: tuple[State, ...], path: Path, run: Run) -> list[Evidence]:
    """Where the ids stand: an attribute that was set, or a constant that the capturing function names."""
    found = []
    codes = [state.site.slice for state in inputs if state.site is not None]
    text = "\n".join(dict.fromkeys(piece.code(statement) for piece in codes for statement in piece.body))
    for event in path.sets:
        named = event.kind == "argument" or re.search(rf"\b{re.escape(event.name)}\b", text)
        if _is_ids(event.value) and named:
            found.append(Evidence(event.site.path, event.site.line, f"{event.name} = {_shown(event.value)}"))
    for name, (value, where, line) in run.ids.items():
        if re.search(rf"\b{re.escape(name)}\b", text):
            found.append(Evidence(where, line, f"{name} = {_shown(value)}"))
    return found


def _summary(inputs: tuple[State, ...], path: Path) -> list[Evidence]:
    """``captures before layer 3, 31, 59``: for a capture in the loop over the layers."""
    groups: dict[tuple[str, int, bool], list[int]] = {}
    for state in inputs:
        capture = next((c for c in path.captures if c.site == state.site and c.state == state), None)
        if capture is None or state.slot.form != "stream" or state.slot.boundary is None:
            continue
        before = _before(capture)
        if before is not None:
            layer = state.slot.boundary if before else state.slot.boundary - 1
            groups.setdefault((capture.site.path, capture.site.line, before), []).append(layer)
    return [
        Evidence(where, line, f"captures {'before' if before else 'after'} layer {', '.join(map(str, layers))}")
        for (where, line, before), layers in groups.items()
    ]


def _before(capture: Capture) -> bool | None:
    """Whether the capture stands above the call of the layer; None where they stand in different functions."""
    call = capture.layer_site
    if call is None or call.slice is not capture.site.slice:
        return None
    return capture.site.line < call.line


def _is_ids(value: Any) -> bool:
    return isinstance(value, list | tuple | set | frozenset) and all(isinstance(item, int) for item in value)


def _shown(value: Any) -> str:
    return str(sorted(value) if isinstance(value, set | frozenset) else list(value))


def _short(code: str) -> str:
    return code if len(code) <= 100 else f"{code[:97]}..."
