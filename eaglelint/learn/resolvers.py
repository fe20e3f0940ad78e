"""Where an engine looks for ids in a draft's config: its resolver is asked about many configs.

What a resolver makes of a config depends only on the keys that it asks for; these are noted while it is interpreted.
So configs are tried that differ in these keys, each ids key with a list of its own, until no other key is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from eaglelint.artifacts.draft_kinds import IDS_KEYS
from eaglelint.artifacts.target import TargetConfig
from eaglelint.engines.base import DraftReads, config_object
from eaglelint.engines.profile import KeyNode, Leaf, Profile, Resolver
from eaglelint.engines.recall import resolve
from eaglelint.recursion import deep_recursion
from eaglelint.serving import EngineHandle
from eaglelint.source.machine import BudgetExceeded, Machine, Raised
from eaglelint.source.stubs import load_stubs
from eaglelint.source.tree import Binding

__all__ = ["NodeTable", "NotedText", "Reference", "learn_resolver", "resolves_alike"]

Key = tuple[str, ...]
Fixed = dict[Key, tuple[str, Any]]
"""Values of a config under trial: for each key path what a profile calls the value, and the value."""

DEPTH = 200
"""Layers of the target, so many that every ids key has a list of its own that is shifted into no other."""
_MOST_RUNS = 1_500
_TESTS = 60
_KINDS = ("eagle3", "peagle", "dflash", "domino", "dspark", "eagle", "mtp")


@dataclass(frozen=True, slots=True)
class Reference:
    """A target class of which it is known what its setter stores: ids plus ``shift``."""

    binding: Binding
    shift: int


class NotedText(str):
    """A text that notes what it is compared with."""

    __slots__ = ("log",)
    log: list[str]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            self.log.append(str(other))
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


@dataclass(slots=True)
class NodeTable:
    """The nodes of all resolvers of an engine; equal ones are one."""

    nodes: list[Leaf | KeyNode] = field(default_factory=list)

    def add(self, node: Leaf | KeyNode) -> int:
        if node not in self.nodes:
            self.nodes.append(node)
        return self.nodes.index(node)


@dataclass(slots=True)
class _Resolver:
    """One engine's resolver for a kind of draft, asked about configs."""

    handle: EngineHandle
    reference: Reference
    kind: str
    compared: dict[Key, list[str]] = field(default_factory=dict)
    lists: dict[Key, list[int]] = field(default_factory=dict)
    runs: int = 0
    default: Any = None
    told: dict[str, tuple[Leaf, list[Key]]] = field(default_factory=dict)

    def marked(self, key: Key) -> list[int]:
        """The list that stands at this key path and nowhere else."""
        if key not in self.lists:
            first = 5 + 10 * len(self.lists)
            self.lists[key] = [first, first + 2, first + 3]
        return list(self.lists[key])

    def ask(self, data: dict[str, Any] | None) -> tuple[Leaf, list[Key]]:
        """What it makes of a config, and the keys it asked for; None asks for the setter's own list."""
        config = repr(data)
        if config not in self.told:
            self.told[config] = self._run(data)
        return self.told[config]

    def course(self, fixed: Fixed) -> Leaf:
        """The outcome, whatever the reason of an unknown one."""
        return _plain(self.ask(_config(fixed))[0])

    def _run(self, data: dict[str, Any] | None) -> tuple[Leaf, list[Key]]:
        self.runs += 1
        engine, source = self.handle.engine, self.handle.source
        machine = Machine(source.tree, stubs=load_stubs(engine.name), num_layers=DEPTH)
        asked: list[Key] = []
        stored: list[list[int]] = []

        def run() -> bool:
            reads = DraftReads()
            engine.prepare(machine, source, self.kind)
            target = config_object(machine, TargetConfig.synthetic(DEPTH).data)
            model = engine.build_model(machine, self.reference.binding, target)
            draft = None if data is None else config_object(machine, data, reads=reads)
            try:
                captures = engine.configure(machine, source, model, self.kind, draft, None)
            finally:
                asked.extend(key for key in reads.asked if key not in asked)
            stored.extend(list(e.value) for e in machine.events if e.kind == "set" and "layer" in e.name)
            return captures

        try:
            with deep_recursion():
                outcomes = machine.explore(run, None)
        except (BudgetExceeded, RecursionError) as error:
            return Leaf("unknown", reason=f"the interpretation stopped: {error}"), asked
        returned = [outcome for outcome in outcomes if outcome.raised is None]
        if len(outcomes) != 1 and returned:
            return Leaf("unknown", reason="it depends on more than the draft's config"), asked
        return self._leaf(outcomes[0].raised, outcomes[0].value, stored[-1] if stored else None, data is None), asked

    def _leaf(self, raised: Raised | None, captures: Any, stored: list[int] | None, asks_default: bool) -> Leaf:
        ended = stored if raised is None else (raised.kind, str(raised.site))
        if raised is None and captures is False:
            return Leaf("none")
        if asks_default:
            self.default = ended
            return Leaf("default")
        if ended == self.default:
            return Leaf("default")
        if raised is not None:
            where = f" at {raised.site}" if raised.site is not None else ""
            return Leaf("unknown", reason=f"the interpretation ended in {raised.kind}{where}")
        if stored == []:
            return Leaf("unknown", reason="the list of ids in the draft's config is empty")
        for key, marked in self.lists.items():
            for shift in (0, 1, -1):
                if stored is not None and sorted(stored) == [v + shift + self.reference.shift for v in marked]:
                    return Leaf("ids", key, shift)
        return Leaf("unknown", reason="the engine computes ids from other values of the draft's config")


