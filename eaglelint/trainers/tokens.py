"""A tensor along its tokens: by how many places code moves ids, states, targets and masks.

The stream's tensors are the same whatever tokens are cut out of them. Here a tensor is a row of tokens and nothing
else: what stands at place t after a shift by one to the left stood at t + 1 before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eaglelint.source.externals import call_external
from eaglelint.source.lookup import MISSING
from eaglelint.source.machine import Machine
from eaglelint.source.slices import Site
from eaglelint.source.values import External, Instance, Partial, Unknown

__all__ = ["ROW_INTERCEPTS", "Row", "make_row", "row_attribute", "row_of", "row_shift"]

_NAME = "a row of tokens"
_KEEPING = frozenset(
    [
        *("bfloat16", "bool", "clone", "contiguous", "cpu", "cuda", "detach", "float", "half", "int", "long", "numpy"),
        *("reshape", "squeeze", "to", "type", "unsqueeze", "view"),
    ]
)

_Args = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """What stands at t stood at ``t + shift``; None where that is not followed.

    ``cut`` counts the tokens that were cut off, until others fill their place; ``site`` is where it was moved.
    """

    name: str = ""
    shift: int | None = 0
    cut: int = 0
    site: Site | None = None


def make_row(row: Row = Row()) -> Instance:
    """A tensor that is this row, or one that nothing has moved."""
    made = Instance(None, name=_NAME, attrs={"row": row})
    made.attrs["__getitem__"] = Partial(External("row.item"), (made,), {})
    return made


def row_of(value: Any) -> Row | None:
    """The row that a value is; None for anything else."""
    return value.attrs["row"] if isinstance(value, Instance) and value.name == _NAME else None


def row_shift(value: Any) -> int | None:
    """By how many places a row was moved to the left; None where that is not known, and for anything else."""
    row = row_of(value)
    return None if row is None else row.shift


def row_attribute(receiver: Any, name: str) -> Any:
    """A method of a row; MISSING for anything else."""
    if row_of(receiver) is None:
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
        return make_row(Row(row.name, None, row.cut, site))
    if first < 0 or (isinstance(last, int) and 0 < last <= 1):
        return Unknown("the end of a row")
    cut = row.cut + first + (-last if isinstance(last, int) and last < 0 else 0)
    shift = None if row.shift is None else row.shift + first
    return make_row(Row(row.name, shift, cut, site if first else row.site))


def _cat(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    """A row with padding behind it stays as it is; what was cut off its end and filled at its front moves it."""
    parts = args[0] if args else kwargs.get("tensors")
    if not isinstance(parts, list | tuple) or not any(row_of(part) for part in parts):
        return call_external(machine, "torch.cat", args, kwargs, site, None)
    rows = [found for part in parts if (found := row_of(part)) is not None]
    if len(rows) > 1:
        alike = len(rows) == len(parts) and len({(row.name, row.shift) for row in rows}) == 1
        return make_row(rows[0]) if alike else Unknown("rows that are joined")
    row, before = rows[0], row_of(parts[0]) is None
    if not before:
        return make_row(Row(row.name, row.shift, 0, row.site))
    moved = row.shift - row.cut if row.shift is not None and row.cut and len(parts) == 2 else None
    return make_row(Row(row.name, moved, 0, site))


def _pad(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    row, widths = row_of(args[0]) if args else None, args[1] if len(args) > 1 else kwargs.get("pad")
    if row is None:
        return call_external(machine, "torch.nn.functional.pad", args, kwargs, site, None)
    # Pairs for the last axes: of a row of numbers the tokens are the last, of a row of states the last but one.
    front = widths[-2] if isinstance(widths, list | tuple) and len(widths) in (2, 4) else None
    if front == 0 or not isinstance(front, int):
        return make_row(Row(row.name, row.shift if front == 0 else None, 0, row.site))
    return make_row(Row(row.name, None if row.shift is None else row.shift - front, 0, site))


def _roll(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    row, by = row_of(args[0]) if args else None, kwargs.get("shifts", args[1] if len(args) > 1 else None)
    if row is None:
        return call_external(machine, "torch.roll", args, kwargs, site, None)
    return make_row(Row(row.name, row.shift - by if isinstance(by, int) and row.shift is not None else None, 0, site))


def _stack(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    """Rows of several examples become a batch of them."""
    parts = args[0] if args else None
    rows = [row_of(part) for part in parts] if isinstance(parts, list | tuple) else []
    if not any(rows):
        return call_external(machine, "torch.stack", args, kwargs, site, None)
    if rows[0] is not None and all(row == rows[0] for row in rows):
        return make_row(rows[0])
    return Unknown("a stack")


def _flat(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    """What was cut before may have been layers, not tokens."""
    row = args[0].attrs["row"]
    return make_row(Row(row.name, row.shift if not row.cut else None, 0, row.site))


ROW_INTERCEPTS: dict[str, Any] = {
    "row.item": _item,
    "row.same": lambda machine, args, kwargs, site: args[0],
    "row.flatten": _flat,
    "torch.cat": _cat,
    "torch.nn.functional.pad": _pad,
    "torch.roll": _roll,
    "torch.stack": _stack,
}
"""The calls that this module answers, by name, for ``Machine(intercepts=...)``."""
