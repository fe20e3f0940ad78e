"""Gathers what the runs of training code show besides the wiring: facts for the rules (practice.py)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from eaglelint.finding import Span
from eaglelint.practice import CaptureSite, HeadUse, IdList, NormClass, Practice, SavedStates, UnevenHead
from eaglelint.source.machine import Budget
from eaglelint.source.slices import Site
from eaglelint.source.tree import SourceTree
from eaglelint.survey.facts import Place
from eaglelint.survey.places import place_of, place_of_definition
from eaglelint.trainers.alignment import alignments
from eaglelint.trainers.choice import LABELS, Choice, choose, choose_saved
from eaglelint.trainers.files import Entry, naming
from eaglelint.trainers.gains import adds_one, gain_of
from eaglelint.trainers.loads import loads_something, run_loader, run_step
from eaglelint.trainers.runs import Path as RunPath
from eaglelint.trainers.runs import Run, Save, Use
from eaglelint.trainers.shapes import Joined, Keyed, Many, Other, Shape, Stacked, State, states_in
from eaglelint.trainers.texts import templates_and_sorts
from eaglelint.wiring import Slot

__all__ = ["Seen", "observe", "of_sample"]

_HEADS = re.compile(r"lm_head|target_head|unembed|\blinear\(|\bmatmul\(")
_FIRST = 10_000  # where the numbers of a sample's states begin, far from any boundary


class Seen:
    """What the derivation of the wiring met on its way."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.saves: list[Save] = []
        self.loaders: list[Run] = []
        self.choices: list[tuple[Choice, Site | None]] = []


def observe(
    tree: SourceTree, files: list[Path], starts: list[Entry], seen: Seen, num_layers: int, budget: Budget | None
) -> Practice:
    """All facts that the code shows by itself."""
    named = _named(seen)
    steps = _steps(tree, starts, named, num_layers, budget)
    templates, sorts = templates_and_sorts(tree, files)
    uses = [use for run in seen.runs for use in _uses(run, {})]
    uses += [use for run in steps for use in _uses(run, named)]
    if any(use.norm is not None for use in uses) and adds_one(m for f in files if (m := tree.module_at(f)) is not None):
        uses = [replace(use, norm=replace(use.norm, adjusted=True)) if use.norm else use for use in uses]
    return Practice(
        heads=tuple(dict.fromkeys(uses)),
        uneven=tuple(dict.fromkeys(use for run in (*seen.runs, *steps) for use in _uneven(run))),
        alignments=alignments(tree, files),
        templates=templates,
        sorts=sorts,
        saved=tuple(dict.fromkeys(_saved(seen.saves))),
        captures=_captures(seen),
        ids=_ids(seen.runs),
        lost_label=next(_lost(seen), None),
    )


# --- logits --------------------------------------------------------------------------------------------------------


def _steps(
    tree: SourceTree, starts: list[Entry], named: dict[str, Shape], num_layers: int, budget: Budget | None
) -> list[Run]:
    """Code that makes logits, run on the states that the dataset hands out."""
    starts = list(dict.fromkeys(entry for name in named for entry in naming(starts, (name,)))) or starts
    found = [entry for entry in starts if entry.function is not None and _HEADS.search(_text(entry))]
    return [run_step(tree, entry, named, num_layers, budget) for entry in found]


def _text(entry: Entry) -> str:
    assert entry.function is not None
    return entry.module.text(entry.function.line, entry.function.end_line)


def _named(seen: Seen) -> dict[str, Shape]:
    """The states by the names under which the dataset hands them out, else under which they were saved."""
    returned = [path.returned for run in seen.loaders if run.read for path in run.paths]
    named: dict[str, Shape | None] = {}
    for shape in returned or [save.shape for save in seen.saves]:
        for name, item in shape.items if isinstance(shape, Keyed) else ():
            if isinstance(name, str) and any(True for _ in states_in(item)):
                named[name] = item if named.get(name, item) == item else None
    return {name: item for name, item in named.items() if item is not None}


def _uses(run: Run, named: dict[str, Shape]) -> Iterator[HeadUse]:
    """The target's states that a run made logits of."""
    keys = [name for name, shape in named.items() for _ in states_in(shape)]
    for path in run.paths:
        for use in path.uses:
            if use.draft or not (use.state.slot.known or use.given is not None):
                continue
            key = keys[use.given] if use.given is not None and use.given < len(keys) else None
            captured = place_of(use.state.site) if use.state.site is not None else None
            yield HeadUse(use.state.slot, use.norms, place_of(use.site), key, _norm(use), captured)


def _norm(use: Use) -> NormClass | None:
    if use.norm is None:
        return None
    name, cls, site = use.norm
    gain, place = gain_of(cls)
    return NormClass(name, gain, place or place_of(site))


def _uneven(run: Run) -> Iterator[UnevenHead]:
    """Calls that make logits of the draft's output, of which some paths norm it and some do not."""
    counts: dict[tuple[str, int], dict[int, tuple[Use, RunPath]]] = {}
    for path in run.paths:
        for use in path.uses:
            if use.computed:
                counts.setdefault((use.site.path, use.site.line), {})[use.norms] = (use, path)
    for found in counts.values():
        if len(found) > 1 and 0 in found:
            use, path = found[0]
            yield UnevenHead(place_of(use.site), path.all_conditions)


