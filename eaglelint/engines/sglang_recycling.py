"""SGLang's drafting of several tokens: what target and draft give the logits processor is what goes to the next step.

The processor hands on the states that it makes logits of, or those that it is given for that beside them
(``_get_hidden_states_to_store`` in srt/layers/logits_processor.py, 0.5.9 to 0.5.23).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from eaglelint.engines.base import EngineSource, stand_in
from eaglelint.engines.recycling import made_of
from eaglelint.source.calls import call_value
from eaglelint.source.lookup import get_attribute
from eaglelint.source.machine import Machine
from eaglelint.source.slices import Site
from eaglelint.source.values import BoundMethod, Input, Instance, Tensor, Unknown

__all__ = ["hands", "may_differ"]

_READ = "hidden_states"
_INSTEAD = "hidden_states_before_norm"
_SEVERAL = "aux_hidden_states"  # of EAGLE-3, whose first step takes a state of its own kind


def may_differ(source: EngineSource, models: Path, file: Path) -> bool:
    """Whether some file that a model is made of names the states that are handed on in place of those that are read."""
    return any(_INSTEAD.encode() in source.tree.read(path) for path in made_of(source, models, file))


def hands(machine: Machine, model: Instance, argument: Callable[..., Any]) -> tuple[Any, Any] | None:
    """The state that a model hands on, and the one that its head reads; ``argument`` finds the processor's."""
    given: dict[str, Any] = {}  # kept through the heap, so that it belongs to the path that is taken

    def logits(m: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
        for name in (_READ, _INSTEAD, _SEVERAL):
            m.heap.set(given, name, argument(args, kwargs, name))
        return stand_in(m, "logits")

    machine.intercepts["LogitsProcessor.__call__"] = logits
    forward = get_attribute(machine, model, "forward")
    if not isinstance(forward, BoundMethod):
        return None
    handed = stand_in(machine, "spec_info", hidden_states=Tensor.of(Input("the state that is handed over")))
    arguments = {
        "input_ids": Unknown("input_ids", present=True),
        "positions": Unknown("positions", present=True),
        "forward_batch": stand_in(machine, "forward_batch", input_embeds=None, mm_inputs=None, spec_info=handed),
    }
    call_value(machine, forward, (), arguments, None)
    if given.get(_SEVERAL) is not None or _READ not in given:
        return None
    instead = given[_INSTEAD]
    return (given[_READ] if instead is None else instead), given[_READ]
