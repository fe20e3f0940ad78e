"""From answers to a rule: the smallest one that explains them; what it does not explain is left unlearned.

Each part of a rule is read off the questions that are about it alone. Then the whole is tested against every answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from eaglelint.engines.formula import IdsCondition, depth_formula
from eaglelint.engines.profile import PLACES, CaptureRule, Case, Conditional, Mapping, Outcome, Place, Stop, place_of
from eaglelint.engines.recall import apply
from eaglelint.learn.conditions import Comparisons
from eaglelint.learn.observe import BASE, DEPTH, DEPTHS, Observation, stop_of
from eaglelint.wiring import Evidence, Form, Slot, Wiring

__all__ = ["Sites", "agrees", "fitted", "learn_mapping"]

_UNLEARNED = Outcome("unlearned")
_SHIFTS = (0, 1, -1, 2)
_PLACE = re.compile(r"[\w./-]+\.py:\d+")


@dataclass(slots=True)
class Sites:
    """The lines of one class, in the order in which its mapping refers to them."""

    found: list[str] = field(default_factory=list)

    def index(self, place: str) -> int:
        if place not in self.found:
            self.found.append(place)
        return self.found.index(place)

    def generic(self, text: str) -> str:
        """A text in which lines are named by their index, so that classes that differ in them alone share a mapping."""
        return _PLACE.sub(lambda found: f"{{{self.index(found.group())}}}", text)

    def stop(self, wiring: Wiring, name: str) -> Stop | None:
        """The exception that a wiring ends in."""
        found = stop_of(wiring)
        if found is None:
            return None
        kind, message, place = found
        if message.startswith(f"{kind}("):
            message = "the engine raises it itself"  # the source's own statement stays in the source
        site = None if place is None else self.index(place)
        certain = (wiring.reason or "").startswith("it would stop")
        return Stop(kind, self.generic(message.replace(name, "{class}")), site, certain, bool(wiring.faults))


def learn_mapping(
    observations: Sequence[Observation], numbers: Comparisons, name: str
) -> tuple[Mapping, tuple[str, ...]]:
    """The mapping that explains all observations, and its lines; an unknown one, with the reason, where none does."""
    sites = Sites()
    answers = {(seen.num_layers, seen.ids): seen for seen in observations}
    base = answers[DEPTH, BASE]
    if stop_of(base.wiring) is not None and (DEPTH, None) in answers:
        base = answers[DEPTH, None]  # an engine that takes no ids, only its own list
    if not base.wiring.slots or any(not slot.known for slot in base.wiring.slots):
        reference = answers[DEPTH, BASE].wiring
        stop = sites.stop(reference, name)
        reason = None if stop is not None else sites.generic(reference.reason or "no state is known")
        return Mapping("unknown", None, reason, stop), tuple(sites.found)
    rule = _rule(answers, numbers, name, sites) if base.ids is not None else _own_list(answers, name, sites)
    if rule is None:
        return Mapping("unknown", None, f"what it makes of ids like {list(BASE)} fits no rule"), ()
    for seen in observations:
        fitting = fitted(rule, base.wiring, seen)
        if fitting is None:
            ids = "the default list" if seen.ids is None else f"ids {list(seen.ids)}"
            return Mapping("unknown", None, f"what it makes of {ids} for {seen.num_layers} layers fits no rule"), ()
        rule = fitting
    wiring = base.wiring
    mapping = Mapping(
        wiring.status,
        rule,
        conditions=tuple(
            _conditional(sites.generic(condition.text), condition.slots, wiring) for condition in wiring.conditions
        ),
        assumptions=wiring.assumptions,
        summaries=wiring.summaries,
    )
    return mapping, tuple(sites.found)


def fitted(rule: CaptureRule, base: Wiring, seen: Observation) -> CaptureRule | None:
    """The rule, if need be without what it says of ids at the edges of the depth; None where it still does not fit."""
    if agrees(rule, base, seen):
        return rule
    boundaries = apply(rule, seen.ids, seen.num_layers).boundaries if seen.ids is not None else ()
    odd = {place for boundary in boundaries if (place := place_of(boundary, seen.num_layers)) != "inner"}
    narrower = replace(rule, outcomes={**rule.outcomes, **dict.fromkeys(odd, _UNLEARNED)})
    return narrower if odd and agrees(narrower, base, seen) else None


def agrees(rule: CaptureRule, base: Wiring, seen: Observation) -> bool:
    """Whether a rule says what was seen, or says that it does not know."""
    served = apply(rule, seen.ids, seen.num_layers)
    if served.unlearned is not None:
        return True
    wiring = seen.wiring
    if served.stop is not None:
        found = stop_of(wiring)
        return found is not None and (found[0], bool(wiring.faults)) == (served.stop.kind, served.stop.setting)
    slots = tuple(
        Slot("unknown") if outcome.form == "unknown" else Slot(outcome.form, boundary)  # type: ignore[arg-type]
        for boundary, outcome in served.slots
    )
    if not slots and wiring.status == "unknown" and not any(slot.known for slot in wiring.slots):
        return True  # nothing is claimed: whether nothing comes or something unknown is not told apart
    if slots != wiring.slots or (not slots and stop_of(wiring) is not None):
        return False
    known = bool(slots) and all(slot.known for slot in slots)
    faults = sum(outcome.fault is not None for _, outcome in served.slots)
    same_conditions = _generic(wiring) == _generic(base) or not slots
    return (wiring.status == (base.status if known else "unknown")) and faults == len(wiring.faults) and same_conditions


def _generic(wiring: Wiring) -> list[str]:
    return [_conditional(condition.text, None, wiring).text for condition in wiring.conditions]


def _conditional(text: str, other: tuple[Slot, ...] | None, wiring: Wiring) -> Conditional:
    """A condition with all that depends on the ids and on the depth taken out of it."""
    every = ", ".join(f"slot {index}" for index in range(len(wiring.slots)))
    forms: dict[Place, Form] | None = None
    if other is not None and [slot.boundary for slot in other] == [slot.boundary for slot in wiring.slots]:
        shapes = {slot.form for slot in other}
        forms = {"inner": shapes.pop()} if len(shapes) == 1 else None
    text = text.replace(every, "{slots}") if every else text
    return Conditional(re.sub(rf"(?<![\w.:{{-]){wiring.num_layers}(?![\w.}}])", "{layers}", text), forms)


# --- the parts of a rule -------------------------------------------------------------------------------------------


def _rule(
    answers: dict[tuple[int, tuple[int, ...] | None], Observation], numbers: Comparisons, name: str, sites: Sites
) -> CaptureRule | None:
    base = answers[DEPTH, BASE].wiring
    form = base.slots[0].form
    shift = (base.slots[0].boundary or 0) - BASE[0]
    if [(slot.form, slot.boundary) for slot in base.slots] != [(form, value + shift) for value in BASE]:
        return None
    cases = _cases(answers.values(), form, shift, numbers)
    if cases is None:
        return None
    set_by, captured, joined = _lines(base.evidence, sites)
    rule = CaptureRule(
        default=None,
        no_default=None,
        cases=cases,
        order="layers",
        repeats="unlearned",
        outcomes={place: _UNLEARNED for place in PLACES} | {"inner": Outcome(form, captured)},
        set_by=set_by,
        joined=joined,
    )
    rule = replace(rule, outcomes=_outcomes(rule, answers.values(), base, name, sites))
    rule = _order(rule, answers)
    rule = _repeats(rule, answers, name, sites)
    rule = _default(rule, answers, name, sites)
    return _stored(rule, answers)


def _own_list(
    answers: dict[tuple[int, tuple[int, ...] | None], Observation], name: str, sites: Sites
) -> CaptureRule | None:
    """The rule of an engine that takes no ids: its own list."""
    base = answers[DEPTH, None].wiring
    set_by, captured, joined = _lines(base.evidence, sites)
    rule = CaptureRule(
        default=None,
        no_default=None,
        cases=(),
        order="layers",
        repeats="unlearned",
        outcomes={place: _UNLEARNED for place in PLACES} | {"inner": Outcome(base.slots[0].form, captured)},
        set_by=set_by,
        joined=joined,
        no_ids=sites.stop(answers[DEPTH, BASE].wiring, name),
    )
    rule = _default(rule, answers, name, sites)
    return rule if rule.default is not None else None


def _shift_in(seen: Observation, form: Form) -> int | None:
    """By how much the ordinary ids of a list are shifted; None where the answer does not tell."""
    assert seen.ids is not None
    ordinary = [value for value in seen.ids if 2 <= value <= seen.num_layers - 3]
    got = {slot.boundary for slot in seen.wiring.slots if slot.form == form}
    fitting = [shift for shift in _SHIFTS if ordinary and all(value + shift in got for value in ordinary)]
    return fitting[0] if len(fitting) == 1 else None


def _cases(seen: Iterable[Observation], form: Form, shift: int, numbers: Comparisons) -> tuple[Case, ...] | None:
    """Which lists are shifted in another way, by the simplest condition that tells them apart."""
    told = [
        (item.ids, item.num_layers, found)
        for item in seen
        if item.ids is not None and (found := _shift_in(item, form)) is not None
    ]
    others = {found for _, _, found in told if found != shift}
    if not others:
        return (Case(shift),)
    if len(others) > 1:
        return None
    other = others.pop()
    for condition in _conditions(numbers):
        if all(condition.holds(ids, depth) == (found == other) for ids, depth, found in told):
            return Case(other, condition), Case(shift)
    return None


def _conditions(numbers: Comparisons) -> Iterator[IdsCondition]:
    bounds = ["N", "N-1", *dict.fromkeys([*map(str, numbers.ids), "0", "1"])]
    for bound in bounds:
        for test in ("==", ">=", "<"):
            yield from (IdsCondition(f"{of} {test} {bound}") for of in ("first", "max", "min", "last", "any"))
    yield from (IdsCondition(f"count {test} {count}") for test in ("==", "<", ">=") for count in range(2, 6))


def _outcomes(
    rule: CaptureRule, seen: Iterable[Observation], base: Wiring, name: str, sites: Sites
) -> dict[Place, Outcome]:
    """What each place of the depth brings, from the lists with one odd id."""
    outcomes: dict[Place, Outcome] = dict(rule.outcomes)
    for item in seen:
        odd = None if item.ids is None or item.num_layers != DEPTH else _odd(item.ids)
        if odd is None or item.ids is None:
            continue
        boundary = odd + _shift_of(rule, item.ids, item.num_layers)
        place = place_of(boundary, item.num_layers)
        if place == "inner" or outcomes[place] is not _UNLEARNED:
            continue
        outcomes[place] = _outcome(rule, item, boundary, base, name, sites)
    return outcomes


def _odd(ids: tuple[int, ...]) -> int | None:
    odd = [value for value in ids if value not in (3, 5)]
    return odd[0] if len(odd) == 1 and len(ids) == 3 and len(set(ids)) == 3 else None


def _shift_of(rule: CaptureRule, ids: tuple[int, ...], num_layers: int) -> int:
    return next(case.shift for case in rule.cases if case.when is None or case.when.holds(ids, num_layers))


def _outcome(rule: CaptureRule, item: Observation, boundary: int, base: Wiring, name: str, sites: Sites) -> Outcome:
    """What one odd boundary brought beside two ordinary ones."""
    assert item.ids is not None
    wiring = item.wiring
    stop = sites.stop(wiring, name)
    if stop is not None:
        return Outcome("stops", stop=stop)
    shift = _shift_of(rule, item.ids, item.num_layers)
    ordinary = {(rule.outcomes["inner"].form, value + shift) for value in (3, 5)}
    left = [(index, slot) for index, slot in enumerate(wiring.slots) if (slot.form, slot.boundary) not in ordinary]
    if len(wiring.slots) == 2 and not left:
        return Outcome("lost")
    if len(wiring.slots) != 3 or len(left) != 1:
        return _UNLEARNED
    ((index, slot),) = left
    captured = tuple(sites.index(str(line)) for line in wiring.evidence if line.slot == index)
    if slot.known and _generic(wiring) != _generic(base):
        return _UNLEARNED  # there it holds under conditions of its own
    if slot.known:
        return Outcome(slot.form, captured) if slot.boundary == boundary else _UNLEARNED
    if len(wiring.faults) > 1:
        return _UNLEARNED
    fault = next(((fault.message, sites.index(f"{fault.path}:{fault.line}")) for fault in wiring.faults), None)
    return Outcome("unknown", captured, sites.generic(wiring.reason or ""), fault)


def _order(rule: CaptureRule, answers: dict[tuple[int, tuple[int, ...] | None], Observation]) -> CaptureRule:
    """Whether the list (6, 3, 5) comes back in its own order."""
    seen = answers[DEPTH, (6, 3, 5)]
    listed = replace(rule, order="list")
    return listed if agrees(listed, seen.wiring, seen) else rule


def _repeats(
    rule: CaptureRule, answers: dict[tuple[int, tuple[int, ...] | None], Observation], name: str, sites: Sites
) -> CaptureRule:
    seen = answers[DEPTH, (3, 3, 5)]
    stop = sites.stop(seen.wiring, name)
    if stop is not None:
        return replace(rule, repeats="stops", repeats_stop=stop)
    choices: tuple[Literal["kept", "dropped"], ...] = ("kept", "dropped")
    fitting = (choice for choice in choices if agrees(replace(rule, repeats=choice), seen.wiring, seen))
    return replace(rule, repeats=next(fitting, "unlearned"))


# --- the default list ----------------------------------------------------------------------------------------------


def _formulas() -> Iterator[str]:
    yield from map(str, range(-1, 12))
    yield from (f"N{offset:+d}" if offset else "N" for offset in range(-12, 2))
    for fraction in ("N//2", "N//3", "2*N//3", "N//4", "3*N//4", "N//5"):
        yield from (f"{fraction}{offset:+d}" if offset else fraction for offset in range(-4, 5))


def _default(
    rule: CaptureRule, answers: dict[tuple[int, tuple[int, ...] | None], Observation], name: str, sites: Sites
) -> CaptureRule:
    """The engine's own list as formulas in N, found at the larger depths and tested at all."""
    seen = {depth: answers[depth, None] for depth in (DEPTH, *DEPTHS)}
    first = seen[DEPTH].wiring
    stop = sites.stop(first, name)
    if stop is not None:
        return replace(rule, no_default=stop)
    large = [depth for depth in seen if depth >= DEPTH]
    counts = {len(seen[depth].wiring.slots) for depth in large}
    if len(counts) != 1 or not all(slot.known for depth in large for slot in seen[depth].wiring.slots):
        return replace(rule, no_default=sites.generic(first.reason or "the default list"))
    found = []
    for index in range(counts.pop()):
        wanted = {depth: seen[depth].wiring.slots[index].boundary for depth in large}
        formula = next((f for f in _formulas() if all(depth_formula(f)(n) == b for n, b in wanted.items())), None)
        if formula is None:
            return replace(rule, no_default="the default list, which fits no formula,")
        found.append(formula)
    whole = replace(rule, default=tuple(found))
    for depth in sorted(seen, reverse=True):
        if not agrees(whole, first, seen[depth]):
            return (
                replace(whole, from_layers=min(n for n in seen if n > depth))
                if depth < DEPTH
                else replace(rule, no_default="the default list, which fits no formula,")
            )
    return replace(whole, from_layers=min(seen))


