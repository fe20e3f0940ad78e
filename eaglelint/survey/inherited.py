"""The projections of a draft that an engine builds with its target's quantisation.

The question that is put to the code: a target that is quantised, and a draft beside it. The quantisation is an object
of its own, and a projection that is handed it was built for the target's weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eaglelint.engines.base import DraftReads, Engine, EngineSource, config_object, stand_in
from eaglelint.engines.loading import LoadsBesideTarget
from eaglelint.recursion import deep_recursion
from eaglelint.source.lookup import MISSING, get_attribute, is_module
from eaglelint.source.machine import Budget, BudgetExceeded, Machine, Raised
from eaglelint.source.modules import assigned_along
from eaglelint.source.stubs import load_stubs
from eaglelint.source.values import Instance
from eaglelint.survey.facts import Inherited
from eaglelint.survey.places import place_of

__all__ = ["inherited_quantization"]

_ARGUMENT = "quant_config"
_DEEPEST = 7
_BUDGET = Budget(steps=60_000)


def inherited_quantization(
    engine: Engine, source: EngineSource, kind: str, draft: dict[str, Any], target: dict[str, Any], num_layers: int
) -> tuple[Inherited, ...]:
    """What is built so on every path; nothing where the engine's loading or its draft class is not followed."""
    if not isinstance(engine, LoadsBesideTarget):
        return ()
    machine = Machine(source.tree, stubs=load_stubs(engine.name), budget=_BUDGET, num_layers=num_layers)

    def run() -> tuple[Inherited, ...]:
        engine.prepare(machine, source, kind)
        own = config_object(machine, draft, reads=DraftReads(), name="the draft's config")
        verifier = config_object(machine, target, name="the target's config")
        quantization = stand_in(machine, "the target's quantisation")
        model = engine.build_beside_target(machine, source, kind, own, verifier, quantization)
        return () if model is None else tuple(_below(machine, model, quantization, "", _DEEPEST))

    try:
        with deep_recursion():
            outcomes = machine.explore(run, None)
    except (BudgetExceeded, RecursionError):
        return ()
    found: list[tuple[Inherited, ...]] = [outcome.value for outcome in outcomes if outcome.raised is None]
    return tuple(item for item in found[0] if all(item in other for other in found)) if found else ()


def _below(machine: Machine, value: Any, quantization: Instance, path: str, deepest: int) -> Iterator[Inherited]:
    """The projections in a module and in those below it that are built with this quantisation."""
    items = value.payload if isinstance(value, Instance) and isinstance(value.payload, list | tuple) else value
    if isinstance(items, list | tuple):
        for index, item in enumerate(items):
            yield from _below(machine, item, quantization, f"{path}.{index}", deepest - 1)
    elif isinstance(value, Instance) and _is_projection(value):
        if value.kwargs.get(_ARGUMENT) is quantization and value.made:
            yield Inherited(path, place_of(value.made[-1]))
    elif isinstance(value, Instance) and value.cls is not None and deepest > 0 and is_module(machine, value):
        for name in assigned_along(machine, value.cls):
            try:
                held = get_attribute(machine, value, name)
            except Raised:
                continue
            if held is not MISSING:
                yield from _below(machine, held, quantization, f"{path}.{name}" if path else name, deepest - 1)


def _is_projection(module: Instance) -> bool:
    name = (module.cls.info.name if module.cls is not None else module.name).rpartition(".")[2]
    return name.endswith("Linear")
