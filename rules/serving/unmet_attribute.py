"""The two ends of an attribute do not meet: a setter writes what nobody reads, or a capture reads what nobody "
"writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._source import by_place, classes_phrase, related

if TYPE_CHECKING:
    from eaglelint.survey.facts import ClassFacts, Place, Run, Stored

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    for engine in facts.engines:
        unset = [(place, cls) for cls in engine.classes for run in cls.runs for _, place in _missing(run)]
        for place, classes in by_place(unset).items():
            yield _unset(rule, engine.label, place, classes)
        unread = [(stored.place, cls) for cls in engine.classes for stored in _unread(cls)]
        for place, classes in by_place(unread).items():
            yield _never_read(rule, engine.label, place, classes)


def _missing(run: Run) -> tuple[tuple[str, Place], ...]:
    """The attributes that nothing sets, where all else of the run is known."""
    return run.missing if run.complete and run.slots and all(slot.known for slot in run.slots) else ()


def _unset(rule: Rule, engine: str, place: Place, classes: list[ClassFacts]) -> Finding:
    attribute = next(name for cls in classes for run in cls.runs for name, where in _missing(run) if where == place)
    return rule.finding(
        f"{attribute} is read here and set by no class among its bases: a capture in {classes_phrase(classes)} "
        "stops with "
        "AttributeError",
        place.span,
        confidence="likely",
        annotation="nothing sets it",
        related=related("class", classes[0].place),
        help=f"Set {attribute.rpartition('.')[2]} in __init__, or do not read it.",
        identity=(engine, attribute),
    )


def _unread(cls: ClassFacts) -> tuple[Stored, ...]:
    """The lists that the class's setter stored and that no run of its forward pass has looked at."""
    names = {attribute for _, attribute in cls.unread}
    runs = [run for run in cls.runs if run.complete]
    if not names or not runs or not all(_in_vain(run, cls.default) for run in runs):
        return ()
    return tuple(dict.fromkeys(run.stored[-1] for run in runs if run.stored and run.stored[-1].name in names))


def _in_vain(run: Run, default: Run | None) -> bool:
    """Whether the ids made no difference: nothing was captured, or what the default list captures."""
    if not run.slots:
        return not run.captures
    return run is not default and default is not None and run.slots == default.slots


def _never_read(rule: Rule, engine: str, place: Place, classes: list[ClassFacts]) -> Finding:
    stored = next(s for cls in classes for s in _unread(cls) if s.place == place)
    return rule.finding(
        f"the layers to capture are stored in {stored.name}, which the forward pass of {classes_phrase(classes)} "
        "never "
        "reads: the draft's ids have no effect",
        place.span,
        confidence="likely",
        annotation="read by nobody",
        related=related("setter", classes[0].setter),
        help="Set what the loop over the layers tests.",
        identity=(engine, classes[0].name, stored.name),
    )


RULE = Rule(
    code="SRV002",
    name="unmet-attribute",
    summary="A setter writes an attribute that nobody reads, or a capture reads one that nobody sets.",
    severity="error",
    check=_check,
)
