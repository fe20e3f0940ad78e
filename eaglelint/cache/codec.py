"""Results as JSON and back: plain data and eaglelint's own frozen dataclasses, nothing else; never pickle."""

from __future__ import annotations

import dataclasses
import importlib
from functools import lru_cache
from typing import Any

__all__ = ["decode", "encode"]

# Where the dataclasses of results are defined. What a cache file names from elsewhere is not made.
_MODULES = (
    "eaglelint.finding",
    "eaglelint.practice",
    "eaglelint.survey.facts",
    "eaglelint.trainers.result",
    "eaglelint.wiring",
)


def encode(value: Any) -> Any:
    """The value as JSON has it. A list in JSON is a tuple.

    Raises:
        TypeError: Something in it is of another kind.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is tuple:
        return [encode(item) for item in value]
    if type(value) is dict:
        return {"": [[encode(key), encode(item)] for key, item in value.items()]}
    kind = type(value)
    if dataclasses.is_dataclass(kind) and kind.__module__ in _MODULES:
        name = f"{kind.__module__.removeprefix('eaglelint.')}:{kind.__name__}"
        return {name: [encode(getattr(value, field)) for field in _fields(kind)]}
    raise TypeError(f"{kind.__name__} is not kept")


def decode(value: Any) -> Any:
    """What ``encode`` was given.

    Raises:
        ValueError: It is not of this release's form.
    """
    if isinstance(value, list):
        return tuple([decode(item) for item in value])
    if not isinstance(value, dict):
        return value
    ((name, items),) = value.items()
    if not name:
        return {decode(key): decode(item) for key, item in items}
    kind = _class(name)
    return kind(**dict(zip(_fields(kind), map(decode, items), strict=True)))


@lru_cache(maxsize=256)
def _class(name: str) -> type:
    module, _, cls = name.partition(":")
    if f"eaglelint.{module}" not in _MODULES:
        raise ValueError(name)
    found = getattr(importlib.import_module(f"eaglelint.{module}"), cls, None)
    if not isinstance(found, type) or not dataclasses.is_dataclass(found):
        raise ValueError(name)
    return found


@lru_cache(maxsize=256)
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))
