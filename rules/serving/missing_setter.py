"""A target class that has no method to take a draft's layer ids, though the model that it wraps has one."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding
from eaglelint.rule import ClassFacts, EngineFacts, Facts, Rule, Wrapper

from .._source import related

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    for engine in facts.engines:
        for wrapper in engine.wrappers:
            yield _wrapper(rule, engine, wrapper)
        for cls in engine.classes:
            if cls.served is not None and any(
                fault.message.startswith("NoSetter") for fault in cls.served.wiring.faults
            ):
                yield _served(rule, engine, cls)


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
        help="Serve with a release in which this class takes an EAGLE-3 draft's layer ids.",
        identity=(engine.label, cls.name),
    )


RULE = Rule(
    code="SRV001",
    name="missing-setter",
    summary="A target class has no method to take a draft's layer ids.",
    severity="error",
    check=_check,
)
