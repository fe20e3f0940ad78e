"""By how many tokens training code moves ids, states, targets and masks before it hands them on together.

The runs of the captures do not count tokens: cut or padded, a state is the same state. Here every tensor is a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from eaglelint.practice import Alignment, RowShift
from eaglelint.recursion import deep_recursion
from eaglelint.source.index import FunctionInfo
from eaglelint.source.lookup import MISSING
from eaglelint.source.machine import Budget, BudgetExceeded, Raised
from eaglelint.source.slices import Site
from eaglelint.source.tree import SourceModule, SourceTree
from eaglelint.source.values import External, Instance, Partial
from eaglelint.survey.places import place_of, place_of_definition
from eaglelint.trainers.files import Entry, entries, parameters
from eaglelint.trainers.loads import ONE, SEVERAL
from eaglelint.trainers.outside import Recorder
from eaglelint.trainers.runs import start_entry
from eaglelint.trainers.tokens import ROW_INTERCEPTS, Row, make_row, row_attribute, row_of

__all__ = ["ROW_NAMES", "alignments"]

ROW_NAMES = frozenset(
    [
        "aux_hidden_state",
        "aux_hidden_states",
        "base_model_hidden_states",
        "hidden_state",
        "hidden_states",
        "input_ids",
        "last_hidden_state",
        "last_hidden_states",
        "loss_mask",
        "position_ids",
        "target",
        "target_hidden",
        "target_hidden_states",
        "target_ids",
        "targets",
        "token_ids",
        "verifier_last_hidden_states",
    ]
)
"""What tensors along the tokens are called: SafeAILab EAGLE, SpecForge 0.2.0, speculators 0.9.0, ModelOpt 0.47.0."""

_MOVES = re.compile(r"1:|:\s*-1|\broll\(|\bpad\(")
_BUDGET = Budget(steps=12_000)

_Args = tuple[Any, ...]


def alignments(tree: SourceTree, files: list[Path]) -> tuple[Alignment, ...]:
    """What functions hand on together, where they move one of it."""
    starts = [entry for entry in entries(tree, files, _moves_or_calls) if entry.function is not None]
    helpers = _helpers(starts)
    found: dict[Alignment, None] = {}
    for entry in starts:
        if entry.function is None or not _worth(entry, helpers):
            continue
        for alignment in _run(tree, entry):
            found[alignment] = None
    return tuple(found)


def _moves_or_calls(module: SourceModule, info: FunctionInfo) -> bool:
    text = module.text(info.line, info.end_line)
    return bool(_MOVES.search(text)) or any(name in text for name in ROW_NAMES)


def _text(entry: Entry) -> str:
    assert entry.function is not None
    return entry.module.text(entry.function.line, entry.function.end_line)


def _helpers(starts: list[Entry]) -> frozenset[str]:
    """The names of functions that move what they are handed."""
    return frozenset(
        entry.function.name
        for entry in starts
        if entry.function is not None and _MOVES.search(text := _text(entry)) and ("cat(" in text or "pad(" in text)
    )


def _worth(entry: Entry, helpers: frozenset[str]) -> bool:
    text = _text(entry)
    words = set(re.findall(r"\w+", text))
    moves = bool(_MOVES.search(text)) or any(f"{name}(" in text for name in helpers & words)
    return moves and len(words & ROW_NAMES) > 1


def _run(tree: SourceTree, entry: Entry) -> Iterator[Alignment]:
    assert entry.function is not None
    machine = Recorder(tree, num_layers=4, on_record=lambda event: None, budget=_BUDGET)
    handed: list[tuple[tuple[Row, ...], Site | None]] = []
    machine.intercepts |= ROW_INTERCEPTS
    outside, outside_call = machine.outside, machine.outside_call

    def attribute(receiver: Any, name: str) -> Any:
        found = row_attribute(receiver, name)
        return outside(receiver, name) if found is MISSING and outside is not None else found

    def call(callee: Any, name: str, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
        rows = tuple(_rows({**dict(enumerate(args)), **kwargs}))
        if len(rows) > 1:
            handed.append((rows, site))
        return outside_call(callee, name, args, kwargs, site) if outside_call is not None else MISSING

    machine.outside, machine.outside_call = attribute, call

    def once() -> tuple[Row, ...]:
        value: Any = None
        with suppress(Raised):
            value = start_entry(machine, entry, _arguments(entry))
        return tuple(_rows(value))

    try:
        with deep_recursion():
            outcomes = machine.explore(once, None)
    except (BudgetExceeded, RecursionError):
        return
    handed += [(outcome.value, None) for outcome in outcomes if outcome.raised is None]
    text = _text(entry)
    for rows, site in handed:
        shifts = tuple(_shifts(rows, text))
        if len(shifts) > 1 and any(row.shift for row in shifts):
            yield Alignment(shifts, place_of(site) if site else place_of_definition(entry.module, entry.function))


def _shifts(rows: tuple[Row, ...], text: str) -> Iterator[RowShift]:
    """One shift for each name; None where the code moves it in a way that is not followed."""
    for name in dict.fromkeys(row.name for row in rows):
        same = [row for row in rows if row.name == name]
        written = re.search(rf"\b{re.escape(name)}\[[^\]\n]*\]\s*=(?!=)", text)
        shift = same[0].shift if len({row.shift for row in same}) == 1 and not written else None
        place = next((place_of(row.site) for row in same if row.site is not None), None)
        yield RowShift(name, shift, place)


def _arguments(entry: Entry) -> dict[str, Any]:
    """The parameters that are rows, and the batches of rows."""
    arguments: dict[str, Any] = {}
    for parameter in parameters(entry):
        name = parameter.name.value
        if name in ROW_NAMES:
            arguments[name] = make_row(Row(name, 0))
        elif name in ONE | SEVERAL | {"inputs"}:
            arguments[name] = _batch()
    return arguments


def _batch() -> Instance:
    rows = {name: make_row(Row(name, 0)) for name in ROW_NAMES}
    item = Partial(External("batch.item"), (rows,), {})
    return Instance(None, name="a batch", attrs={"__getitem__": item, "get": item, "pop": item, **rows})


def _rows(value: Any, key: Any = None, depth: int = 0) -> Iterator[Row]:
    """The rows in a value; one that stands under a row's name is called so."""
    row = row_of(value)
    if row is not None:
        yield Row(key if key in ROW_NAMES else row.name, row.shift, row.cut, row.site)
    elif depth < 3 and isinstance(value, dict):
        for name, item in value.items():
            yield from _rows(item, name if isinstance(name, str) else key, depth + 1)
    elif depth < 3 and isinstance(value, list | tuple):
        for item in value:
            yield from _rows(item, key, depth + 1)
    elif depth < 3 and isinstance(value, Instance) and value.name != "a batch" and value.cls is None:
        for name, item in {**value.kwargs, **value.attrs}.items():
            yield from _rows(item, name, depth + 1)
