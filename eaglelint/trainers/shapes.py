"""What was saved or returned, frozen: which states, how they are arranged, and where each was captured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from eaglelint.source.operators import whole
from eaglelint.source.slices import Site
from eaglelint.source.values import Cat, Input, Instance, Tensor
from eaglelint.trainers.stacks import make_stack, stacked_parts
from eaglelint.wiring import Slot

__all__ = [
    "Joined",
    "Keyed",
    "Many",
    "Other",
    "Resolve",
    "Shape",
    "Stacked",
    "State",
    "freeze",
    "refine",
    "states_in",
    "thaw",
]


@dataclass(frozen=True, slots=True)
class State:
    """One tensor. Two states are equal where they are the same boundary in the same form."""

    slot: Slot
    reason: str | None = field(default=None, compare=False)
    site: Site | None = field(default=None, compare=False)
    tensor: Tensor | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Joined:
    """States concatenated along the features."""

    parts: tuple[State, ...]


@dataclass(frozen=True, slots=True)
class Stacked:
    """States stacked along a new axis, counted from the front, or from the back where negative."""

    parts: tuple[State, ...]
    axis: int | None


@dataclass(frozen=True, slots=True)
class Many:
    """A list or a tuple."""

    items: tuple[Shape, ...]
    is_tuple: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Keyed:
    """A dict, or an object's attributes."""

    items: tuple[tuple[Any, Shape], ...]


@dataclass(frozen=True, slots=True)
class Other:
    """Anything that is no state; ``nothing`` where it is None."""

    nothing: bool = field(default=False, compare=False)


Shape = State | Joined | Stacked | Many | Keyed | Other

Resolve = Callable[[Tensor], State]
"""The state that a tensor is."""

_DEPTH = 6


def freeze(value: Any, resolve: Resolve, depth: int = 0) -> Shape:
    """The arrangement of the states in a value."""
    value = whole(value)
    if isinstance(value, Tensor):
        term = value.single()
        if isinstance(term, Cat):
            return Joined(tuple(resolve(part) for part in _flat(term)))
        return resolve(value)
    if isinstance(value, Instance):
        stack = stacked_parts(value)
        if stack is not None:
            return Stacked(tuple(resolve(part) for part in stack[0]), stack[1])
        if value.payload is not None:
            return freeze(value.payload, resolve, depth)
        value = {**value.kwargs, **value.attrs}  # an output or a sample of the script's own class
    if depth < _DEPTH and isinstance(value, list | tuple):
        return Many(tuple(freeze(item, resolve, depth + 1) for item in value), isinstance(value, tuple))
    if depth < _DEPTH and isinstance(value, dict):
        return Keyed(
            tuple((key, freeze(item, resolve, depth + 1)) for key, item in value.items() if isinstance(key, str | int))
        )
    return Other(nothing=value is None)


def _flat(cat: Cat) -> Iterator[Tensor]:
    for part in cat.parts:
        inner = part.single()
        if isinstance(inner, Cat):
            yield from _flat(inner)
        else:
            yield part


def refine(shape: Shape, resolve: Resolve) -> Shape:
    """The shape with the states that were not known when it was frozen resolved again, now that more has run."""
    match shape:
        case State():
            if shape.slot.known or shape.tensor is None:
                return shape
            return replace(resolve(shape.tensor), site=shape.site)
        case Joined():
            return Joined(_refined(shape.parts, resolve))
        case Stacked():
            return Stacked(_refined(shape.parts, resolve), shape.axis)
        case Many():
            return Many(tuple(refine(item, resolve) for item in shape.items), shape.is_tuple)
        case Keyed():
            return Keyed(tuple((key, refine(item, resolve)) for key, item in shape.items))
    return shape


def _refined(parts: tuple[State, ...], resolve: Resolve) -> tuple[State, ...]:
    refined = (refine(part, resolve) for part in parts)
    return tuple(part for part in refined if isinstance(part, State))


def states_in(shape: Shape) -> Iterator[State]:
    """All states, in order."""
    match shape:
        case State():
            yield shape
        case Joined() | Stacked():
            yield from shape.parts
        case Many():
            for item in shape.items:
                yield from states_in(item)
        case Keyed():
            for _, item in shape.items:
                yield from states_in(item)


def thaw(shape: Shape, states: list[State]) -> Any:
    """The value that a loader gets back: each state becomes a placeholder, numbered by its place in ``states``."""
    from eaglelint.source.values import Unknown

    def placeholder(state: State) -> Tensor:
        states.append(state)
        return Tensor(frozenset((Input(f"saved {len(states) - 1}"),)))

    match shape:
        case State():
            return placeholder(shape)
        case Joined():
            return Tensor.of(Cat(tuple(placeholder(part) for part in shape.parts)))
        case Stacked():
            return make_stack([placeholder(part) for part in shape.parts], shape.axis)
        case Many():
            items = [thaw(item, states) for item in shape.items]
            return tuple(items) if shape.is_tuple else items
        case Keyed():
            return {key: thaw(item, states) for key, item in shape.items}
    return Unknown("something that was saved beside the states")
