"""A checkpoint's modules beside those that an engine's draft class builds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from eaglelint.artifacts.decoder_layers import place_in_layers

if TYPE_CHECKING:
    from eaglelint.draft_modules import BuiltModule, DraftModules

__all__ = ["held", "under_another_name", "unfilled"]

_Place = tuple[int | None, str]


def held(names: Iterable[str]) -> dict[_Place, str]:
    """Modules by the position of their layer and their name in it, whatever stands before that."""
    names = list(names)
    numbers = sorted({found[0] for name in names if (found := place_in_layers(name))})
    return {_place(name, numbers): name for name in names}


def _place(name: str, numbers: list[int]) -> _Place:
    found = place_in_layers(name)
    if found is not None:
        return numbers.index(found[0]), found[1]
    match = re.search(r"(?:^|\.)([^.]*[^.\d][^.]*(?:\.\d+)?)$", name)  # fc_norm.0 with its number
    return None, name if match is None else match[1]


def unfilled(built: DraftModules, names: Iterable[str]) -> Iterator[BuiltModule]:
    """What the class builds and no tensor fills, in layers that the checkpoint has."""
    here = held(names)
    there = held(module.path for module in built.modules)
    layers = {place[0] for place in here}
    filled = None if built.loaded is None else {path for _, path in built.loaded}
    for module in built.modules:
        place = next(place for place, path in there.items() if path == module.path)
        empty = place not in here if filled is None else module.path not in filled
        if empty and place[0] in layers | {None}:
            yield module


def under_another_name(built: DraftModules, names: Iterable[str]) -> dict[str, BuiltModule]:
    """Modules of the checkpoint that the class builds too and its loader leaves out, under their names."""
    if built.loaded is None:
        return {}
    taken, filled = {name for name, _ in built.loaded}, {path for _, path in built.loaded}
    here = held(names)
    owned = {place: path for place, path in held(module.path for module in built.modules).items()}
    by_path = {module.path: module for module in built.modules}
    return {
        name: by_path[owned[place]]
        for place, name in here.items()
        if name not in taken and place in owned and owned[place] not in filled
    }
