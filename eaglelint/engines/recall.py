"""Wirings from a profile: what was learned from a release's source, applied to a target's depth and a draft's ids."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eaglelint.engines.formula import depth_formula
from eaglelint.engines.profile import (
    ANY_TARGET,
    CaptureRule,
    Conditional,
    KeyNode,
    Leaf,
    Outcome,
    Profile,
    Stop,
    place_of,
)
from eaglelint.engines.profile import Mapping as Learned
from eaglelint.engines.profile_drafts import ABSENT, value_at
from eaglelint.wiring import Condition, Evidence, Fault, LayerIds, Slot, Wiring

__all__ = ["Served", "answer_of", "apply", "class_in", "names_asked", "recall", "registers", "resolve", "takes_ids_at"]

_UNLEARNED = "the profile does not tell: {what} could not be learned from the source. Check against the source itself"


@dataclass(frozen=True, slots=True)
class Served:
    """What a rule makes of ids: the slots, each with its boundary and outcome, or the exception it ends in."""

    slots: tuple[tuple[int, Outcome], ...] = ()
    boundaries: tuple[int, ...] = ()
    stop: Stop | None = None
    unlearned: str | None = None


def apply(rule: CaptureRule, ids: Sequence[int] | None, num_layers: int) -> Served:
    """What the rule makes of explicit ids, or of the engine's own list where ``ids`` is None."""
    if num_layers < rule.from_layers:
        return Served(unlearned=f"a target of fewer than {rule.from_layers} layers")
    if ids is None:
        if rule.default is None:
            stop = rule.no_default
            return Served(stop=stop) if isinstance(stop, Stop) else Served(unlearned=stop or "the default list")
        boundaries = tuple(depth_formula(text)(num_layers) for text in rule.default)
    elif rule.no_ids is not None:
        return Served(stop=rule.no_ids)
    else:
        case = next(
            (case for case in rule.cases if case.when is None or (ids and case.when.holds(ids, num_layers))), None
        )
        if case is None or not ids:
            return Served(unlearned="what these ids mean" if ids else "what an empty list means")
        boundaries = tuple(value + case.shift for value in ids)
    outcomes = [(boundary, rule.outcomes[place_of(boundary, num_layers)]) for boundary in boundaries]
    repeated = len(set(boundaries)) < len(boundaries)
    if repeated and rule.repeats == "unlearned":
        return Served(unlearned="what becomes of a repeated id")
    for _, outcome in outcomes:
        if outcome.form == "unlearned":
            return Served(unlearned=outcome.reason or "an id at the edge of the model")
    stops = [outcome.stop or Stop("Exception", "") for _, outcome in outcomes if outcome.form == "stops"]
    if repeated and rule.repeats == "stops":
        stops.append(rule.repeats_stop or Stop("Exception", ""))
    if stops:
        return Served(boundaries=boundaries, stop=next((stop for stop in stops if stop.setting), stops[0]))
    found = [(boundary, outcome) for boundary, outcome in outcomes if outcome.form != "lost"]
    if rule.order == "layers":
        found.sort(key=lambda item: item[0])
    if rule.repeats == "dropped":
        found = list({boundary: (boundary, outcome) for boundary, outcome in found}.values())
    return Served(tuple(found), boundaries)


def answer_of(data: Mapping[str, Any], key: Sequence[str]) -> str:
    """Which of a key node's answers the value at a key path of a draft's config is."""
    match value := value_at(data, key):
        case _ if value is ABSENT:
            return "absent"
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "number" if value else "zero"
        case str():
            return f"text {value}"
        case list() if value and all(type(item) is int for item in value):
            return "ids"
        case list():
            return "list" if value else "empty"
        case Mapping():
            return "section" if value else "empty section"
    return "something else"


def resolve(profile: Profile, kind: str, data: Mapping[str, Any]) -> Leaf:
    """What the engine's resolver makes of a draft's config."""
    resolver = profile.resolvers.get(kind)
    if resolver is None:
        return Leaf("unknown", reason=_UNLEARNED.format(what=f"where the ids of {kind} drafts are looked for"))
    node = profile.nodes[resolver.root]
    while isinstance(node, KeyNode):
        target = _chosen(node.answers, answer_of(data, node.key), node.otherwise)
        if target is None:
            return _unforeseen(node.key)
        node = profile.nodes[target]
    for key, answers in resolver.accepts:
        if _chosen(dict.fromkeys(answers, 0), answer_of(data, key), None) is None:
            return _unforeseen(key)
    return node


