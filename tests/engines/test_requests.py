"""One model answers many requests: what was learned for one of them must not be told to another."""

from __future__ import annotations

from pathlib import Path

import pytest

from eaglelint.deployment import Deployment, parse_assumptions
from eaglelint.derive import Deriver, ServingRequest, derive_serving
from eaglelint.engines.sglang import SGLang
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
OVERLAP = Model(
    top="""
def is_tbo_enabled():
    return False

class Part:
    def __init__(self):
        self.shift = 1 if is_tbo_enabled() else 0
""",
    init="self.part = Part()",
    loop=loop(f"""
for i, layer in enumerate(self.layers):
    if i + self.part.shift in self.layers_to_capture:
        aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual)
"""),
)
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


def test_a_request_about_a_server_of_another_kind(tmp_path: Path) -> None:
    """What rests on two overlapping batches, and what rests on none, is computed for each."""
    found = handle(write_engine(tmp_path, OVERLAP))
    binding = found.engine.target_class(found.source, "LlamaForCausalLM")
    assert binding is not None
    deriver = Deriver(found.engine, found.source, 12)
    seen = []
    for deployment in (Deployment(), parse_assumptions(["tbo"]), Deployment()):
        request = ServingRequest(binding, 12, {"num_hidden_layers": 12}, deployment=deployment)
        wiring = deriver.derive(request).wiring
        seen.append((wiring.status, str(wiring), [text for text in wiring.assumptions if "two-batch" in text]))
    off = ("exact", "h[2] ⊕ h[6] ⊕ h[9]", ["no two-batch overlap (tbo=off)"])
    assert seen == [off, ("exact", "h[1] ⊕ h[5] ⊕ h[8]", ["two-batch overlap (tbo=on)"]), off]


def test_a_model_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For requests that differ in their ids; another config is another model."""
    found = handle(write_engine(tmp_path, Model()))
    binding = found.engine.target_class(found.source, "LlamaForCausalLM")
    assert binding is not None
    built: list[object] = []
    build = SGLang.build_model
    monkeypatch.setattr(SGLang, "build_model", lambda *given: built.append(given[-1]) or build(*given))
    deriver = Deriver(found.engine, found.source, 12)
    for width, ids in ((64, "default"), (64, (0, 3, 10)), (64, (5,)), (128, "default")):
        data = {"num_hidden_layers": 12, "hidden_size": width}
        deriver.derive(ServingRequest(binding, 12, data, layer_ids=ids))  # type: ignore[arg-type]
    assert len(built) == 2
