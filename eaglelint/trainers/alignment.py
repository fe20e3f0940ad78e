"""By how many tokens training code moves ids, states, targets and masks before it hands them on together.

The runs of the captures do not count tokens: cut or padded, a state is the same state. Here a tensor is a row of tokens
and nothing else; what stands at t in it stood at ``t + shift``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eaglelint.derive import deep_recursion
from eaglelint.practice import Alignment, RowShift
from eaglelint.source.externals import call_external
from eaglelint.source.index import FunctionInfo
from eaglelint.source.lookup import MISSING
from eaglelint.source.machine import Budget, BudgetExceeded, Machine, Raised
from eaglelint.source.slices import Site
from eaglelint.source.tree import SourceModule, SourceTree
from eaglelint.source.values import External, Instance, Partial, Unknown
from eaglelint.survey.places import place_of, place_of_definition
from eaglelint.trainers.files import Entry, entries, parameters
from eaglelint.trainers.loads import ONE, SEVERAL
from eaglelint.trainers.outside import Recorder
from eaglelint.trainers.runs import start_entry

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

_NAME = "a row of tokens"
_MOVES = re.compile(r"1:|:\s*-1|\broll\(|\bpad\(")
_KEEPING = frozenset(
    [
        "bfloat16",
        "bool",
        "clone",
        "contiguous",
        "cpu",
        "cuda",
        "detach",
        "float",
        "half",
        "int",
        "long",
        "numpy",
        "reshape",
        "squeeze",
        "to",
        "type",
        "unsqueeze",
        "view",
    ]
)
_BUDGET = Budget(steps=12_000)

_Args = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    shift: int | None
    cut: int = 0  # how many tokens were cut off
    site: Site | None = None


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
    handed: list[tuple[tuple[_Row, ...], Site | None]] = []
    machine.intercepts |= _INTERCEPTS
    outside, outside_call = machine.outside, machine.outside_call

    def attribute(receiver: Any, name: str) -> Any:
        found = _attribute(receiver, name)
        return outside(receiver, name) if found is MISSING and outside is not None else found

    def call(callee: Any, name: str, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
        rows = tuple(_rows({**dict(enumerate(args)), **kwargs}))
        if len(rows) > 1:
            handed.append((rows, site))
        return outside_call(callee, name, args, kwargs, site) if outside_call is not None else MISSING

    machine.outside, machine.outside_call = attribute, call

    def once() -> tuple[_Row, ...]:
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


def _shifts(rows: tuple[_Row, ...], text: str) -> Iterator[RowShift]:
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
            arguments[name] = _make(_Row(name, 0))
        elif name in ONE | SEVERAL | {"inputs"}:
            arguments[name] = _batch()
    return arguments


def _batch() -> Instance:
    rows = {name: _make(_Row(name, 0)) for name in ROW_NAMES}
    item = Partial(External("batch.item"), (rows,), {})
    return Instance(None, name="a batch", attrs={"__getitem__": item, "get": item, "pop": item, **rows})


# --- rows ----------------------------------------------------------------------------------------------------------


def _make(row: _Row) -> Instance:
    made = Instance(None, name=_NAME, attrs={"row": row})
    made.attrs["__getitem__"] = Partial(External("row.item"), (made,), {})
    return made


def _row(value: Any) -> _Row | None:
    return value.attrs["row"] if isinstance(value, Instance) and value.name == _NAME else None


def _rows(value: Any, key: Any = None, depth: int = 0) -> Iterator[_Row]:
    """The rows in a value; one that stands under a row's name is called so."""
    row = _row(value)
    if row is not None:
        yield _Row(key if key in ROW_NAMES else row.name, row.shift, row.cut, row.site)
    elif depth < 3 and isinstance(value, dict):
        for name, item in value.items():
            yield from _rows(item, name if isinstance(name, str) else key, depth + 1)
    elif depth < 3 and isinstance(value, list | tuple):
        for item in value:
            yield from _rows(item, key, depth + 1)
    elif depth < 3 and isinstance(value, Instance) and value.name != "a batch" and value.cls is None:
        for name, item in {**value.kwargs, **value.attrs}.items():
            yield from _rows(item, name, depth + 1)


