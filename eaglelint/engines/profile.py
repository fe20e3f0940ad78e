"""What was learned from one release of an engine: how each target class and draft kind turns ids into hidden states.

A profile is made by ``eaglelint engines learn`` and never typed by hand. It holds no code, only what the code was seen
to do: conditions and shifts, which boundaries are captured and in which form, and the lines that this rests on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from typing import Literal

from eaglelint.engines.formula import IdsCondition
from eaglelint.engines.profile_drafts import Builds, DraftFacts
from eaglelint.wiring import Form, Status

__all__ = [
    "ANY_TARGET",
    "PLACES",
    "CaptureRule",
    "Case",
    "Conditional",
    "KeyNode",
    "Leaf",
    "Mapping",
    "Outcome",
    "Place",
    "Profile",
    "Resolver",
    "Stop",
    "TargetClass",
    "place_of",
]

ANY_TARGET = "any target"
"""The class of a profile that was read by hand: the engine's code is the same for all of its targets."""

Place = Literal["below", "embedding", "inner", "last", "above"]
PLACES: tuple[Place, ...] = ("below", "embedding", "inner", "last", "above")
Repeats = Literal["kept", "dropped", "stops", "unlearned"]


def place_of(boundary: int, num_layers: int) -> Place:
    """Where a boundary lies: h[0] and h[N] are captured, or not, in ways of their own."""
    if boundary <= 0:
        return "below" if boundary else "embedding"
    if boundary >= num_layers:
        return "above" if boundary > num_layers else "last"
    return "inner"


@dataclass(frozen=True, slots=True)
class Stop:
    """An exception that the interpretation ends in.

    ``certain`` where the engine itself would; ``setting`` where its setter raises it for these ids.
    """

    kind: str
    message: str
    site: int | None = None
    certain: bool = False
    setting: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an id at one place of the depth brings: a state in some form, nothing (lost), or an exception.

    Attributes:
        form: A slot's form; ``unlearned`` where no rule explained what was seen.
        captured: The sites that hand the state over and capture it, as indices into the class's ``sites``.
        reason: Why the slot is unknown.
        fault: What stops the code there, and the site.
        stop: The exception, for ``stops``.
    """

    form: Form | Literal["lost", "stops", "unlearned"]
    captured: tuple[int, ...] = ()
    reason: str | None = None
    fault: tuple[str, int | None] | None = None
    stop: Stop | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """Ids that meet the condition mean the boundaries ``id + shift``; the first case that holds counts."""

    shift: int
    when: IdsCondition | None = None


@dataclass(frozen=True, slots=True)
class Conditional:
    """A circumstance under which the wiring is another one.

    ``{slots}`` in the text stands for a list of all slots, ``{layers}`` for the target's depth. ``forms`` are those of
    the other wiring, place by place, None where the text says all.
    """

    text: str
    forms: MappingOf[Place, Form] | None = None


@dataclass(frozen=True, slots=True)
class CaptureRule:
    """How ids become slots.

    Attributes:
        default: The boundaries of the engine's own list, as formulas in N; None where there is no such list.
        no_default: What happens then.
        cases: What explicit ids mean; empty where that could not be learned.
        order: Whether slots come in the order of the layers or of the list.
        repeats: What becomes of a boundary that is asked for twice.
        repeats_stop: The exception that repeated ids end in.
        no_ids: The exception that any explicit ids end in, where the engine takes none.
        outcomes: What each place of the depth brings.
        set_by: Sites of the setter; ``set_name`` the attribute it fills, ``set_shift`` what it stores more than the
            boundary, ``set_sorted`` whether it stores a set. Without a shift what it stores is not said.
        joined: Site of the concatenation.
        from_layers: The smallest depth for which the rule was verified.
    """

    default: tuple[str, ...] | None
    no_default: Stop | str | None
    cases: tuple[Case, ...]
    order: Literal["layers", "list"]
    repeats: Repeats
    outcomes: MappingOf[Place, Outcome]
    repeats_stop: Stop | None = None
    set_by: tuple[int, ...] = ()
    set_name: str = ""
    set_shift: int | None = None
    set_sorted: bool = False
    joined: tuple[int, ...] = ()
    from_layers: int = 1
    no_ids: Stop | None = None


@dataclass(frozen=True, slots=True)
class Mapping:
    """One target class's answer for a kind of draft; classes that differ in nothing but lines share one.

    In texts ``{0}`` stands for a line among the class's ``sites``, ``{class}`` for its name.
    ``rule`` is None where the answer is unknown: ``reason`` says why, ``stop`` which exception it is.
    """

    status: Status
    rule: CaptureRule | None = None
    reason: str | None = None
    stop: Stop | None = None
    conditions: tuple[Conditional, ...] = ()
    assumptions: tuple[str, ...] = ()
    summaries: int = 0

    def sites(self) -> Iterator[int]:
        """The indices into a class's ``sites`` that this mapping uses."""
        stops: list[Stop | str | None] = [self.stop]
        texts = [self.reason, *(condition.text for condition in self.conditions)]
        if self.rule is not None:
            stops += [self.rule.no_default, self.rule.repeats_stop, self.rule.no_ids]
            yield from (*self.rule.set_by, *self.rule.joined)
            for outcome in self.rule.outcomes.values():
                stops.append(outcome.stop)
                yield from outcome.captured
                if outcome.fault is not None and outcome.fault[1] is not None:
                    yield outcome.fault[1]
                texts.append(outcome.reason)
        texts += [stop.message if isinstance(stop, Stop) else stop for stop in stops]
        for text in texts:
            yield from (int(index) for index in re.findall(r"\{(\d+)\}", text or ""))
        yield from (stop.site for stop in stops if isinstance(stop, Stop) and stop.site is not None)


