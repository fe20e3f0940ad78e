"""A tensor along its tokens: by how many places a function of a trainer moves its ids, states and masks.

The stream's tensors are the same whatever tokens are cut out of them. Here only the tokens count: what stands at place
t after a shift by one to the left stood at t + 1 before.
"""

from __future__ import annotations

from typing import Any

from eaglelint.source.externals import call_external
from eaglelint.source.lookup import MISSING
from eaglelint.source.machine import Machine
from eaglelint.source.operators import whole
from eaglelint.source.slices import Site
from eaglelint.source.values import External, Instance, Partial, Tensor, Unknown

__all__ = ["ROW_INTERCEPTS", "make_row", "row_attribute", "row_shift"]

_NAME = "a row of tokens"
_KEEPING = (
    *("bfloat16", "bool", "clone", "contiguous", "cpu", "cuda", "detach", "flatten", "float", "half", "int", "long"),
    *("reshape", "squeeze", "to", "type", "unsqueeze", "view"),
)

_Args = tuple[Any, ...]


def make_row(shift: int = 0) -> Instance:
    """A row of tokens: what stands at t stood at ``t + shift``."""
    row = Instance(None, name=_NAME, attrs={"shift": shift})
    row.attrs["__getitem__"] = Partial(External("row.item"), (row,), {})
    return row


def row_shift(value: Any) -> int | None:
    """By how many places a row was moved to the left; None for anything else."""
    if isinstance(value, Instance) and value.name == _NAME:
        found = value.attrs["shift"]
        return found if isinstance(found, int) else None
    return None


def row_attribute(row: Any, name: str) -> Any:
    """A method of a row."""
    if not isinstance(row, Instance) or row.name != _NAME:
        return MISSING
    if name in _KEEPING:
        return Partial(External("row.same"), (row,), {})
    if name == "roll":
        return Partial(External("row.roll"), (row,), {})
    return MISSING


def _same(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    return args[0]


def _item(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    """``row[1:]``, ``row[:, 1:]``, ``row[..., None]``: the one slice with a bound says how far it moves."""
    row, key = args[0], args[1]
    keys = list(key) if isinstance(key, tuple) else [key]
    if not all(item is None or item is ... or isinstance(item, slice) for item in keys):
        return Unknown("some tokens of a row")
    starts = [item.start for item in keys if isinstance(item, slice) and item.start not in (None, 0)]
    if not starts:
        return row
    if len(starts) == 1 and isinstance(starts[0], int) and starts[0] > 0:
        return make_row(row.attrs["shift"] + starts[0])
    return Unknown("some tokens of a row")


def _roll(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    by = kwargs.get("shifts", args[1] if len(args) > 1 else None)
    return (
        make_row(args[0].attrs["shift"] - by) if isinstance(by, int) else Unknown("a row rolled by an unknown number")
    )


def _cat(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    """A row with padding behind it stays as it is; with padding before it it moves to the right."""
    parts = args[0] if args else kwargs.get("tensors")
    if isinstance(parts, list | tuple) and not any(isinstance(whole(part), Tensor) for part in parts):
        places = [index for index, part in enumerate(parts) if row_shift(part) is not None]
        if len(places) == 1 and len(parts) == 2:
            row = parts[places[0]]
            return row if places[0] == 0 else make_row(row.attrs["shift"] - 1)
    return call_external(machine, "torch.cat", args, kwargs, site, None)


ROW_INTERCEPTS = {
    "row.item": _item,
    "row.same": _same,
    "row.roll": _roll,
    "torch.cat": _cat,
    "torch.roll": _roll,
}
"""The calls that this module answers, by name, for ``Machine(intercepts=...)``."""
