"""A target class that has no method to take a draft's layer ids, though the model that it wraps has one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding, Span
from eaglelint.rule import Facts, Rule
from eaglelint.wiring import Wiring

from .._source import related

if TYPE_CHECKING:
    from eaglelint.survey.facts import ClassFacts, EngineFacts, Wrapper

__all__ = ["RULE"]

_HELP = "Serve with a release in which this class takes an EAGLE-3 draft's layer ids."


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    for engine in facts.engines:
        for wrapper in engine.wrappers:
            yield _wrapper(rule, engine, wrapper)
        for cls in engine.classes:
            if cls.served is not None and _lacks_setter(cls.served.wiring):
                yield _served(rule, engine, cls)
    read = {engine.label for engine in facts.engines}
    for served in facts.servings:  # by a profile, which knows that there is no setter, and not where
        if _lacks_setter(served.wiring) and served.wiring.name.partition(" (")[0] not in read:
            yield from _remembered(rule, facts, served.wiring)


def _lacks_setter(wiring: Wiring) -> bool:
    return any(fault.message.startswith("NoSetter") for fault in wiring.faults)


def _remembered(rule: Rule, facts: Facts, wiring: Wiring) -> Iterator[Finding]:
    target = facts.target
    if target is None:
        return
    engine = wiring.name.partition(" (")[0]
    yield rule.finding(
        f"{wiring.target_class}, which serves this draft's target in {engine}, has no method to take its layer ids: "
        "the server stops at start-up",
        target.span("architectures") or Span.at(target.path, 1),
        confidence="certain",
        annotation=f"no setter in {engine}",
        help=_HELP,
        identity=(engine, wiring.target_class or ""),
    )


def _wrapper(rule: Rule, engine: EngineFacts, wrapper: Wrapper) -> Finding:
    return rule.finding(
        f"{wrapper.name} has no {engine.setter}, though the {wrapper.inner_name} that it wraps has one: with an "
        "EAGLE-3 "
        "draft the server stops at start-up",
        wrapper.place.span,
        confidence="certain",
        severity="note",
        annotation=f"no {engine.setter}",
        related=(*related("wraps", wrapper.inner), *related("setter", wrapper.setter)),
        help=f"Add {engine.setter} to {wrapper.name}, handing the ids on, and pass on what the inner model captures.",
        identity=(engine.label, wrapper.name),
    )


def _served(rule: Rule, engine: EngineFacts, cls: ClassFacts) -> Finding:
    return rule.finding(
        f"{cls.name}, which serves this draft's target in {engine.label}, has no {engine.setter}: the server stops "
        "at "
        "start-up",
        cls.place.span,
        confidence="certain",
        annotation=f"no {engine.setter}",
        help=_HELP,
        identity=(engine.label, cls.name),
    )


RULE = Rule(
    code="SRV001",
    name="missing-setter",
    summary="A target class has no method to take a draft's layer ids.",
    severity="error",
    check=_check,
)