# --- what is saved, and by what ------------------------------------------------------------------------------------


def _saved(saves: Iterable[Save]) -> Iterator[SavedStates]:
    for save in saves:
        for key, shape in save.shape.items if isinstance(save.shape, Keyed) else (("", save.shape),):
            states = tuple(states_in(shape))
            if states and isinstance(shape, State | Joined | Stacked | Many):
                slots = tuple(state.slot for state in states)
                yield SavedStates(str(key), slots, isinstance(shape, Joined | State), place_of(save.site))


def _captures(seen: Seen) -> tuple[CaptureSite, ...]:
    """The places that feed ``fc``, where several of them are known and disagree."""
    found: dict[tuple[Slot, ...], CaptureSite] = {}
    for choice, site in seen.choices:
        sites = [state.site for state in choice.inputs if state.site is not None]
        where = sites[0] if sites else site
        if where is not None and choice.slots and all(slot.known for slot in choice.slots):
            found.setdefault(choice.slots, CaptureSite(choice.slots, place_of(where)))
    return tuple(found.values()) if len(found) > 1 else ()


def _ids(runs: Iterable[Run]) -> tuple[IdList, ...]:
    """The lists of ids, in the order in which they are written, that runs with captures read."""
    found: dict[IdList, None] = {}
    for run in runs:
        if not run.captured:
            continue
        for name, (value, path, line) in run.ids.items():
            if isinstance(value, list | tuple) and len(value) > 1:
                found[IdList(name, tuple(value), Place(Span.at(path, line), f"{name} = {list(value)}"))] = None
    return tuple(found)


def _lost(seen: Seen) -> Iterator[tuple[str, Place]]:
    """An example that has a label's key, with None under it, beside states."""
    for run in (*seen.loaders, *seen.runs):
        for path in run.paths:
            shapes = [(path.returned, None), *((save.shape, save.site) for save in path.saves)]
            for shape, site in shapes:
                if not isinstance(shape, Keyed) or not any(state.slot.known for state in states_in(shape)):
                    continue
                for key, item in shape.items:
                    if key in LABELS and isinstance(item, Other) and item.nothing:
                        function = run.entry.function
                        if site is not None:
                            yield str(key), place_of(site)
                        elif function is not None:
                            yield str(key), place_of_definition(run.entry.module, function)


# --- a sample without the code that made it ------------------------------------------------------------------------


def of_sample(
    tree: SourceTree, starts: list[Entry], sample: Mapping[str, tuple[int, str]], num_layers: int, budget: Budget | None
) -> Practice:
    """What the code makes of a sample of which only keys and numbers of states are known.

    Args:
        tree: The scripts.
        starts: What may be started in them.
        sample: By key how many states stand there, and how they are kept (``Layout`` of artifacts/dump.py).
        num_layers: N of the target.
        budget: Bounds of each run.
    """
    number = _FIRST
    items: list[tuple[str, Shape]] = []
    keys: list[str] = []
    for key, (count, layout) in sample.items():
        states = tuple(State(Slot("stream", number + place)) for place in range(count))
        keys += [key] * count
        number += count
        items.append((key, _kept(states, layout)))
    saves = (Save(Keyed(tuple(items)), None),)  # type: ignore[arg-type]
    seen = Seen()
    for entry in starts:
        run = run_loader(tree, entry, saves, num_layers, budget) if loads_something(entry) else None
        if run is not None and run.read:
            seen.loaders.append(run)
    seen.saves = list(saves)
    named = _named(seen)
    heads = []
    for run in _steps(tree, starts, named, num_layers, budget):
        for use in _uses(run, named):
            place = (use.state.boundary or 0) - _FIRST
            if 0 <= place < len(keys):
                heads.append(HeadUse(Slot("unknown"), use.total, use.place, keys[place], use.norm))
    chosen = [
        (choice, run)
        for run in seen.loaders
        for path in run.paths
        if (choice := choose(path.returned, num_layers) or choose_saved(path.returned, num_layers, loose=False))
    ]
    alike = {choice.key for choice, _ in chosen}
    if len(alike) != 1 or not chosen[0][0].inputs:
        return Practice(heads=tuple(dict.fromkeys(heads)))
    choice, run = chosen[0]
    label = choice.label
    return Practice(
        heads=tuple(dict.fromkeys(heads)),
        loads=tuple((state.slot.boundary or 0) - _FIRST for state in choice.inputs),
        loaded_label=(label.slot.boundary or 0) - _FIRST if label is not None else None,
        load_place=_joined_at(run, choice),
    )


def _kept(states: tuple[State, ...], layout: str) -> Shape:
    if not states:
        return Other()
    if layout == "listed":
        return Many(states)
    if layout.startswith("stacked"):
        return Stacked(states, int(layout[-1]))
    return Joined(states) if len(states) > 1 else states[0]


def _joined_at(run: Run, choice: Choice) -> Place | None:
    """Where a run joins what it loads, else its definition."""
    for path in run.paths:
        for join in path.joins:
            if tuple(states_in(join.shape)) == choice.inputs:
                return place_of(join.site)
    return place_of_definition(run.entry.module, run.entry.function) if run.entry.function is not None else None