def _plain(leaf: Leaf) -> Leaf:
    return Leaf("unknown") if leaf.takes == "unknown" else leaf


def learn_resolver(handle: EngineHandle, reference: Reference, kind: str, table: NodeTable) -> Resolver:
    """Learn the resolver of a kind of draft, its nodes into the table."""
    asking = _Resolver(handle, reference, kind)
    asking.ask(None)
    asked = _asked(asking)
    deciding, accepts = _sorted_out(asking, asked)
    built: dict[tuple[tuple[Key, str], ...], int] = {}

    def build(fixed: Fixed) -> int:
        state = tuple((key, answer) for key, (answer, _) in fixed.items())
        if state in built:
            return built[state]
        if asking.runs > _MOST_RUNS:
            return table.add(Leaf("unknown", reason="its resolver asks for more than could be tried"))
        leaf, keys = asking.ask(_config(fixed))
        following = next((key for key in keys if key in deciding and key not in fixed), None)
        if following is None:
            built[state] = table.add(leaf)
            return built[state]
        answers: dict[str, int] = {}
        alike: dict[Any, int] = {}  # answers after which the resolver goes on alike, and asks for the same
        for answer, value in deciding[following].items():
            inner = {**fixed, following: (answer, value)}
            more = [key for key in asking.ask(_config(inner))[1] if key in deciding and key not in inner]
            course = (asking.course(inner), tuple(more), answer in ("ids", "section") and answer)
            if course not in alike:
                alike[course] = build(inner)
            answers[answer] = alike[course]
        usual = answers.get("text")
        answers = {a: node for a, node in answers.items() if not (a.startswith("text ") and node == usual)}
        targets = set(answers.values())
        built[state] = targets.pop() if len(targets) == 1 else table.add(KeyNode(following, answers))
        return built[state]

    resolver = Resolver(build({}), tuple(accepts.items()))
    return (
        resolver
        if _tested(asking, resolver, table, {**accepts, **{k: tuple(v) for k, v in deciding.items()}})
        else Resolver(table.add(Leaf("unknown", reason="what its resolver does fits no tree of questions")))
    )


def resolves_alike(handle: EngineHandle, reference: Reference, kind: str, resolver: Resolver, table: NodeTable) -> bool:
    """Whether the resolver that was learned for another kind tells what this kind's makes of many configs."""
    asking = _Resolver(handle, reference, kind)
    asking.ask(None)
    asked = _asked(asking)
    return _tested(asking, resolver, table, {key: [*_answers(asking, key)] for key in asked}, strictly=True)


def _asked(asking: _Resolver) -> dict[Key, Fixed]:
    """All keys that it may ask for, each with a config that makes it ask."""
    found: dict[Key, Fixed] = {}
    pending: list[Fixed] = [{}]
    while pending and asking.runs < _MOST_RUNS:
        fixed = pending.pop(0)
        for key in asking.ask(_config(fixed))[1]:
            if key in found or key[-1].startswith(("get_", "_")):
                continue
            found[key] = fixed
            for answer, value in _answers(asking, key).items():
                if answer in ("ids", "section", "true") or answer.startswith("text"):
                    pending.append({**_parents(key), **fixed, key: (answer, value)})
    return found


