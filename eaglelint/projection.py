"""The ``fc`` that an engine's draft class makes for a draft's config, and whether it takes what the engine feeds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eaglelint.derive import ServingRequest
from eaglelint.engines.base import DraftReads, Engine, EngineSource, config_object
from eaglelint.recursion import deep_recursion
from eaglelint.source.lookup import MISSING, get_attribute
from eaglelint.source.machine import Budget, BudgetExceeded, Machine
from eaglelint.source.stubs import load_stubs
from eaglelint.source.values import Instance
from eaglelint.wiring import Projection, Wiring

__all__ = ["derive_projection", "width_of"]

_INNER = ("", "model", "backbone", "language_model")  # where a draft class keeps its fc
_WIDTHS = ("in_features", "input_size"), ("out_features", "output_size")
_BUDGET = Budget(steps=40_000)


def derive_projection(
    engine: Engine, source: EngineSource, request: ServingRequest, wiring: Wiring
) -> Projection | None:
    """The ``fc`` of the draft class that the config names; None where that class or its ``fc`` is not found.

    Its width in is compared with what the wiring feeds: the states times the target's width.
    """
    if request.draft_data is None:
        return None
    machine = Machine(
        source.tree,
        deployment=request.deployment,
        stubs=load_stubs(engine.name),
        budget=_BUDGET,
        num_layers=request.num_layers,
    )

    def run() -> Any:
        engine.prepare(machine, source, request.kind)
        draft = config_object(machine, request.draft_data or {}, reads=DraftReads(), name="the draft's config")
        target = config_object(machine, request.target_data, name="the target's config")
        model = engine.build_draft(machine, source, request.kind, draft, target)
        return None if model is None else _found(machine, model)

    try:
        with deep_recursion():
            outcomes = machine.explore(run, None)
    except (BudgetExceeded, RecursionError):
        return None
    found = [outcome.value for outcome in outcomes if outcome.raised is None]
    if len(found) != 1 or found[0] is None:
        return None
    takes, gives, site = found[0]
    fed = _fed(wiring, request.target_data)
    agrees = None if fed is None or wiring.status != "exact" or fed == gives else fed == takes
    return Projection(takes, gives, site.path, site.line, fed, agrees)


def _found(machine: Machine, model: Instance) -> Any:
    """The widths of the draft's ``fc`` and where it is made; None where one of them is not known."""
    for name in _INNER:
        holder: Any = get_attribute(machine, model, name) if name else model
        fc: Any = get_attribute(machine, holder, "fc") if isinstance(holder, Instance) else MISSING
        if isinstance(fc, Instance):
            takes, gives = (_width(machine, fc, names, place) for place, names in enumerate(_WIDTHS))
            if takes is None or gives is None or not fc.made or holder.cls is None:
                return None
            file = machine.tree.display(holder.cls.module.path)
            return takes, gives, next((site for site in fc.made if site.path == file), fc.made[-1])
    return None


def _width(machine: Machine, linear: Instance, names: tuple[str, ...], place: int) -> int | None:
    """One width of a linear module: as its class stores it, or as it was given where the class lies outside."""
    if linear.cls is not None:
        values = [get_attribute(machine, linear, name) for name in names]
    else:
        values = [linear.kwargs.get(name) for name in names] + list(linear.args[place : place + 1])
    return next((value for value in values if type(value) is int and value > 0), None)


def width_of(config: Mapping[str, Any]) -> int | None:
    """The width of the hidden states of a model with this config."""
    text = config.get("text_config")
    for section in (text, config) if isinstance(text, Mapping) else (config,):
        width = section.get("hidden_size")
        if type(width) is int and width > 0:
            return width
    return None


def _fed(wiring: Wiring, target: Mapping[str, Any]) -> int | None:
    width = width_of(target)
    return None if width is None or not wiring.slots else width * len(wiring.slots)
