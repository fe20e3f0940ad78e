"""Which numbers of a head an engine's draft class turns together: the halves, or neighbours.

The class is made for the draft's config, and the call that makes the rotary embedding of its first layer is read.
"""

from __future__ import annotations

from typing import Any

from eaglelint.engines.base import DraftReads, Engine, EngineSource, config_object
from eaglelint.source.lookup import get_attribute
from eaglelint.source.machine import Budget, BudgetExceeded, Machine, TooLong
from eaglelint.source.slices import Site
from eaglelint.source.stubs import load_stubs
from eaglelint.source.values import Instance, ModuleItems, Unknown
from eaglelint.survey.facts import Rotary
from eaglelint.survey.places import place_of

__all__ = ["rotary_of"]

# layers/rotary_embedding of SGLang 0.5.9 to 0.5.23 and vLLM 0.11.0 to 0.33.0: True, if left out, turns the halves.
_MAKES, _HALVES = "get_rope()", "is_neox_style"
_LAYERS = ("midlayer", "layers")
_BUDGET = Budget(steps=40_000)


def rotary_of(
    engine: Engine, source: EngineSource, kind: str, draft: dict[str, Any], target: dict[str, Any], num_layers: int
) -> Rotary | None:
    """What the class that the draft's config names turns; None where the code does not say it plainly."""
    machine = Machine(source.tree, stubs=load_stubs(engine.name), budget=_BUDGET, num_layers=num_layers)
    calls: list[tuple[Any, Site]] = []

    def made(m: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Unknown:
        if site is not None:
            m.heap.touch(calls)
            calls.append((kwargs.get(_HALVES, True), site))
        return Unknown("a rotary embedding", present=True)

    def run() -> tuple[Any, Site] | None:
        m = machine
        engine.prepare(m, source, kind)
        m.intercepts[_MAKES] = made
        config = config_object(m, draft, reads=DraftReads(), name="the draft's config")
        model = engine.build_draft(m, source, kind, config, config_object(m, target, name="the target's config"))
        attention = None if model is None else _attention(m, model)
        if attention is not None:
            get_attribute(m, attention, "rotary_emb")
        return calls[-1] if calls else None

    try:
        outcomes = machine.explore(run, None)
    except (BudgetExceeded, RecursionError, TooLong):
        return None
    found = [outcome.value for outcome in outcomes if outcome.raised is None]
    if len(found) != 1 or found[0] is None or not isinstance(found[0][0], bool):
        return None
    halves, site = found[0]
    return Rotary("half-split" if halves else "interleaved", place_of(site))


def _attention(machine: Machine, model: Instance) -> Instance | None:
    """The attention of the first layer."""
    holder: Any = get_attribute(machine, model, "model")
    for name in _LAYERS if isinstance(holder, Instance) else ():
        layer: Any = get_attribute(machine, holder, name)
        if isinstance(layer, ModuleItems) and layer:
            layer = layer[0]
        attention: Any = get_attribute(machine, layer, "self_attn") if isinstance(layer, Instance) else None
        if isinstance(attention, Instance):
            return attention
    return None