def _parents(key: Key) -> Fixed:
    return {key[:depth]: ("section", {"unused": 1}) for depth in range(1, len(key))}


def _answers(asking: _Resolver, key: Key) -> dict[str, Any]:
    """The values of a key that are tried, by what a profile calls them."""
    if key[-1] in IDS_KEYS or (key[-1].endswith(("layer_ids", "layers")) and not key[-1].startswith("num")):
        return {"absent": None, "null": None, "ids": asking.marked(key), "empty": []}
    if key[-1].endswith("_config"):
        return {"absent": None, "null": None, "section": {"unused": 1}, "empty section": {}}
    text = NotedText("x")
    text.log = asking.compared.setdefault(key, [])
    values: dict[str, Any] = {
        "absent": None,
        "null": None,
        "false": False,
        "true": True,
        "zero": 0,
        "number": 7,
        "text": text,
    }
    if key[-1].endswith("_type"):
        values |= {f"text {kind}": kind for kind in _KINDS}
    return {**values, "list": [text]}


def _sorted_out(
    asking: _Resolver, asked: dict[Key, Fixed]
) -> tuple[dict[Key, dict[str, Any]], dict[Key, tuple[str, ...]]]:
    """The keys whose values decide on the outcome, with the values to try; and values of others that change nothing."""
    deciding = {}
    accepts = {}
    contexts: list[Fixed] = [{}]
    for key, origin in asked.items():
        answers = _answers(asking, key)
        if "ids" in answers:
            contexts.append({**origin, **_parents(key), key: ("ids", answers["ids"])})
        if "ids" in answers or "section" in answers:
            deciding[key] = answers
    for key, origin in asked.items():
        if key in deciding:
            continue
        around = [{**origin, **_parents(key), **context} for context in contexts]
        before = [asking.course(context) for context in around]
        answers = _answers(asking, key)
        outcomes = {a: [asking.course({**c, key: (a, value)}) for c in around] for a, value in answers.items()}
        for text in dict.fromkeys(asking.compared[key]):
            if text != "x" and f"text {text}" not in answers:
                answers[f"text {text}"] = text
                outcomes[f"text {text}"] = [asking.course({**c, key: ("text", text)}) for c in around]
        if any(
            after != usual and after.takes != "unknown"
            for leaves in outcomes.values()
            for after, usual in zip(leaves, before, strict=True)
        ):
            deciding[key] = answers
        elif any(leaves != before for leaves in outcomes.values()):
            accepts[key] = tuple(answer for answer, leaves in outcomes.items() if leaves == before)
    return deciding, accepts


def _tested(
    asking: _Resolver,
    resolver: Resolver,
    table: NodeTable,
    values: dict[Key, Iterable[str]],
    *,
    strictly: bool = False,
) -> bool:
    """Whether the tree says what the source says for configs that it was not made from, or strictly neither more."""
    random = Random(asking.kind)
    profile = Profile("", None, (), {}, {asking.kind: resolver}, tuple(table.nodes))
    for _ in range(_TESTS):
        fixed: Fixed = {}
        for key in random.sample([*values], min(len(values), random.randint(0, 6))):
            answer = random.choice([*values[key]])
            fixed |= {**_parents(key), key: (answer, _answers(asking, key).get(answer, answer.removeprefix("text ")))}
        data = _config(fixed)
        told = resolve(profile, asking.kind, data)
        if (strictly or told.takes != "unknown") and _plain(told) != _plain(asking.ask(data)[0]):
            return False
    return True


def _config(fixed: Fixed) -> dict[str, Any]:
    """A draft's config with these values."""
    data: dict[str, Any] = {}
    for key, (answer, value) in sorted(fixed.items(), key=lambda item: len(item[0])):
        if answer == "absent":
            continue
        section: Any = data
        for part in key[:-1]:
            section = section.get(part) if isinstance(section, dict) else None
        if isinstance(section, dict):
            section[key[-1]] = dict(value) if isinstance(value, dict) else value
    return data
