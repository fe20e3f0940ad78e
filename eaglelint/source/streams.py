"""Which tensors a value holds, and which of them carry the residual stream."""

from __future__ import annotations

from typing import Any

from eaglelint.source.machine import Machine
from eaglelint.source.values import (
    BoundMethod,
    Branch,
    ClassValue,
    Collector,
    External,
    Function,
    Input,
    Instance,
    LayerOutput,
    Opaque,
    Tensor,
    Unknown,
)

__all__ = ["carries_stream", "tensors_in", "tensors_of"]

_DEEPEST = 5
_LEAVES = frozenset(
    (str, int, bool, float, type(None), Unknown, Instance, External, ClassValue, Function, BoundMethod, Collector)
)


def carries_stream(machine: Machine, tensor: Tensor) -> bool:
    """Whether a tensor holds the residual stream or what an earlier layer gave, not yet normed."""
    for term in tensor.terms:
        kind = type(term)
        if kind is Input or kind is Opaque or (isinstance(term, Branch) and term.layer != machine.layer):
            return True
    return False


def tensors_in(value: Any) -> list[Tensor]:
    """All tensors in a value, through lists, tuples and dicts."""
    found: list[Tensor] = []
    _collect((value,), found, 0)
    return found


def tensors_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """All tensors in the arguments of a call, as deep as ``tensors_in((args, kwargs))`` looks."""
    found: list[Tensor] = []
    _collect(args, found, 2)
    if kwargs:
        _collect(kwargs.values(), found, 2)
    return found


def _collect(values: Any, found: list[Tensor], depth: int) -> None:
    for value in values:
        kind = type(value)
        if kind in _LEAVES:
            continue
        if kind is Tensor:
            found.append(value)
        elif kind is LayerOutput:
            found.append(value.whole)
        elif kind is list or kind is tuple:
            if depth < _DEEPEST:
                _collect(value, found, depth + 1)
        elif isinstance(value, dict) and depth < _DEEPEST:
            _collect(value.values(), found, depth + 1)
