"""Reads a pickle without unpickling: its opcodes are interpreted on inert values; nothing is imported or called.

What a pickle would call stays a :class:`Call` of a :class:`Name`. Only what ``torch.save`` writes needs to come out.
"""

from __future__ import annotations

import io
import pickletools
import struct
import warnings
from dataclasses import dataclass, field
from typing import Any

__all__ = ["MAX_OPCODES", "BrokenPickle", "Call", "Name", "Persistent", "read_pickle"]

MAX_OPCODES = 500_000
"""Most opcodes that are followed; a state dict takes some forty for each tensor."""


class BrokenPickle(Exception):
    """The bytes are no pickle, or none that is followed; the message is the rest of a sentence."""


@dataclass(frozen=True, slots=True)
class Name:
    """A global that the pickle names; never looked up."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(slots=True, eq=False)
class Call:
    """What a pickle would call, and with what; ``items`` are those that it would set afterwards."""

    function: Any
    args: tuple[Any, ...]
    items: dict[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Persistent:
    """A reference to data outside of the pickle, a storage in the files of torch."""

    id: Any


class _Mark:
    pass


_MARK = _Mark()
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_PUSHES_ITS_ARGUMENT = frozenset({
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT",
    "STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
    "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8",
})  # fmt: skip


def read_pickle(file: io.BytesIO) -> Any:
    """The value of the pickle at which ``file`` stands; afterwards the file stands behind it.

    Raises:
        BrokenPickle: It is none, ends early, or is too long.
    """
    machine = _Machine()
    try:
        return _run(machine, file)
    except (ValueError, OverflowError, struct.error, TypeError, MemoryError) as error:
        raise BrokenPickle(str(error)[:120] or type(error).__name__) from None


def _run(machine: _Machine, file: io.BytesIO) -> Any:
    with warnings.catch_warnings():
        # What the reader of opcodes thinks of escapes in a text is nobody's concern.
        warnings.simplefilter("ignore")
        for count, (opcode, argument, _) in enumerate(pickletools.genops(file)):
            if count >= MAX_OPCODES:
                raise BrokenPickle(f"it has more than {MAX_OPCODES:,} operations")
            if opcode.name == "STOP":
                return machine.pop()
            machine.step(opcode.name, argument)
    raise BrokenPickle("it ends without an end mark")


class _Machine:
    __slots__ = ("memo", "stack")

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def pop(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise BrokenPickle("it takes a value where there is none")
        return self.stack.pop()

    def top(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise BrokenPickle("it takes a value where there is none")
        return self.stack[-1]

    def pop_marked(self) -> list[Any]:
        """The values above the last mark; both are taken off."""
        for index in range(len(self.stack) - 1, -1, -1):
            if self.stack[index] is _MARK:
                values = self.stack[index + 1 :]
                del self.stack[index:]
                return values
        raise BrokenPickle("it goes back to a mark that is not there")

    def step(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name in _PUSHES_ITS_ARGUMENT:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name == "MARK":
            stack.append(_MARK)
        elif name in ("PROTO", "FRAME", "READONLY_BUFFER"):
            pass
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            self.memo[argument] = self.top()
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = self.top()
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            if argument not in self.memo:
                raise BrokenPickle("it takes a value from a memo that is empty")
            stack.append(self.memo[argument])
        elif name == "POP":
            if stack and stack[-1] is _MARK:
                stack.pop()
            else:
                self.pop()
        elif name == "POP_MARK":
            self.pop_marked()
        elif name == "DUP":
            stack.append(self.top())
        else:
            self._build(name, argument)

    def _build(self, name: str, argument: Any) -> None:
        stack = self.stack
        match name:
            case "EMPTY_DICT":
                stack.append({})
            case "EMPTY_LIST" | "EMPTY_SET":
                stack.append([])
            case "EMPTY_TUPLE":
                stack.append(())
            case "TUPLE" | "FROZENSET":
                stack.append(tuple(self.pop_marked()))
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                values = [self.pop() for _ in range(int(name[-1]))]
                stack.append(tuple(reversed(values)))
            case "LIST":
                stack.append(self.pop_marked())
            case "DICT":
                values = self.pop_marked()
                stack.append({})
                self._set(values)
            case "APPEND":
                value = self.pop()
                self._extend([value])
            case "APPENDS" | "ADDITEMS":
                self._extend(self.pop_marked())
            case "SETITEM":
                value, key = self.pop(), self.pop()
                self._set([key, value])
            case "SETITEMS":
                self._set(self.pop_marked())
            case "GLOBAL":
                module, _, attribute = str(argument).partition(" ")
                stack.append(Name(module, attribute))
            case "STACK_GLOBAL":
                attribute, module = self.pop(), self.pop()
                if not isinstance(attribute, str) or not isinstance(module, str):
                    raise BrokenPickle("it names a global by something else than text")
                stack.append(Name(module, attribute))
            case "REDUCE" | "NEWOBJ":
                args, function = self.pop(), self.pop()
                stack.append(Call(function, args if isinstance(args, tuple) else ()))
            case "NEWOBJ_EX":
                self.pop()
                args, function = self.pop(), self.pop()
                stack.append(Call(function, args if isinstance(args, tuple) else ()))
            case "INST":
                module, _, attribute = str(argument).partition(" ")
                stack.append(Call(Name(module, attribute), tuple(self.pop_marked())))
            case "OBJ":
                values = self.pop_marked()
                if not values:
                    raise BrokenPickle("it makes an object of nothing")
                stack.append(Call(values[0], tuple(values[1:])))
            case "BUILD":
                # State of an object: attributes of a module, of no use here.
                self.pop()
                self.top()
            case "PERSID":
                stack.append(Persistent(argument))
            case "BINPERSID":
                stack.append(Persistent(self.pop()))
            case "EXT1" | "EXT2" | "EXT4":
                stack.append(Name("copyreg extension", str(argument)))
            case "NEXT_BUFFER":
                stack.append(Persistent(None))
            case _:
                raise BrokenPickle(f"it uses {name}, which is not followed")

    def _extend(self, values: list[Any]) -> None:
        target = self.top()
        if isinstance(target, list):
            target.extend(values)
        elif not isinstance(target, Call):
            raise BrokenPickle("it appends to what is no list")

    def _set(self, values: list[Any]) -> None:
        if len(values) % 2:
            raise BrokenPickle("it sets a key without a value")
        target = self.top()
        items = target.items if isinstance(target, Call) else target
        if not isinstance(items, dict):
            raise BrokenPickle("it sets a key of what is no dictionary")
        for key, value in zip(values[::2], values[1::2], strict=True):
            # Other keys than these need not be read, and hashing nested tuples can take forever.
            if type(key) in (str, int):
                items[key] = value
