"""A class counts the same ids in two ways, depending on the list they stand in, or its default is none of its "
"kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule
from eaglelint.wiring import Slot

from .._messages import confidence_of, joined_with_and
from .._source import by_place, classes_phrase, related

if TYPE_CHECKING:
    from eaglelint.survey.facts import ClassFacts, Counting, EngineFacts, Place, Run, Stored

__all__ = ["RULE"]

_FEW = 3  # classes that have to agree before another one is the odd one out


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    if facts.draft is not None:
        yield from _in_training(rule, facts)
        return  # what the engine makes of one list of ids is compared with the training, slot by slot
    for engine in facts.engines:
        split = [
            (counted[1].stored.place, cls) for cls in engine.classes if (counted := _split(cls)) and counted[1].stored
        ]
        for place, classes in by_place(split).items():
            yield _depends(rule, engine, place, classes)
        uneven = [(one, cls) for cls in engine.classes if (one := _uneven(cls.last)) is not None]
        for place, classes in by_place(uneven).items():
            yield _shifted(rule, engine, place, classes)
        usual = _usual_default(engine)
        odd = [(cls.setter or cls.place, cls) for cls in engine.classes if usual and _is_odd(cls.default, usual)]
        for place, classes in by_place(odd).items():
            yield _odd_default(rule, engine, place, classes, usual)


def _in_training(rule: Rule, facts: Facts) -> Iterator[Finding]:
    """Two places of the training code that feed the draft other states."""
    captures = facts.practice.captures if facts.practice is not None else ()
    if len(captures) < 2:
        return
    first, other = captures[:2]
    yield rule.finding(
        f"two places of the training code feed fc other states: {_joined(other.slots)} here, and "
        f"{_joined(first.slots)} at {first.place}",
        other.place.span,
        confidence="likely",
        annotation=_joined(other.slots),
        related=related("the other way", first.place),
        help="Take the layers from one list, or name the file that made the draft (--training).",
        identity=("training", _joined(first.slots), _joined(other.slots)),
    )


def _joined(slots: tuple[Slot, ...]) -> str:
    return " ⊕ ".join(map(str, slots))


# --- ids whose meaning depends on the other ids --------------------------------------------------------------------


def _split(cls: ClassFacts) -> tuple[Counting, Counting] | None:
    """Two lists to whose ids the setter adds different numbers: the more usual way last."""
    known = [counting for counting in cls.counting if counting.offset is not None]
    by_offset = Counter(counting.offset for counting in known)
    if len(by_offset) < 2:
        return None
    (usual, _), (other, _) = by_offset.most_common(2)
    return next(c for c in known if c.offset == other), next(c for c in known if c.offset == usual)


def _usual(cls: ClassFacts) -> Stored | None:
    """Where the more usual of two ways is taken."""
    counted = _split(cls)
    return None if counted is None else counted[1].stored


def _depends(rule: Rule, engine: EngineFacts, place: Place, classes: list[ClassFacts]) -> Finding:
    counted = _split(classes[0])
    assert counted is not None
    readings = [f"{list(one.ids)} brings {_states(one)}" for one in counted]
    other = counted[0].stored
    return rule.finding(
        f"ids are counted in two ways in {classes_phrase(classes)}: {joined_with_and(readings)}; which of them "
        "holds is "
        "guessed from the list itself, and a draft that was trained the other way is served other states",
        place.span,
        confidence="certain",
        annotation="counted this way here",
        related=(*related("the other way", other.place if other else None), *related("setter", classes[0].setter)),
        help="Let the draft's config say how its ids are counted, or count them in one way.",
        identity=(engine.label, classes[0].name, "split"),
    )


def _states(counting: Counting) -> str:
    assert counting.stored is not None
    return " ⊕ ".join(str(Slot("stream", value)) for value in counting.stored.values)


# --- a capture that stands one layer off the others ----------------------------------------------------------------


def _uneven(run: Run | None) -> Place | None:
    """The capture whose state is not the same step from its id as that of the first."""
    if run is None or not isinstance(run.ids, tuple) or not len(run.slots) == len(run.ids) == len(run.captures):
        return None
    steps = [
        slot.boundary - layer_id
        for slot, layer_id in zip(run.slots, run.ids, strict=True)
        if slot.form == "stream" and slot.boundary is not None
    ]
    if len(steps) != len(run.ids):
        return None
    return next((place for place, step in zip(run.captures, steps, strict=True) if step != steps[0]), None)


def _shifted(rule: Rule, engine: EngineFacts, place: Place, classes: list[ClassFacts]) -> Finding:
    run = classes[0].last
    assert run is not None and isinstance(run.ids, tuple)
    return rule.finding(
        f"the ids {list(run.ids)} bring {run.wiring} in {classes_phrase(classes)}: this capture stands one layer "
        "off the "
        "others",
        place.span,
        confidence=confidence_of(run.wiring),
        severity="error",
        annotation="off by one layer",
        related=related("the others", next((other for other in run.captures if other != place), None)),
        help="Test the same number here as in the loop over the layers.",
        identity=(engine.label, classes[0].name, "uneven"),
    )


# --- a default that is not the others' -----------------------------------------------------------------------------


def _usual_default(engine: EngineFacts) -> tuple[Slot, ...]:
    """What most of an engine's classes capture by default; empty where there is no such thing."""
    known = Counter(
        cls.default.slots
        for cls in engine.classes
        if cls.default is not None and cls.default.slots and all(slot.form == "stream" for slot in cls.default.slots)
    )
    slots, count = known.most_common(1)[0] if known else ((), 0)
    return slots if count >= _FEW and count > sum(known.values()) - count else ()


def _is_odd(run: Run | None, usual: tuple[Slot, ...]) -> bool:
    return (
        run is not None
        and run.wiring.status != "unknown"
        and run.slots != usual
        and len(run.slots) == len(usual)
        and all(slot.form == "stream" for slot in run.slots)
    )


def _odd_default(
    rule: Rule, engine: EngineFacts, place: Place, classes: list[ClassFacts], usual: tuple[Slot, ...]
) -> Finding:
    run = classes[0].default
    assert run is not None
    depth = run.wiring.num_layers
    others = " ⊕ ".join(map(str, usual))
    return rule.finding(
        f"the default of {classes_phrase(classes)} is {run.wiring} (of {depth} layers), and that of the engine's "
        "other "
        f"classes {others}: a draft without ids that was trained on the usual default is served other states",
        place.span,
        confidence="likely" if run.wiring.status == "exact" else "possible",
        annotation=f"{run.wiring} by default",
        related=related("default", run.stored[-1].place if run.stored else None),
        help="Take the usual default, or write the ids into the configs of the drafts that need this one.",
        identity=(engine.label, classes[0].name, "default"),
    )


RULE = Rule(
    code="CAP005",
    name="two-ways-to-count",
    summary="A class counts ids in two ways, or its default differs from all others.",
    severity="warning",
    check=_check,
)
