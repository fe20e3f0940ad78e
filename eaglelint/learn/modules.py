"""Learn what classes of drafts build and load: each is made for configs that differ in the keys that it reads.

A config of reference is changed in many keys at once; where that makes a difference, in half of them, until the keys
are found that decide. What was learned is then tried on configs that it was not learned from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from random import Random
from typing import Any

from eaglelint.artifacts.target import TargetConfig
from eaglelint.draft_modules import DraftModules, built_modules
from eaglelint.engines.base import DraftReads
from eaglelint.engines.profile_drafts import Build, Builds, answers_of
from eaglelint.learn.resolvers import NotedText
from eaglelint.recalled_modules import DEPTH_KEY, NUMBER, layer_of, modules_for, templated
from eaglelint.serving import EngineHandle

__all__ = ["REFERENCE", "built_alike", "learn_builds", "names_for", "usual_modules"]

Key = tuple[str, ...]
Config = dict[Key, tuple[str, Any]]
"""Changes of the config of reference: for each key path what the answer is called, and the value."""

REFERENCE: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 1,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 128256,
    "draft_vocab_size": 32000,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-05,
    "max_position_embeddings": 8192,
    "rope_theta": 500000.0,
    "tie_word_embeddings": False,
}
"""The config of a draft as trainers write it for a Llama."""
_TARGETS = (
    TargetConfig.synthetic(32, ("LlamaForCausalLM",)),
    TargetConfig.synthetic(61, ("DeepseekV3ForCausalLM",)),
    TargetConfig("", None, {**REFERENCE, "architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 36}, (), 36),
)
_DEEP = 5
_MOST_BUILDS = 16
_TESTS = 25
_SECTION = {"unused": 1}
_VALUES: dict[str, Any] = {
    "absent": None,
    "null": None,
    "true": True,
    "false": False,
    "number": 7,
    "text": "x",
    "ids": [2, 7, 9],
    "list": ["x"],
    "section": _SECTION,
    "empty section": {},
}
_PLAUSIBLE: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (re.compile(r"_(?:config|parameters|scaling)$"), ("section", "empty section")),
    (re.compile(r"_(?:ids|layers)$(?<!num_layers)"), ("ids",)),
    (re.compile(r"^(?:num|n)_|_(?:size|dim|rank|eps|theta|count|scale|len|id)$"), ("number",)),
    (re.compile(r"_types$"), ("list",)),
    (re.compile(r"_(?:type|dtype|act|mode)$|^model$"), ("text",)),
    (re.compile(r""), ("true", "false", "number")),
)
"""What a key may plausibly be, by its name: a config in which it is something else is none that was learned."""
_EXACT: tuple[str, ...] = (*(f"number {count}" for count in range(1, 9)), *(f"ids {count}" for count in range(1, 9)))
_COUNT = re.compile(r"^num_|_(?:ids|layers)$")


@dataclass(slots=True)
class _Asking:
    """A class of drafts that is asked about configs; answers are kept."""

    handle: EngineHandle
    name: str
    kind: str
    names: tuple[str, ...] = ()
    keys: dict[Key, None] = field(default_factory=dict)
    compared: dict[Key, list[str]] = field(default_factory=dict)
    told: dict[str, DraftModules | None] = field(default_factory=dict)

    def ask(self, config: Config, depth: int = 1, target: int = 0) -> DraftModules | None:
        return self.made(self.config(config, depth), target)

    def config(self, config: Config, depth: int = 1) -> dict[str, Any]:
        data: dict[str, Any] = {**REFERENCE, "architectures": [self.name], DEPTH_KEY: depth}
        for key, (answer, value) in sorted(config.items(), key=lambda item: len(item[0])):
            section = data
            for part in key[:-1]:
                inner = section.get(part)
                section[part] = dict(inner) if isinstance(inner, dict) else dict(_SECTION)
                section = section[part]
            section.pop(key[-1], None)
            if answer != "absent":
                section[key[-1]] = dict(value) if isinstance(value, dict) else value
        return data

    def made(self, data: dict[str, Any], target: int = 0, names: tuple[str, ...] | None = None) -> DraftModules | None:
        asked = self.names if names is None else names
        known = f"{data!r} {target} {asked}"
        if known not in self.told:
            reads = DraftReads()
            self.told[known] = built_modules(
                self.handle.engine, self.handle.source, data, _TARGETS[target], self.kind, asked, reads
            )
            self.keys.update(dict.fromkeys(key for key in reads.asked if not key[-1].startswith(("get_", "_"))))
        return self.told[known]


def names_for(modules: Iterable[str]) -> tuple[str, ...]:
    """The names under which checkpoints have such modules: as the class has them, and as trainers call them."""
    found: dict[str, None] = {}
    for path in modules:
        bare = path.removeprefix("model.")
        forms = {bare}
        for layer in ("layers.0.", "midlayer."):
            if bare.startswith(layer):
                rest = bare.removeprefix(layer)
                forms |= {f"midlayer.{rest}", *(f"layers.{number}.{rest}" for number in range(_DEEP))}
        found |= dict.fromkeys(sorted(forms | {f"model.{form}" for form in forms}))
    return tuple(found)


def learn_builds(handle: EngineHandle, name: str, kind: str, names: tuple[str, ...]) -> Builds | None:
    """What a class builds and loads; None where that is not told by the keys of a config."""
    asking = _Asking(handle, name, kind)
    base = asking.ask({})
    if base is None or not base.modules or any(asking.ask({}, target=index) != base for index in range(len(_TARGETS))):
        return None
    followed = _first_followed(asking, asking.config({}), base, names)
    if followed is None:  # without the names that reach it, what a class builds tells little
        return None
    accepted, differing = _sorted_out(asking, base)
    switches = _switches(accepted, differing)
    _keep_what_holds_beside(asking, accepted, switches)
    accepts = tuple((key, tuple(answers)) for key, answers in accepted.items() if key not in dict(switches))
    asking.names = names
    made: list[_Made | None] = []
    for choice in _choices(switches):
        made.append(_made(asking, dict(choice)))
        if made[0] is None:
            return None
    found = _packed(base.cls, accepts, switches, made)
    return found if _holds(asking, found) else None


def _packed(
    cls: str, accepts: tuple[tuple[Key, tuple[str, ...]], ...], switches: _Switches, made: list[_Made | None]
) -> Builds:
    """What all choices have in common, once; each build refers to it."""
    known = [choice for choice in made if choice is not None]
    modules = tuple(dict.fromkeys(module for choice in known for module in choice.modules))
    loads = {name: paths for choice in reversed(known) for name, paths in choice.loads.items()}
    for choice in known:
        for name, paths in choice.loads.items():
            loads[name] = tuple(dict.fromkeys((*loads[name], *paths)))
    return Builds(
        cls,
        accepts,
        tuple((key, tuple(tuple(group) for group in groups)) for key, groups in switches),
        tuple(
            None
            if choice is None
            else Build(tuple(modules.index(module) for module in choice.modules), choice.unknown, choice.depths)
            for choice in made
        ),
        modules,
        loads or None,
        tuple(dict.fromkeys(name for choice in known for name in choice.stops)),
        known[0].loader,
    )


def usual_modules(handle: EngineHandle, name: str, kind: str) -> tuple[str, ...]:
    """What a class builds for the config of reference."""
    made = _Asking(handle, name, kind).ask({})
    return () if made is None else tuple(module.path for module in made.modules)


def built_alike(handle: EngineHandle, name: str, kind: str, builds: Builds, names: tuple[str, ...]) -> bool:
    """Whether what was learned for another kind of draft, or under another name, holds for this."""
    return _holds(_Asking(handle, name, kind, names), builds)


def _answers(asking: _Asking, key: Key) -> dict[str, Any]:
    """The values of a key that are tried, by what a profile calls them."""
    text = NotedText("x")
    text.log = asking.compared.setdefault(key, [])
    if not _is_given(key):
        plausible = next(answers for pattern, answers in _PLAUSIBLE if pattern.search(key[-1]))
        return {**{answer: _VALUES[answer] for answer in ("absent", "null", *plausible)}} | (
            {"text": text} if "text" in plausible else {}
        )
    value = REFERENCE[key[0]]
    own = {next(answers_of(REFERENCE, key)): value, "absent": None}
    if isinstance(value, bool):
        return {**own, "true": True, "false": False}
    if isinstance(value, str):
        return {**own, "text": text}
    return {**own, "number": value * 2 + 1 if isinstance(value, int) else value * 2}


def _is_given(key: Key) -> bool:
    """Whether the config of reference has the key."""
    return len(key) == 1 and key[0] in REFERENCE


def _sorted_out(asking: _Asking, base: DraftModules) -> tuple[dict[Key, list[str]], dict[Key, dict[str, DraftModules]]]:
    """For each key that is read the answers that change nothing, and those that change what is built."""
    accepted: dict[Key, list[str]] = {}
    differing: dict[Key, dict[str, DraftModules]] = {}

    rejected: set[Key] = set()  # these would spoil what is tried together

    def halve(changes: Config) -> None:
        if not changes:
            return
        made = asking.ask(changes)
        if made == base:
            for key, (answer, _) in changes.items():
                accepted[key].append(answer)
        elif len(changes) > 1:
            items = list(changes.items())
            halve(dict(items[: len(items) // 2]))
            halve(dict(items[len(items) // 2 :]))
        else:
            ((key, (answer, _)),) = changes.items()
            rejected.add(key)
            if made is not None and _differs(made, base):
                differing.setdefault(key, {})[answer] = made

    seen: set[Key] = {(DEPTH_KEY,), ("architectures",)}
    while new := [key for key in asking.keys if key not in seen]:
        seen.update(new)
        accepted |= {key: [] for key in new}
        tried = {key: _answers(asking, key) for key in new}
        for answer in dict.fromkeys(answer for answers in tried.values() for answer in answers):
            changes = {key: (answer, answers[answer]) for key, answers in tried.items() if answer in answers}
            halve({key: change for key, change in changes.items() if key not in rejected})
            for key in [key for key in changes if key in rejected]:
                halve({key: changes[key]})
        for key in new:
            for text in dict.fromkeys(asking.compared.get(key, ())):
                if text != "x":
                    halve({key: (f"text {text}", text)})
            # A count may decide where any count does not.
            for answer in _EXACT if _COUNT.search(key[-1]) and not _is_given(key) else ():
                if answer.partition(" ")[0] in differing.get(key, ()):
                    halve({key: (answer, _exact(answer))})
    return accepted, differing


def _differs(made: DraftModules, base: DraftModules) -> bool:
    """Whether other modules are built; what is only not known any more was not learned."""
    paths = {module.path for module in made.modules}
    return not paths <= {module.path for module in base.modules} or any(
        module.path not in paths and module.path not in made.unknown for module in base.modules
    )


def _exact(answer: str) -> Any:
    form, _, count = answer.partition(" ")
    return int(count) if form == "number" else list(range(2, 2 + int(count)))


_Switches = list[tuple[Key, list[list[str]]]]


def _switches(accepted: Mapping[Key, list[str]], differing: Mapping[Key, Mapping[str, DraftModules]]) -> _Switches:
    """The keys that decide, each with groups of answers; the first group is that of the config of reference."""
    found: _Switches = []
    for key, outcomes in differing.items():
        groups: dict[DraftModules, list[str]] = {}
        for answer, made in outcomes.items():
            if answer not in ("number", "ids", "absent"):  # another count may come to something else
                groups.setdefault(made, []).append(answer)
        if groups and accepted[key]:
            found.append((key, [accepted[key], *groups.values()]))
    while prod(len(groups) for _, groups in found) > _MOST_BUILDS:
        found.pop()
    return found


def _keep_what_holds_beside(asking: _Asking, accepted: dict[Key, list[str]], switches: _Switches) -> None:
    """Leave out answers that change something once a switch is set, as the number of norms does once there are any."""
    for key, answers in accepted.items():
        if "number" in answers and _COUNT.search(key[-1]):
            answers += [answer for answer in _EXACT if answer.startswith("number ") and answer not in answers]
    for switch, groups in switches:
        for group in groups[1:]:
            context: Config = {switch: (_shown(group), _value(switch, _shown(group)))}
            usual = asking.ask(context)
            for answer in dict.fromkeys(answer for answers in accepted.values() for answer in answers):
                keys = [key for key, answers in accepted.items() if answer in answers and key != switch]
                for key in _spoilers(asking, context, usual, keys, answer):
                    accepted[key].remove(answer)
    for key, answers in accepted.items():
        if "number" in answers and _COUNT.search(key[-1]):
            answers[:] = [answer for answer in answers if not answer.startswith("number ")]


def _spoilers(
    asking: _Asking, context: Config, usual: DraftModules | None, keys: list[Key], answer: str
) -> Iterator[Key]:
    """The keys with which this answer changes what is built in a context."""
    if not keys or asking.ask({**context, **{key: (answer, _value(key, answer)) for key in keys}}) == usual:
        return
    if len(keys) == 1:
        yield from keys
        return
    for half in (keys[: len(keys) // 2], keys[len(keys) // 2 :]):
        yield from _spoilers(asking, context, usual, half, answer)


def _shown(group: list[str]) -> str:
    """The answer that stands for a group."""
    return "true" if "true" in group else group[0]


def _choices(switches: _Switches) -> Iterator[list[tuple[Key, tuple[str, Any]]]]:
    keys = [key for key, _ in switches]
    for chosen in product(*(map(_shown, groups) for _, groups in switches)):
        yield [(key, (answer, _value(key, answer))) for key, answer in zip(keys, chosen, strict=True)]


def _value(key: Key, answer: str) -> Any:
    if answer.startswith("number "):
        return REFERENCE[key[0]] if _is_given(key) else _exact(answer)
    if answer.startswith("ids "):
        return _exact(answer)
    if answer.startswith("text "):
        return answer.removeprefix("text ")
    if answer == "number" and _is_given(key):
        return REFERENCE[key[0]]
    if answer in ("true", "false"):
        return answer == "true"
    return _VALUES.get(answer)


@dataclass(frozen=True, slots=True)
class _Made:
    """What is built for one choice, and what the names of a checkpoint fill of it."""

    modules: tuple[tuple[str, bool, str], ...]
    unknown: tuple[str, ...]
    depths: tuple[int, ...]
    loads: Mapping[str, tuple[str, ...]]
    stops: tuple[str, ...]
    loader: str


def _made(asking: _Asking, config: Config) -> _Made | None:
    """What is built for one choice, whatever the number of layers."""
    flat, deep = asking.ask(config), asking.ask(config, _DEEP)
    if flat is None:
        return None
    general = None if deep is None else _general(asking, asking.config(config, _DEEP), deep, _DEEP)
    return general or _general(asking, asking.config(config), flat, 1)


def _general(asking: _Asking, data: dict[str, Any], made: DraftModules, depth: int) -> _Made | None:
    paths = _templates((module.path for module in made.modules), depth)
    unknown = _templates(made.unknown, depth)
    known = tuple(name for name in asking.names if (layer_of(name) or 0) < depth)
    filled, stops = _followed(asking, data, made, known)
    asked = _templates((name for name, _ in filled), depth)
    left = _templates(stops, depth)
    if paths is None or unknown is None or asked is None or left is None:
        return None
    modules = [(paths[m.path], m.norm, f"{m.file}:{m.line}") for m in made.modules]
    loads: dict[str, tuple[str, ...]] = {}
    for name, path in dict.fromkeys(
        (asked[name], templated(path) if NUMBER in asked[name] else path) for name, path in filled
    ):
        loads[name] = (*loads.get(name, ()), path)
    return _Made(
        tuple(dict.fromkeys(modules)),
        tuple(dict.fromkeys(unknown.values())),
        (1,) if depth == 1 else (),
        loads,
        tuple(dict.fromkeys(left.values())) if loads else (),
        "{}:{}".format(*made.loader) if made.loader[0] else "",
    )


def _templates(names: Iterable[str], depth: int) -> dict[str, str] | None:
    """What each is called for any number of layers: those that all layers have, and those of the first alone."""
    known = tuple(names)
    found: dict[str, str] = {}
    for name in known:
        layer, general = layer_of(name), templated(name)
        if layer is None or all(general.replace(NUMBER, str(number)) in known for number in range(depth)):
            found[name] = general if depth > 1 or layer is None else general.replace(NUMBER, "0")
        elif layer == 0 and not any(general.replace(NUMBER, str(number)) in known for number in range(1, depth)):
            found[name] = name
        else:
            return None
    return found


def _followed(
    asking: _Asking, data: dict[str, Any], made: DraftModules, names: tuple[str, ...]
) -> tuple[list[tuple[str, str]], list[str]]:
    """Which modules the names fill, and with which of them the loader cannot be followed."""
    first = _first_followed(asking, data, made, names)
    if first is None:
        return [], list(names)
    filled: list[tuple[str, str]] = []
    stops: list[str] = []

    def follow(some: tuple[str, ...]) -> None:
        found = _loaded(asking, data, (first, *(name for name in some if name != first)))
        if found is not None:
            filled.extend(pair for pair in found if pair[0] in some)
        elif len(some) > 1:
            follow(some[: len(some) // 2])
            follow(some[len(some) // 2 :])
        else:
            stops.extend(some)

    follow(names)
    return filled, stops


def _first_followed(asking: _Asking, data: dict[str, Any], made: DraftModules, names: tuple[str, ...]) -> str | None:
    """A name of one of the class's own modules with which the loader can be followed."""
    own = set(names_for(module.path for module in made.modules))
    tried = (name for name in names if name in own and (layer_of(name) or 0) == 0)
    return next((name for name in tried if _loaded(asking, data, (name,)) is not None), None)