# --- lines ---------------------------------------------------------------------------------------------------------


def _lines(evidence: tuple[Evidence, ...], sites: Sites) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The sites of the setter, of what captures a slot, and of the concatenation."""
    captures = [index for index, line in enumerate(evidence) if line.slot is not None]
    if not captures:
        return tuple(sites.index(str(line)) for line in evidence), (), ()
    set_by = tuple(sites.index(str(line)) for line in evidence[: captures[0]])
    usual = Counter(
        tuple(str(line) for line in evidence if line.slot == slot)
        for slot in {line.slot for line in evidence if line.slot is not None}
    ).most_common(1)[0][0]
    captured = tuple(sites.index(place) for place in usual)
    return set_by, captured, tuple(sites.index(str(line)) for line in evidence[captures[-1] + 1 :])


_STORED = re.compile(r"(\w+) = \[([-\d, ]*)\]")


def _stored(rule: CaptureRule, answers: dict[tuple[int, tuple[int, ...] | None], Observation]) -> CaptureRule:
    """What the setter stores, where that is the boundaries or all of them shifted by the same number."""
    shifts, ordered, name = set(), True, ""
    for (depth, ids), item in answers.items():
        note = _STORED.match(item.wiring.evidence[0].note) if item.wiring.evidence and rule.set_by else None
        if note is None or ids is None:
            continue
        name = note.group(1)
        stored = [int(value) for value in note.group(2).split(",") if value.strip()]
        boundaries = [value + _shift_of(rule, ids, depth) for value in ids]
        if len(stored) == len(boundaries) and ids == tuple(sorted(set(ids))):
            shifts |= {value - boundary for value, boundary in zip(stored, boundaries, strict=True)}
        elif ids == (6, 3, 5):
            ordered = stored == sorted(stored)
    return replace(rule, set_name=name, set_shift=shifts.pop() if len(shifts) == 1 else None, set_sorted=ordered)
