"""One model answers many requests: what was learned for one of them must not be told to another."""

from __future__ import annotations

from pathlib import Path

import pytest

from eaglelint.derive import Deriver, ServingRequest, derive_serving
from eaglelint.wiring import LayerIds
from tests.engines.mini import Model, handle, write_engine
from tests.engines.test_hard_cases import FOLLOWED, OPEN
from tests.engines.test_idioms import STATE, captures, loop

REQUESTS: tuple[LayerIds, ...] = ((0, 3, 10), "default", (5,), (0, 3, 10), (1, 2, 3, 4), "default")
LEFT_BEHIND = {
    "ids on the config, read by what is made later": Model(
        top="""
class Recorder:
    def __init__(self, config):
        self.ids = config.captured
""",
        setter="""
self.config.captured = [2, 6, 9] if layer_ids is None else [i + 1 for i in layer_ids]
""",
        loop="recorder = Recorder(self.config)\n"
        + loop(f"""
for i, layer in enumerate(self.layers):
    if i in recorder.ids:
        aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual)
"""),
    ),
    "a count that each setter raises": Model(
        top="CALLS = []",
        setter="""
CALLS.append(1)
self.model.layers_to_capture = [len(CALLS)]
""",
        loop=captures(f"aux.append({STATE})"),
    ),
    "a flag of the module": Model(
        top="""
FLAGS = {}

def captured():
    return FLAGS.get("ids", [])
""",
        setter="""
FLAGS["ids"] = [2, 6, 9] if layer_ids is None else [i + 1 for i in layer_ids]
""",
        loop=loop(f"""
for i, layer in enumerate(self.layers):
    if i in captured():
        aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual)
"""),
    ),
}
MODELS = {**FOLLOWED, **{name: model for name, (model, _) in OPEN.items()}, **LEFT_BEHIND}


@pytest.mark.parametrize("name", MODELS)
def test_each_request_is_answered_as_if_it_were_the_only_one(tmp_path: Path, name: str) -> None:
    """The same wiring and the same stored lists, whatever was asked before."""
    found = handle(write_engine(tmp_path, MODELS[name]))
    binding = found.engine.target_class(found.source, "LlamaForCausalLM")
    assert binding is not None
    deriver = Deriver(found.engine, found.source, 12)
    for ids in REQUESTS:
        request = ServingRequest(binding, 12, {"num_hidden_layers": 12}, layer_ids=ids)
        alone = Deriver(found.engine, found.source, 12)
        assert [event.value for event in deriver.stored(request)] == [event.value for event in alone.stored(request)]
        assert deriver.derive(request).wiring == derive_serving(found.engine, found.source, request), ids


def test_a_flag_of_the_module_is_read_where_it_was_set(tmp_path: Path) -> None:
    found = handle(write_engine(tmp_path, LEFT_BEHIND["a flag of the module"]))
    binding = found.engine.target_class(found.source, "LlamaForCausalLM")
    assert binding is not None
    request = ServingRequest(binding, 12, {"num_hidden_layers": 12}, layer_ids=(0, 3, 10))
    wiring = derive_serving(found.engine, found.source, request)
    assert (wiring.status, str(wiring)) == ("exact", "h[1] ⊕ h[4] ⊕ h[11]")
