"""Profiles as files: reading one that somebody names, writing one that was learned, and finding the bundled ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eaglelint.atomic import write_whole
from eaglelint.exceptions import UnreadableInput

if TYPE_CHECKING:
    from eaglelint.engines.profile import Profile

__all__ = [
    "bundled_engines",
    "bundled_profile",
    "bundled_servers",
    "bundled_versions",
    "profile_text",
    "read_profile",
    "write_profile",
]

SCHEMA_VERSION = 1
_MAX_BYTES = 16 * 1024 * 1024


@cache
def bundled_versions(engine: str) -> tuple[str, ...]:
    """The releases of an engine whose profiles come with eaglelint, the oldest first."""
    names = (entry.name for entry in files("eaglelint.engines.profiles").iterdir())
    found = (name[len(engine) + 1 : -len(".json")] for name in names if _is_profile(name, engine))
    return tuple(sorted(found, key=_release))


@cache
def bundled_engines() -> tuple[str, ...]:
    """The engines of which a profile comes with eaglelint."""
    names = (entry.name for entry in files("eaglelint.engines.profiles").iterdir())
    found = (re.fullmatch(r"(.+)-[0-9a-f]+(?:\.[0-9a-z]+)*\.json", name) for name in names)
    return tuple(sorted({match[1] for match in found if match}))


def bundled_servers() -> tuple[str, ...]:
    """Those that serve drafts: ``transformers`` gives a target's states to whoever trains or runs a draft itself."""
    return tuple(engine for engine in bundled_engines() if engine != "transformers")


def _is_profile(name: str, engine: str) -> bool:
    return name.startswith(f"{engine}-") and name.endswith(".json")


def _release(version: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in version.split("."))


@cache
def bundled_profile(engine: str, version: str) -> Profile | None:
    """The profile of exactly that release; None where none is bundled."""
    if version not in bundled_versions(engine):
        return None
    from eaglelint.engines.profile_part import bundled_data, profile_from

    return profile_from(bundled_data(engine, version))


def read_profile(path: Path, display: str) -> Profile:
    """Read a profile that ``engines learn`` has written.

    Raises:
        UnreadableInput: It cannot be read or is no profile.
    """
    try:
        if not path.is_file():
            raise UnreadableInput(f"{display} is no file. Name a profile that engines learn has written.")
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UnreadableInput(f"{display}: {error.strerror or error}. Name a file that can be read.") from error
    if len(text) > _MAX_BYTES:
        raise UnreadableInput(f"{display} is larger than 16 MiB. Name a profile that engines learn has written.")
    return _parse(text, display)


def _parse(text: bytes, display: str) -> Profile:
    from pydantic import TypeAdapter, ValidationError

    from eaglelint.engines.profile import Profile

    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableInput(f"{display} is not JSON ({error}). Name a profile that engines learn wrote.") from error
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != SCHEMA_VERSION:
        raise UnreadableInput(
            f"{display} is no profile of this form: its schema_version is {version!r}, expected {SCHEMA_VERSION}. "
            "Make it anew with engines learn."
        )
    try:
        profile = TypeAdapter(Profile).validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UnreadableInput(f"{display}: {place}: {first['msg']}. Make it anew with engines learn.") from error
    for problem in _faults(profile):
        raise UnreadableInput(f"{display}: {problem}. Make it anew with engines learn.")
    return profile


def _faults(profile: Profile) -> Iterator[str]:
    """References that lead nowhere, and formulas that are none."""
    from eaglelint.engines.formula import depth_formula
    from eaglelint.engines.profile import PLACES, KeyNode

    for index, mapping in enumerate(profile.mappings):
        if mapping.rule is not None:
            missing = [place for place in PLACES if place not in mapping.rule.outcomes]
            if missing:
                yield f"mapping {index} has no outcome for {missing[0]}"
            try:
                for text in mapping.rule.default or ():
                    depth_formula(text)
            except ValueError as error:
                yield f"mapping {index}: {error}"
    for cls in profile.classes.values():
        for kind, (mapped, sites) in cls.mappings.items():
            if not 0 <= mapped < len(profile.mappings):
                yield f"{cls.name} refers to mapping {mapped} for {kind}, which is not there"
            elif any(not 0 <= site < len(sites) for site in profile.mappings[mapped].sites()):
                yield f"{cls.name} has {len(sites)} sites for {kind}, and its mapping refers to more"
    for name, facts in profile.drafts.items():
        for kind, index in facts.builds.items():
            if not 0 <= index < len(profile.builds):
                yield f"the draft class {name} refers to builds {index} for {kind}, which are not there"
    for index, builds in enumerate(profile.builds):
        if len(builds.builds) != prod(len(groups) for _, groups in builds.switches):
            yield f"builds {index} are {len(builds.builds)}, and its switches have another number of choices"
        used = (number for build in builds.builds if build is not None for number in build.modules)
        if not all(0 <= number < len(builds.modules) for number in used):
            yield f"builds {index} refer to a module that is not there"
        for line in (*(at for _, _, at in builds.modules), *([builds.loader] if builds.loader else ())):
            if not re.search(r":\d+$", line):
                yield f"builds {index} name {line!r}, which is no line"
    lines = (line for facts in profile.drafts.values() for line in facts.lines())
    for line in lines:
        if not re.search(r":\d+$", line.at):
            yield f"{line.at!r} is no line"
    for kind, resolver in profile.resolvers.items():
        if not 0 <= resolver.root < len(profile.nodes):
            yield f"the resolver of {kind} refers to node {resolver.root}, which is not there"
    for index, node in enumerate(profile.nodes):
        if isinstance(node, KeyNode):
            for target in (*node.answers.values(), *(() if node.otherwise is None else (node.otherwise,))):
                if not 0 <= target < index:
                    yield f"node {index} refers to node {target}, which does not stand before it"


def profile_text(profile: Profile) -> str:
    """The file's text: the same for the same profile, one line for each class, mapping and node."""
    from pydantic import TypeAdapter

    from eaglelint.engines.profile import Profile

    data: dict[str, Any] = TypeAdapter(Profile).dump_python(profile, mode="json", exclude_defaults=True)
    lines = []
    for key, value in {"schema_version": SCHEMA_VERSION, **data}.items():
        if isinstance(value, dict) and value:
            rows = [f"  {json.dumps(name)}: {_compact(row)}" for name, row in value.items()]
            lines.append(f"{json.dumps(key)}: {{\n" + ",\n".join(rows) + "\n }")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            lines.append(f"{json.dumps(key)}: [\n" + ",\n".join(f"  {_compact(row)}" for row in value) + "\n ]")
        else:
            lines.append(f"{json.dumps(key)}: {_compact(value)}")
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def write_profile(profile: Profile, path: Path) -> None:
    """Write a profile in one step: a file that is there stays as it is until the new one is whole.

    Raises:
        UnreadableInput: It cannot be written there.
    """
    try:
        write_whole(path, profile_text(profile).encode())
    except OSError as error:
        raise UnreadableInput(f"{path} cannot be written: {error.strerror or error}. Choose another -o.") from error