def _chosen(answers: Mapping[str, int], answer: str, otherwise: int | None) -> int | None:
    """Where an answer leads; a text that has no answer of its own is any text."""
    found = answers.get(answer)
    if found is None and answer.startswith("text "):
        found = answers.get("text")
    return otherwise if found is None else found


def _unforeseen(key: tuple[str, ...]) -> Leaf:
    return Leaf("unknown", reason=_UNLEARNED.format(what=f"what the engine makes of {'.'.join(key)} in this config"))


def takes_ids_at(profile: Profile, kind: str, data: Mapping[str, Any], place: tuple[str, ...]) -> bool:
    """Whether the engine takes ids that stand at this key path of a draft's config, and only there."""
    if not any(isinstance(node, Leaf) and node.source == place for node in profile.nodes):
        return False  # it takes none from there, whatever else a config says
    marked = _without_ids(data)
    section = marked
    for key in place[:-1]:
        inner = section.get(key)
        section[key] = dict(inner) if isinstance(inner, Mapping) else {}
        section = section[key]
    section[place[-1]] = [1, 2, 4]
    leaf = resolve(profile, kind, marked)
    return leaf.takes == "ids" and leaf.source == place


def _without_ids(data: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a config without its lists of integers."""
    return {
        key: _without_ids(value) if isinstance(value, Mapping) else value
        for key, value in data.items()
        if not (isinstance(value, list) and all(isinstance(item, int) for item in value))
    }


def class_in(profile: Profile, name: str) -> str | None:
    """The class that serves an architecture, under the name that :func:`recall` knows; None where there is none."""
    if profile.by_hand:
        return ANY_TARGET
    name = profile.aliases.get(name, name)
    return name if name in profile.classes or name in profile.without_capture else None


def names_asked(profile: Profile, architectures: Sequence[str]) -> tuple[str, ...]:
    """The names under which the registry is asked for a draft with these architectures, their own first."""
    return (*architectures, *(prefix + name for name in architectures for prefix in profile.prefixes))


def registers(profile: Profile, name: str) -> bool:
    """Whether the release registers an architecture of exactly this name."""
    return name in profile.drafts or name in profile.registered


def recall(
    profile: Profile,
    name: str,
    kind: str,
    num_layers: int,
    *,
    draft_data: Mapping[str, Any] | None = None,
    layer_ids: LayerIds = "default",
) -> Wiring:
    """The wiring of one target class as its source would give it; never more certain than that."""
    blank = Wiring(
        party="serving",
        name=f"{profile.label} ({name})",
        slots=(),
        status="unknown",
        engine=profile.engine,
        engine_version=profile.version,
        target_class=name,
        draft_kind=kind,
        layer_ids=layer_ids,
        num_layers=num_layers,
    )
    cls = profile.classes.get(name)
    if profile.by_hand and (cls is None or kind not in cls.mappings):
        return replace(blank, reason=f"what {profile.label} feeds {kind} drafts was not read")
    if cls is None or kind not in cls.mappings:
        message = f"{name} has no method to take the layer ids of {kind} drafts"
        return replace(
            blank, reason=f"it would stop with NoSetter: {message}", faults=(Fault(f"NoSetter: {message}", "", 1),)
        )
    index, sites = cls.mappings[kind]
    ids: tuple[int, ...] | None = layer_ids if isinstance(layer_ids, tuple) else None
    if draft_data is not None:
        leaf = resolve(profile, kind, draft_data)
        if leaf.takes == "ids":
            written = tuple(value_at(draft_data, leaf.source))
            blank = replace(blank, layer_ids=written, ids_from=leaf.source)
            ids = tuple(value + leaf.shift for value in written)
        elif leaf.takes != "default":
            reason = "the engine captures no auxiliary states for this config" if leaf.takes == "none" else leaf.reason
            return replace(blank, layer_ids="default", reason=reason)
        else:
            blank, ids = replace(blank, layer_ids="default"), None
    return _wiring(profile, profile.mappings[index], sites, blank, ids)


def _wiring(
    profile: Profile, mapping: Learned, sites: tuple[str, ...], blank: Wiring, ids: tuple[int, ...] | None
) -> Wiring:
    places = _Places(profile.label, sites)
    if mapping.rule is None:
        return (
            _stopped(blank, mapping.stop, places)
            if mapping.stop
            else replace(blank, reason=places.text(mapping.reason or ""))
        )
    assert blank.num_layers is not None
    served = apply(mapping.rule, ids, blank.num_layers)
    if served.unlearned is not None:
        return replace(blank, reason=_UNLEARNED.replace("{what}", places.text(served.unlearned)))
    if served.stop is not None:
        return _stopped(blank, served.stop, places)
    slots = tuple(
        Slot("unknown") if outcome.form == "unknown" else Slot(outcome.form, boundary)  # type: ignore[arg-type]
        for boundary, outcome in served.slots
    )
    reasons = [places.text(outcome.reason) for _, outcome in served.slots if outcome.reason is not None]
    if not slots:
        reasons.append("no captured state was found")
    return replace(
        blank,
        slots=slots,
        status=mapping.status if slots and all(slot.known for slot in slots) else "unknown",
        conditions=tuple(
            _condition(condition, served, slots, blank.num_layers, places) for condition in mapping.conditions
        ),
        assumptions=mapping.assumptions,
        reason="; ".join(dict.fromkeys(reasons)) or None,
        summaries=mapping.summaries,
        evidence=tuple(_evidence(mapping.rule, served, places)),
        faults=tuple(
            Fault(outcome.fault[0], *places.at(outcome.fault[1]), None, boundary)
            for boundary, outcome in served.slots
            if outcome.fault is not None
        ),
    )


@dataclass(frozen=True, slots=True)
class _Places:
    """The lines of a class, as they are shown: ``sglang 0.5.9: srt/models/llama.py`` and the line."""

    label: str
    sites: tuple[str, ...]

    def at(self, site: int | None) -> tuple[str, int]:
        if site is None:
            return "", 1
        path, _, line = self.sites[site].rpartition(":")
        return f"{self.label}: {path}", int(line)

    def text(self, text: str) -> str:
        """A text with its lines, relative to the package."""
        return re.sub(r"\{(\d+)\}", lambda found: self.sites[int(found.group(1))], text)


def _stopped(blank: Wiring, stop: Stop, places: _Places) -> Wiring:
    path, line = places.at(stop.site)
    where = f" at {path}:{line}" if path else ""
    what = "it would stop with" if stop.certain else "the interpretation ended in"
    message = places.text(stop.message.replace("{class}", blank.target_class or ""))
    return replace(
        blank,
        reason=f"{what} {stop.kind}{where}: {message}",
        faults=(Fault(f"{stop.kind}: {message}", path, line),) if stop.setting else (),
        evidence=(Evidence(path, line, f"raises {stop.kind}: {message}"),) if path else (),
    )


def _condition(
    condition: Conditional, served: Served, slots: tuple[Slot, ...], num_layers: int, places: _Places
) -> Condition:
    text = places.text(condition.text).replace("{layers}", str(num_layers))
    text = text.replace("{slots}", ", ".join(f"slot {index}" for index in range(len(slots))))
    if condition.forms is None:
        return Condition(text)
    other = ((condition.forms.get(place_of(boundary, num_layers), "unknown"), boundary) for boundary, _ in served.slots)
    return Condition(text, tuple(Slot(form, None if form == "unknown" else boundary) for form, boundary in other))


def _evidence(rule: CaptureRule, served: Served, places: _Places) -> Iterator[Evidence]:
    if rule.set_by:
        note = f"{rule.set_name} is set"
        if rule.set_shift is not None:
            stored = [boundary + rule.set_shift for boundary in served.boundaries]
            note = f"{rule.set_name} = {sorted(set(stored)) if rule.set_sorted else stored}"
        first, *others = rule.set_by
        yield Evidence(*places.at(first), note)
        yield from (Evidence(*places.at(site), "and handed over") for site in others)
    for slot, (_, outcome) in enumerate(served.slots):
        *hands, capture = outcome.captured or (None,)
        yield from (Evidence(*places.at(site), "hands the state over", slot) for site in hands)
        if capture is not None:
            yield Evidence(*places.at(capture), "captures the state", slot)
    yield from (Evidence(*places.at(site), "joins the states") for site in rule.joined)
