"""Whether an engine's own check of its configuration refuses a kind of draft for this target."""

from __future__ import annotations

from eaglelint.derive import ServingRequest
from eaglelint.engines.base import Engine, EngineSource, TargetChecker, config_object
from eaglelint.recursion import deep_recursion
from eaglelint.source.machine import Budget, BudgetExceeded, Machine, TooLong
from eaglelint.source.stubs import load_stubs
from eaglelint.survey.facts import Refusal
from eaglelint.survey.places import place_of

__all__ = ["derive_refusal"]

_BUDGET = Budget(steps=20_000)


def derive_refusal(engine: Engine, source: EngineSource, request: ServingRequest) -> Refusal | None:
    """The exception that every path of the check ends in; None where one gets through, or it cannot be told."""
    if not isinstance(engine, TargetChecker):
        return None
    machine = Machine(
        source.tree,
        deployment=request.deployment,
        stubs=load_stubs(engine.name),
        budget=_BUDGET,
        num_layers=request.num_layers,
    )

    def run() -> None:
        target = config_object(machine, request.target_data, name="the target's config")
        engine.check_target(machine, source, request.kind, target)

    try:
        with deep_recursion():
            outcomes = machine.explore(run, None)
    except (BudgetExceeded, RecursionError, TooLong):
        return None
    ends = {(raised.message, raised.site) for outcome in outcomes if (raised := outcome.raised) and raised.explicit}
    if len(ends) != 1 or any(outcome.raised is None for outcome in outcomes):
        return None
    ((message, site),) = ends
    return None if site is None else Refusal(message, place_of(site))