def _attribute(receiver: Any, name: str) -> Any:
    if _row(receiver) is None:
        return MISSING
    if name in _KEEPING:
        return Partial(External("row.same"), (receiver,), {})
    if name == "flatten":
        return Partial(External("row.flatten"), (receiver,), {})
    if name == "roll":
        return Partial(External("torch.roll"), (receiver,), {})
    return MISSING


def _item(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    """``row[1:]``, ``row[:, :-1]``, ``row[..., 1:, :]``: the one slice with a bound is along the tokens."""
    row = args[0].attrs["row"]
    keys = list(args[1]) if isinstance(args[1], tuple) else [args[1]]
    bounded = [key for key in keys if isinstance(key, slice) and (key.start not in (None, 0) or key.stop is not None)]
    others = [key for key in keys if not isinstance(key, slice)]
    if not all(key is None or key is ... or key == 0 for key in others) or (others == [0] and len(keys) == 1):
        return Unknown("some tokens of a row")
    if not bounded:
        return args[0]
    first, last = bounded[0].start or 0, bounded[0].stop
    if len(bounded) > 1 or bounded[0].step is not None or not isinstance(first, int):
        return _make(_Row(row.name, None, row.cut, site))
    if first < 0 or (isinstance(last, int) and 0 < last <= 1):
        return Unknown("the end of a row")
    cut = row.cut + first + (-last if isinstance(last, int) and last < 0 else 0)
    shift = None if row.shift is None else row.shift + first
    return _make(_Row(row.name, shift, cut, site if first else row.site))


def _cat(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    """A row with padding behind it stays as it is; what was cut off its end and filled at its front moves it."""
    parts = args[0] if args else kwargs.get("tensors")
    if not isinstance(parts, list | tuple) or not any(_row(part) for part in parts):
        return call_external(machine, "torch.cat", args, kwargs, site, None)
    rows = [found for part in parts if (found := _row(part)) is not None]
    if len(rows) > 1:
        alike = len(rows) == len(parts) and len({(row.name, row.shift) for row in rows}) == 1
        return _make(rows[0]) if alike else Unknown("rows that are joined")
    row, before = rows[0], _row(parts[0]) is None
    if not before:
        return _make(_Row(row.name, row.shift, 0, row.site))
    moved = row.shift - row.cut if row.shift is not None and row.cut and len(parts) == 2 else None
    return _make(_Row(row.name, moved, 0, site))


def _pad(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    row, widths = _row(args[0]) if args else None, args[1] if len(args) > 1 else kwargs.get("pad")
    if row is None:
        return call_external(machine, "torch.nn.functional.pad", args, kwargs, site, None)
    # Pairs for the last axes: of a row of numbers the tokens are the last, of a row of states the last but one.
    front = widths[-2] if isinstance(widths, list | tuple) and len(widths) in (2, 4) else None
    if front == 0 or not isinstance(front, int):
        return _make(_Row(row.name, row.shift if front == 0 else None, 0, row.site))
    return _make(_Row(row.name, None if row.shift is None else row.shift - front, 0, site))


def _roll(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    row, by = _row(args[0]) if args else None, kwargs.get("shifts", args[1] if len(args) > 1 else None)
    if row is None:
        return call_external(machine, "torch.roll", args, kwargs, site, None)
    return _make(_Row(row.name, row.shift - by if isinstance(by, int) and row.shift is not None else None, 0, site))


def _stack(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    """Rows of several examples become a batch of them."""
    parts = args[0] if args else None
    rows = [_row(part) for part in parts] if isinstance(parts, list | tuple) else []
    if rows and rows[0] is not None and all(row == rows[0] for row in rows):
        return _make(rows[0])
    return Unknown("a stack")


def _flat(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    """What was cut before may have been layers, not tokens."""
    row = args[0].attrs["row"]
    return _make(_Row(row.name, row.shift if not row.cut else None, 0, row.site))


_INTERCEPTS: dict[str, Any] = {
    "row.item": _item,
    "row.same": lambda machine, args, kwargs, site: args[0],
    "row.flatten": _flat,
    "torch.cat": _cat,
    "torch.nn.functional.pad": _pad,
    "torch.roll": _roll,
    "torch.stack": _stack,
}
