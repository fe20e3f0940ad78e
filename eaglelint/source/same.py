"""When two values are the same, and what two values become where two paths meet again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

from eaglelint.source.values import BoundMethod, Branch, Instance, Norm, Partial, Tensor, TensorBuffer, Term, Unknown

__all__ = ["Meeting", "NotJoinable", "inessential", "join", "same", "same_effects", "set_since"]


_LONG = 400


class NotJoinable(Exception):
    """The two values matter, and differ: the paths stay apart."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where two paths meet inside a decoder layer, and the memory that the tensors have there.

    Which module computed a branch, and from what, does not matter to the stream: where the paths differ in branches of
    this layer alone, they go on with one branch that stands for either. It is named after the condition, so that only
    what depends on the same condition in the same way is equal.
    """

    layer: int
    where: str
    storages: dict[tuple[int, int], object] = field(default_factory=dict)

    def join(self, left: Tensor, right: Tensor) -> Tensor:
        ours, theirs = left.terms - right.terms, right.terms - left.terms
        if not all(self._is_branch(term) for term in ours | theirs):
            raise NotJoinable
        either = " or ".join(sorted((_name_of(ours), _name_of(theirs))))
        joined = Branch(self.layer, 0, f"{either} ({self.where})")
        storage: object = left.storage
        if left.storage is not right.storage:
            storage = self.storages.setdefault((id(left.storage), id(right.storage)), object())
        return Tensor((left.terms & right.terms) | {joined}, storage=storage)

    def _is_branch(self, term: Term) -> bool:
        return isinstance(term, Norm) or (isinstance(term, Branch) and term.layer == self.layer)


def _name_of(terms: frozenset[Term]) -> str:
    """A name that two sums share only where they are equal; not the names of what it is made of, which would add up."""
    name = " + ".join(sorted(f"{t.what}#{t.serial}" if isinstance(t, Branch) else repr(t) for t in terms)) or "nothing"
    return name if len(name) <= _LONG else hashlib.sha256(name.encode()).hexdigest()


def same(left: Any, right: Any, seen: frozenset[tuple[int, int]] = frozenset()) -> bool:
    """Whether two values mean the same; new objects are compared by their class and contents."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(same(a, b, seen) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key], seen) for key in left)
    if isinstance(left, Partial):
        return (
            same(left.function, right.function, seen)
            and same(left.args, right.args, seen)
            and same(left.kwargs, right.kwargs, seen)
        )
    if isinstance(left, BoundMethod):
        return left.function == right.function and same(left.receiver, right.receiver, seen)
    if isinstance(left, TensorBuffer):
        return same(left.writes, right.writes, seen)
    if isinstance(left, Instance):
        pair = (id(left), id(right))
        if pair in seen:
            return True
        seen = seen | {pair}
        return (
            left.cls == right.cls
            and left.layer == right.layer
            and (left.cls is not None or left.name == right.name)
            and same(left.payload, right.payload, seen)
            and same(left.args, right.args, seen)
            and same(left.kwargs, right.kwargs, seen)
            and same(left.attrs, right.attrs, seen)
            and same_effects(left, right)
        )
    try:
        return bool(left == right)
    except (RecursionError, TypeError, ValueError):
        return False


def same_effects(left: Any, right: Any, seen: frozenset[tuple[int, int]] = frozenset()) -> bool:
    """Whether the same was set on two objects, and on what they hold, since they were made."""
    pair = (id(left), id(right))
    if left is right or pair in seen or not (isinstance(left, Instance) and isinstance(right, Instance)):
        return True
    seen = seen | {pair}
    held = left.lazy.keys() & right.lazy.keys()
    alike = same(left.attrs, right.attrs, seen) or same(set_since(left), set_since(right), seen)
    return alike and all(same_effects(left.lazy[name], right.lazy[name], seen) for name in held)


def set_since(instance: Instance) -> dict[str, Any]:
    """What was set on an object after it was made."""
    if not instance.made_with:
        return instance.attrs
    made = instance.made_with
    return {name: value for name, value in instance.attrs.items() if name not in made or made[name] is not value}


def join(left: Any, right: Any, meeting: Meeting | None = None) -> Any:
    """The value where two paths meet.

    Values that cannot carry a hidden state or steer a loop become unknown where they differ; inside a layer, branches
    become one that stands for either.

    Raises:
        NotJoinable: The difference matters: a tensor, a list, a layer, a number, a function.
    """
    if same(left, right):
        return left
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return tuple(join(a, b, meeting) for a, b in zip(left, right, strict=True))
    if meeting is not None and isinstance(left, Tensor) and isinstance(right, Tensor):
        return meeting.join(left, right)
    if (_plain(left) and _plain(right)) or _is_name(left, right) or _is_name(right, left):
        return Unknown("it depends on a condition that is not known")
    if _turns(left) and _turns(right):
        return Unknown("a rotary embedding, of which kind is not known", present=True)
    if isinstance(left, Instance) and isinstance(right, Instance):
        return _join_instances(left, right)
    raise NotJoinable


def _turns(value: Any) -> bool:
    """Whether a value is a rotary embedding, by the name of its class: it turns queries and keys, and no state."""
    if isinstance(value, Unknown):
        return value.present
    return isinstance(value, Instance) and value.cls is not None and "Rotary" in value.cls.info.name


def _is_name(number: Any, text: Any) -> bool:
    """Whether a number counts nothing: on the other path it is a string."""
    return type(number) is int and (isinstance(text, str) or (isinstance(text, Unknown) and text.text))


def _join_instances(left: Instance, right: Instance) -> Instance:
    """Two new objects of one class that were given different arguments."""
    alike = (
        left.cls is not None
        and left.cls == right.cls
        and left.layer == right.layer
        and len(left.args) == len(right.args)
        and left.kwargs.keys() == right.kwargs.keys()
        and same(left.payload, right.payload)
        and same(left.attrs, right.attrs)
    )
    if not alike:
        raise NotJoinable
    args = tuple(_join_argument(a, b) for a, b in zip(left.args, right.args, strict=True))
    kwargs = {name: _join_argument(value, right.kwargs[name]) for name, value in left.kwargs.items()}
    return replace(left, args=args, kwargs=kwargs, lazy=type(left.lazy)(), pending=set(), building=[])


def _join_argument(left: Any, right: Any) -> Any:
    if isinstance(left, int | None) and isinstance(right, int | None) and left != right:
        return Unknown("it depends on a condition that is not known")
    return join(left, right)


def inessential(value: Any) -> bool:
    """Whether a value may become unknown without harm: no state, no list, no number."""
    return _plain(value) or (isinstance(value, Instance) and value.payload is None and value.layer is None)


def _plain(value: Any) -> bool:
    if isinstance(value, Instance):
        if value.closed and value.cls is not None:
            return True  # a member of an enum
        return value.cls is None and not any(_holds_tensor(item) for item in value.attrs.values())
    return value is None or isinstance(value, bool | str | float | Unknown)


def _holds_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) or (isinstance(value, list | tuple) and any(map(_holds_tensor, value)))
