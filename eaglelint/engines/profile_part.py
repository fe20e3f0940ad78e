"""The part of a bundled profile that one target and one kind of draft need, read within a millisecond or two.

What comes with eaglelint was checked when it was made, and is checked again by its tests; so it is read here as it
stands, while a profile that somebody names is validated whole (``profile_file``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping as MappingOf
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import repeat
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from eaglelint.engines.profile import Profile

__all__ = ["bundled_data", "bundled_part", "bundled_registry", "profile_from"]

_WHOLE = ("engine", "version", "nodes", "by_hand")


@lru_cache(maxsize=256)
def bundled_part(engine: str, version: str, names: tuple[str, ...], kind: str) -> Profile:
    """The bundled profile of a release, with the classes for these architectures and this kind of draft alone."""
    data = bundled_data(engine, version)
    aliases = {name: data["aliases"][name] for name in names if name in data.get("aliases", {})}
    wanted = {aliases.get(name, name) for name in names}
    whole = bool(data.get("by_hand"))
    classes = {name: row for name, row in data["classes"].items() if whole or name in wanted}
    mappings: list[Any] = []
    moved: dict[str, Any] = {}
    for name, row in classes.items():
        of_kind: dict[str, Any] = {}
        if kind in row["mappings"]:
            index, sites = row["mappings"][kind]
            of_kind[kind] = [len(mappings), sites]
            mappings.append(data["mappings"][index])
        moved[name] = {**row, "mappings": of_kind}
    part = {key: data[key] for key in _WHOLE if key in data}
    part |= {"mappings": mappings, "classes": moved, "aliases": aliases}
    part["resolvers"] = {known: row for known, row in data.get("resolvers", {}).items() if known == kind}
    part["without_capture"] = [name for name in data.get("without_capture", ()) if name in wanted]
    return profile_from(part)


def bundled_registry(engine: str, version: str) -> Profile:
    """The bundled profile of a release, with the names alone under which it registers classes."""
    data = bundled_data(engine, version)
    part = {key: data[key] for key in (*_WHOLE, "registered", "prefixes") if key in data and key != "nodes"}
    return profile_from(
        {**part, "mappings": (), "classes": {}, "drafts": {name: {} for name in data.get("drafts", ())}}
    )


@cache
def bundled_data(engine: str, version: str) -> dict[str, Any]:
    """The file of a bundled profile as it stands."""
    text = files("eaglelint.engines.profiles").joinpath(f"{engine}-{version}.json").read_bytes()
    return cast(dict[str, Any], json.loads(text))


def profile_from(data: MappingOf[str, Any]) -> Profile:
    """A profile from a file's JSON, which is taken to be one."""
    return cast(Profile, _structured(Profile, {key: data[key] for key in data if key != "schema_version"}))


def _structured(hint: Any, value: Any) -> Any:
    """A value of JSON in the form that a type hint says, as far as profiles have such forms."""
    origin, inner = _form(hint)
    if origin is None:
        return value
    if origin is tuple:
        return tuple(map(_structured, repeat(inner[0]) if inner[-1] is Ellipsis else inner, value))
    if origin is MappingOf:
        return {key: _structured(inner[1], item) for key, item in value.items()}
    if origin is Union:
        form = next((each for each in inner if _fits(each, value)), None)
        return value if form is None else _structured(form, value)
    hints = _hints(origin)
    return origin(**{key: _structured(hints[key], item) for key, item in value.items()})


@cache
def _form(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """What a type hint asks for: a dataclass, a tuple, a mapping or one of several; None where JSON has it already."""
    if is_dataclass(hint):
        return hint, ()
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return Union, get_args(hint)
    return (origin, get_args(hint)) if origin in (tuple, MappingOf) else (None, ())


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


def _fits(hint: Any, value: Any) -> bool:
    """Whether a value of JSON is meant for this one of several hints; a dataclass is told by its fields."""
    origin, _ = _form(hint)
    if isinstance(value, dict):
        return origin is MappingOf or (
            is_dataclass(origin) and value.keys() <= {field.name for field in fields(origin)}
        )
    return origin is tuple and isinstance(value, list)
