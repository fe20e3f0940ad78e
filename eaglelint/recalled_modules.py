"""What an engine's draft class builds and loads, from a profile: what was learned, for a config that was foreseen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from eaglelint.draft_modules import BuiltModule, DraftModules
from eaglelint.engines.profile_drafts import matches

if TYPE_CHECKING:
    from eaglelint.artifacts.draft import DraftConfig
    from eaglelint.engines.profile import Profile
    from eaglelint.engines.profile_drafts import Build, Builds

__all__ = ["DEPTH_KEY", "NUMBER", "layer_of", "modules_for", "recalled_modules", "templated"]

DEPTH_KEY = "num_hidden_layers"
NUMBER = "{i}"
_NUMBERED = re.compile(r"(?<=\blayers\.)(?:\d+|\{i\})(?=\.)")


def templated(name: str) -> str:
    """A name with a sign for the number of its layer."""
    return _NUMBERED.sub(NUMBER, name, count=1)


def recalled_modules(profile: Profile, draft: DraftConfig, kind: str, names: Sequence[str]) -> DraftModules | None:
    """What the source would be seen to build and load; None where this config, or one of the names, was not learned."""
    facts = profile.drafts.get(draft.architectures[0]) if len(draft.architectures) == 1 else None
    if facts is None or kind not in facts.builds or draft.embedded or not isinstance(draft.data, dict):
        return None
    if any(templated(name) not in profile.names for name in names):
        return None
    return modules_for(profile.label, profile.builds[facts.builds[kind]], draft.data, names)


def modules_for(label: str, builds: Builds, data: Mapping[str, Any], names: Sequence[str]) -> DraftModules | None:
    """What a class builds for a config and makes of these names of a checkpoint, which are all known."""
    build, depth = _chosen(builds, data), data.get(DEPTH_KEY)
    if build is None or type(depth) is not int or depth < 1 or (build.depths and depth not in build.depths):
        return None
    if any((number := layer_of(name)) is not None and number >= depth for name in names):
        return None
    lines = {path: (norm, _line(label, at)) for path, norm, at in (builds.modules[index] for index in build.modules)}
    modules = []
    for path in _numbered(lines, depth):
        norm, line = lines[path] if path in lines else lines[templated(path)]
        modules.append(BuiltModule(path, norm, *line))
    loaded = None
    if builds.loads is not None and not any({name, templated(name)} & {*builds.stops} for name in names):
        loaded = tuple(_loaded(builds.loads, names, {module.path for module in modules}))
    loader = _line(label, builds.loader) if builds.loader else ("", 0)
    unknown = tuple(sorted(_numbered(build.unknown, depth)))
    return DraftModules(label, builds.cls, tuple(modules), unknown, loaded or None, loader)


def _loaded(loads: Mapping[str, tuple[str, ...]], names: Sequence[str], built: set[str]) -> Iterator[tuple[str, str]]:
    """What each name fills of that which is built."""
    for name in names:
        for path in loads.get(name, loads.get(templated(name), ())):
            shown = path.replace(NUMBER, str(layer_of(name)))
            if shown in built:
                yield name, shown


def _chosen(builds: Builds, data: Mapping[str, Any]) -> Build | None:
    if not all(matches(data, key, answers) for key, answers in builds.accepts if _has_section(data, key)):
        return None
    index = 0
    for key, groups in builds.switches:
        found = (number for number, answers in enumerate(groups) if matches(data, key, answers))
        group = next(found, None) if _has_section(data, key) else 0
        if group is None:
            return None
        index = index * len(groups) + group
    return builds.builds[index]


def _has_section(data: Mapping[str, Any], key: tuple[str, ...]) -> bool:
    """Whether a key's section is there, as it is not in the config that all was learned from; its own key says so."""
    return len(key) == 1 or matches(data, key[:-1], ("section",))


def _numbered(paths: Sequence[str] | Mapping[str, Any], depth: int) -> Iterator[str]:
    """The paths of all layers, in the order in which layers are built; one with a number is of that layer alone."""
    for in_layers, group in groupby(paths, lambda path: _NUMBERED.search(path) is not None):
        found = tuple(group)
        for number in range(depth) if in_layers else ():
            shown = (path.replace(NUMBER, str(number)) for path in found)
            yield from (path for path in shown if layer_of(path) == number)
        yield from () if in_layers else found


def layer_of(name: str) -> int | None:
    """The number of the layer that a module is in, as its name has it."""
    found = _NUMBERED.search(name)
    return int(found[0]) if found is not None else None


def _line(label: str, at: str) -> tuple[str, int]:
    path, _, number = at.rpartition(":")
    return f"{label}: {path}", int(number)