def _loaded(asking: _Asking, data: dict[str, Any], names: tuple[str, ...]) -> tuple[tuple[str, str], ...] | None:
    made = asking.made(data, names=names)
    return None if made is None else made.loaded


def _holds(asking: _Asking, found: Builds) -> bool:
    """Whether the source says the same of configs, depths, targets and names that it was not learned from."""
    random = Random(f"{asking.name} {asking.kind}")
    numbers = [7, 64, *(value for value in REFERENCE.values() if type(value) is int)]
    accepted = {key: answers for key, answers in found.accepts if answers}
    for _ in range(_TESTS):
        config: Config = {}
        for key in random.sample([*accepted], min(len(accepted), random.randint(0, 8))):
            answer = random.choice(accepted[key])
            config[key] = (answer, random.choice(numbers) if answer == "number" else _value(key, answer))
        for key, groups in found.switches:
            answer = random.choice(random.choice(groups))
            config[key] = (answer, _value(key, answer))
        data = asking.config(config, random.choice((1, 1, 2, 3)))
        depth = data[DEPTH_KEY]
        names = tuple(name for name in asking.names if (layer_of(name) or 0) < depth)
        names = tuple(random.sample(names, min(len(names), random.randint(1, 9))))
        told = modules_for("", found, data, names)
        if told is not None and _plain(told) != _plain(asking.made(data, random.randrange(len(_TARGETS)), names)):
            return False
    return True


def _plain(made: DraftModules | None) -> DraftModules | None:
    """What is told, the paths as the source has them."""
    if made is None:
        return None
    modules = tuple(replace(module, file=module.file.removeprefix(": ")) for module in made.modules)
    loader = (made.loader[0].removeprefix(": "), made.loader[1])
    return replace(made, engine="", modules=modules, loader=loader)
