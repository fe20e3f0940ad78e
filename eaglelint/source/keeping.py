"""Values that are remembered: other paths meet the same objects, under names that tell what each path did to them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eaglelint.source.heap import Heap, Mark
from eaglelint.source.values import BoundMethod, Instance, Partial, Tensor, TensorBuffer, Unknown

__all__ = ["keep"]

_MADE_OF_NOTHING = frozenset((str, int, bool, float, type(None), Tensor, Unknown))


def keep(heap: Heap, values: Iterable[Any], mark: Mark, origin: Any) -> None:
    """Prepare values, made since ``mark``, for being remembered.

    ``origin`` is what they were computed for, each on a path of its own: what the paths do to theirs is compared.
    """
    made: dict[int, Any] = {}
    for value in values:
        _name_made(heap, value, origin, made)
    if made:
        heap.settle(list(made.values()), mark)


def _name_made(heap: Heap, value: Any, origin: Any, made: dict[int, Any]) -> None:
    pending, count = [value], 0
    while pending:
        item = pending.pop()
        container: Any
        kind = type(item)
        if kind in _MADE_OF_NOTHING:
            continue
        if kind is Instance:
            container, inner = item.attrs, [item.payload, item.args, item.kwargs, *item.attrs.values()]
        elif kind is tuple:
            pending += item
            continue
        elif isinstance(item, dict):
            container, inner = item, list(item.values())
        elif isinstance(item, list | set):
            container, inner = item, list(item)
        elif kind is TensorBuffer:
            container, inner = item.writes, []
        elif kind is Partial:
            pending += [item.function, *item.args, *item.kwargs.values()]
            continue
        elif kind is BoundMethod:
            pending.append(item.receiver)
            continue
        else:
            continue
        if heap.is_new(container) and id(container) not in made:
            heap.name(container, (origin, count))
            if isinstance(item, Instance):
                heap.name(item.lazy, (origin, count, "lazy"))
                item.made_with = dict(item.attrs)
            made[id(container)] = container
            count += 1
            pending += inner
