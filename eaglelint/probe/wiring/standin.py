"""The stand-in: takes the place of whatever a run does not have, absorbs what is done to it, and claims nothing.

It is false, empty and unequal to all but itself; its attributes, items and results are stand-ins too. What is known
of a server with one rank (``facts.py``) is answered by name instead.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any

__all__ = ["StandIn", "hooks", "is_attribute_access", "unpacked_count"]

_OPCODES: dict[CodeType, dict[int, tuple[str, Any]]] = {}
_MOST_NESTED = 60


class _Hooks:
    """What the world does with stand-ins: set once, before the run."""

    def __init__(self) -> None:
        self.fact: Callable[[str, str], Any] = lambda name, of: NotImplemented
        self.call: Callable[[StandIn, tuple[Any, ...], dict[str, Any]], Any] = lambda value, args, kwargs: None
        self.operate: Callable[[str, tuple[Any, ...]], Any] = lambda name, args: None
        self.torch: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] = lambda func, args, kwargs: None
        self.base: Callable[[str, tuple[Any, ...]], tuple[Any, ...]] = lambda name, bases: ()


hooks = _Hooks()


def _instruction(frame: FrameType) -> tuple[str, Any]:
    table = _OPCODES.get(frame.f_code)
    if table is None:
        table = {item.offset: (item.opname, item.argval) for item in dis.get_instructions(frame.f_code)}
        _OPCODES[frame.f_code] = table
    return table.get(frame.f_lasti, ("", None))


def unpacked_count(frame: FrameType) -> int:
    """How many values the caller takes apart an iterable into; 0 where it loops over it."""
    name, argument = _instruction(frame)
    if name == "UNPACK_SEQUENCE" or name.startswith("UNPACK_SEQUENCE_"):
        return int(argument)
    if name == "UNPACK_EX":
        return (int(argument) & 0xFF) + (int(argument) >> 8)
    return 0


def is_attribute_access(frame: FrameType) -> bool:
    """Whether the caller wrote ``value.name``; False for getattr and hasattr, which can do without."""
    name, _ = _instruction(frame)
    return name.startswith(("LOAD_ATTR", "LOAD_METHOD"))


class StandIn:
    """Anything. ``name`` says what it stands for; ``state`` whether it stands for a tensor of unknown contents."""

    def __init__(self, name: str, *, state: bool = False, nested: int = 0) -> None:
        fields = self.__dict__
        fields["standin_name"] = name
        fields["standin_state"] = state
        fields["standin_nested"] = nested
        fields["standin_items"] = {}
        fields["standin_made"] = None

    @property
    def standin_short(self) -> str:
        return str(self.standin_name).rpartition(".")[2].removesuffix("()")

    def _derive(self, suffix: str) -> StandIn:
        nested = self.standin_nested + 1
        if nested > _MOST_NESTED:
            raise RecursionError(f"{self.standin_name}: more than {_MOST_NESTED} steps away from what it stands for")
        name = f"{self.standin_name}{suffix}" if nested < 8 else self.standin_name
        return StandIn(name, state=self.standin_state, nested=nested)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        known = hooks.fact(name, self.standin_short)
        value = self._derive(f".{name}") if known is NotImplemented else known
        if name in ("shape", "dtype", "device", "size", "ndim", "numel", "dim"):
            value.__dict__["standin_state"] = False
        self.__dict__[name] = value
        return value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], type | FunctionType):
            if self.standin_name.startswith("triton"):
                return StandIn(args[0].__name__)  # a kernel
            return args[0]  # a decorator
        return hooks.call(self, args, kwargs)

    def __getitem__(self, key: Any) -> Any:
        try:
            return self.standin_items.setdefault(key, self._derive("[]"))
        except TypeError:  # not hashable
            return self._derive("[]")

    def __setitem__(self, key: Any, value: Any) -> None:
        try:
            self.standin_items[key] = value
        except TypeError:
            return

    def __delitem__(self, key: Any) -> None:
        return

    def __iter__(self) -> Iterator[Any]:
        count = unpacked_count(sys._getframe(1))
        return iter([self[index] for index in range(count)])

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return hooks.base(self.standin_short, bases)

    def __instancecheck__(self, instance: Any) -> bool:
        return False

    def __subclasscheck__(self, cls: Any) -> bool:
        return False

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return hooks.torch(func, args, kwargs or {})

    def __bool__(self) -> bool:
        return False

    def __len__(self) -> int:
        return 0

    def __contains__(self, item: Any) -> bool:
        return False

    def __index__(self) -> int:
        return 1

    def __int__(self) -> int:
        return 1

    def __float__(self) -> float:
        return 1.0

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *args: Any) -> None:
        return

    def __repr__(self) -> str:
        return f"<stand-in for {self.standin_name}>"

    def __str__(self) -> str:
        return str(self.standin_name)

    def __format__(self, spec: str) -> str:
        return str(self.standin_name)

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __or__(self, other: Any) -> Any:
        return self._derive(" |")

    __ror__ = __or__

    def _false(self, other: Any) -> bool:
        return False

    __lt__ = __le__ = __gt__ = __ge__ = _false

    def __neg__(self) -> Any:
        return self._derive(" negated")

    __pos__ = __abs__ = __invert__ = __neg__

    def __round__(self, digits: int = 0) -> int:
        return 1


def _operator(name: str, *, reflected: bool = False) -> Callable[[StandIn, Any], Any]:
    def operate(self: StandIn, other: Any) -> Any:
        return hooks.operate(name, (other, self) if reflected else (self, other))

    return operate


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "lshift", "rshift", "xor"):
    setattr(StandIn, f"__{_name}__", _operator(_name))
    setattr(StandIn, f"__r{_name}__", _operator(_name, reflected=True))