@dataclass(frozen=True, slots=True)
class TargetClass:
    """A target class: for each kind of draft the index of its mapping and the sites, ``path:line``, it refers to."""

    name: str
    mappings: MappingOf[str, tuple[int, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Leaf:
    """What a resolver makes of a draft's config.

    ``ids``: the list at ``source``, each id plus ``shift``; ``default``: the engine's own list; ``none``: no states are
    captured; ``unknown``: ``reason`` says why.
    """

    takes: Literal["ids", "default", "none", "unknown"]
    source: tuple[str, ...] = ()
    shift: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class KeyNode:
    """A question a resolver asks of a draft's config: what is at a key path. The answers lead to other nodes."""

    key: tuple[str, ...]
    answers: MappingOf[str, int]
    otherwise: int | None = None


@dataclass(frozen=True, slots=True)
class Resolver:
    """How the ids of one kind of draft are looked up in its config.

    Attributes:
        root: The node with which it begins.
        accepts: Further keys that the engine reads, with the answers that were seen to change nothing. A config with
            another answer is not one that was learned. Keys that are in neither place change nothing.
    """

    root: int
    accepts: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """One release of an engine.

    Attributes:
        resolvers: For each kind of draft how its ids are looked up, by ``nodes``, which they share.
        aliases: Architectures that the engine serves with a class of another name.
        without_capture: Architectures that the engine serves and that capture nothing for a draft.
        drafts: The classes of drafts that the engine registers, by the names under which it does; empty where that was
            not learned.
        builds: What those classes build and load.
        names: The names of a checkpoint's modules that their loaders were tried with, ``{i}`` for a layer's number.
        registered: The other architectures that it registers, or exchanges for one that it does.
        prefixes: What it puts before a draft's architecture, to look for that name too.
        sources: How many source files the answers rest on, and a hash over them.
        by_hand: What a person read, and where, for an engine whose source eaglelint does not interpret; such a profile
            has one class, ``any target``.
    """

    engine: str
    version: str | None
    mappings: tuple[Mapping, ...]
    classes: MappingOf[str, TargetClass]
    resolvers: MappingOf[str, Resolver] = field(default_factory=dict)
    nodes: tuple[Leaf | KeyNode, ...] = ()
    aliases: MappingOf[str, str] = field(default_factory=dict)
    without_capture: tuple[str, ...] = ()
    drafts: MappingOf[str, DraftFacts] = field(default_factory=dict)
    builds: tuple[Builds, ...] = ()
    names: tuple[str, ...] = ()
    registered: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    sources: tuple[int, str] = (0, "")
    by_hand: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.engine} {self.version}" if self.version else self.engine

    def counts(self, kind: str) -> Counter[str]:
        """How many target classes are exact, conditional and unknown for a kind of draft."""
        found = (cls.mappings[kind][0] for cls in self.classes.values() if kind in cls.mappings)
        return Counter(self.mappings[index].status for index in found)
