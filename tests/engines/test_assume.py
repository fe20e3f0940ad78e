"""What ``--assume`` changes: pipeline stages, two-batch overlap, platforms, environment variables, several devices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eaglelint.deployment import parse_assumptions
from eaglelint.derive import ServingRequest, derive_serving
from eaglelint.wiring import Slot, Stage, Wiring
from tests.engines.mini import Model, handle, write_engine

_STATE = "hidden_states + residual if residual is not None else hidden_states"

# Each rank builds its own layers and places for the others; the last captures for itself.
_PARALLEL = {
    "distributed.py": """
        _PP = None

        def get_pp_group():
            assert _PP is not None
            return _PP

        def start(group):
            global _PP
            _PP = group
    """,
    "srt/proxy.py": """
        class PPProxyTensors:
            def __init__(self, tensors):
                self.tensors = tensors

            def __getitem__(self, key):
                return self.tensors[key]
    """,
}

_INIT = """
self.pp_group = get_pp_group()
size, rank = self.pp_group.world_size, self.pp_group.rank_in_group
share = config.num_hidden_layers // size
self.start_layer, self.end_layer = rank * share, (rank + 1) * share
"""

_LOOP = """
if self.pp_group.is_first_rank:
    hidden_states, residual, earlier = self.embed_tokens(input_ids), None, []
else:
    hidden_states, residual = proxy["hidden_states"], proxy["residual"]
    earlier = {earlier}
aux = []
for i in range(self.start_layer, self.end_layer):
    if {test} in self.layers_to_capture:
        aux.append({state})
    hidden_states, residual = self.layers[i](hidden_states, residual)
if not self.pp_group.is_last_rank:
    return PPProxyTensors({{"hidden_states": hidden_states, "residual": residual, {handed}}})
hidden_states, _ = self.norm(hidden_states, residual)
return hidden_states, earlier + aux
"""

_FORWARD = """
def forward(self, input_ids, positions, forward_batch, pp_proxy_tensors=None):
    result = self.model(input_ids, pp_proxy_tensors)
    if not self.model.pp_group.is_last_rank:
        return result
    hidden_states, aux_hidden_states = result
    return self.logits_processor(input_ids, hidden_states, self.lm_head, forward_batch, aux_hidden_states)
"""


def pipeline(*, handed: str = "", earlier: str = "[]", test: str = "i", setter: str | None = None) -> Model:
    """A model in the form of SGLang's that runs in stages."""
    loop = _LOOP.format(state=_STATE, handed=handed, earlier=earlier, test=test)
    return Model(
        top="from sglang.distributed import get_pp_group\nfrom sglang.srt.proxy import PPProxyTensors",
        init=_INIT,
        loop=loop,
        extra=_PARALLEL,
        setter=setter or Model().setter,
    )


def derive(root: Path, model: Model, *assume: str, target: dict[str, Any] | None = None) -> Wiring:
    path = write_engine(root, model)
    file = path / "sglang/srt/models/llama.py"
    text = file.read_text("utf-8")
    if "pp_group" in text:
        text = text.replace("def forward(self, input_ids):", "def forward(self, input_ids, proxy=None):")
        start = text.index("    def forward(self, input_ids, positions, forward_batch):")
        end = text.index("    def set_eagle3", start)
        text = text[:start] + "".join(f"    {line}\n" for line in _FORWARD.strip().split("\n")) + "\n" + text[end:]
        file.write_text(text, "utf-8")
    found = handle(path)
    binding = found.engine.target_class(found.source, "LlamaForCausalLM")
    assert binding is not None
    request = ServingRequest(binding, 12, {"num_hidden_layers": 12, **(target or {})}, layer_ids=(1, 6, 9))
    return derive_serving(found.engine, found.source, replace(request, deployment=parse_assumptions(assume)))


def test_one_stage_is_stated(tmp_path: Path) -> None:
    """Without anything said it is one stage, and the answer says so and how to change it."""
    wiring = derive(tmp_path, pipeline())
    assert (wiring.status, str(wiring), wiring.stages) == ("exact", "h[2] ⊕ h[7] ⊕ h[10]", ())
    assert "one pipeline stage (pp=1)" in wiring.assumptions
    assert "no two-batch overlap (tbo=off)" in wiring.assumptions
    assert "eager execution" in wiring.assumptions


def test_a_stage_that_keeps_its_states_to_itself(tmp_path: Path) -> None:
    """The last rank gets what it captures by itself; what the first captured is lost."""
    wiring = derive(tmp_path, pipeline(), "pp=2")
    assert (wiring.status, str(wiring)) == ("exact", "h[7] ⊕ h[10]")
    assert wiring.stages == (
        Stage((0, 5), (Slot("stream", 2),), ("hidden_states", "residual")),
        Stage((6, 11), (Slot("stream", 7), Slot("stream", 10)), ()),
    )
    assert "2 pipeline stages (pp=2)" in wiring.assumptions


@pytest.mark.parametrize("count", [2, 3])
def test_states_that_cross_the_stages(tmp_path: Path, count: int) -> None:
    """Handed on by name from rank to rank, all of them reach the draft."""
    model = pipeline(handed='"aux": earlier + aux', earlier='proxy["aux"]')
    wiring = derive(tmp_path, model, f"pp={count}")
    assert (wiring.status, str(wiring)) == ("exact", "h[2] ⊕ h[7] ⊕ h[10]")
    assert [stage.hands_on for stage in wiring.stages][:-1] == [("hidden_states", "residual", "aux")] * (count - 1)


def test_a_local_index_compared_with_global_ids(tmp_path: Path) -> None:
    """Each rank counts from 0 and captures its own third layer."""
    wiring = derive(tmp_path, pipeline(test="i - self.start_layer"), "pp=2")
    assert (wiring.status, str(wiring)) == ("exact", "h[8]")


def test_a_setter_that_knows_the_last_rank_alone(tmp_path: Path) -> None:
    """The other ranks capture nothing at all."""
    setter = """
if not self.model.pp_group.is_last_rank:
    return
self.model.layers_to_capture = [layer_id + 1 for layer_id in layer_ids]
"""
    wiring = derive(tmp_path, pipeline(handed='"aux": earlier + aux', earlier='proxy["aux"]', setter=setter), "pp=2")
    assert (wiring.status, str(wiring)) == ("exact", "h[7] ⊕ h[10]")
    assert wiring.stages[0].captured == ()


def test_an_engine_that_refuses(tmp_path: Path) -> None:
    """The engine's own check of its arguments is read; its sentence and line are the answer."""
    check = """
        class ServerArgs:
            def check_server_args(self):
                assert self.nodes > 0, "some nodes"
                if self.pp_size > 1:
                    assert self.speculative_algorithm is None, "no drafts in a pipeline"
    """
    model = pipeline()
    model = replace(model, extra={**model.extra, "srt/server_args.py": check})
    assert derive(tmp_path / "one", model).status == "exact"
    wiring = derive(tmp_path / "two", model, "pp=2")
    assert (wiring.status, str(wiring)) == ("unknown", "?")
    assert wiring.reason is not None
    assert wiring.reason.startswith("it would stop with AssertionError at ")
    assert wiring.reason.endswith("server_args.py:6: no drafts in a pipeline")


# The dense layers run in the loop; the others as overlapping operations, which capture nothing.
_OVERLAP = f"""
hidden_states = self.embed_tokens(input_ids)
residual = None
aux = []
end = 4 if batch.can_run_tbo else len(self.layers)
for i in range(end):
    if i in self.layers_to_capture:
        aux.append({_STATE})
    hidden_states, residual = self.layers[i](hidden_states, residual)
if end != len(self.layers):
    hidden_states, residual = run_overlapped(layers=self.layers[end:], hidden_states=hidden_states, residual=residual)
hidden_states, _ = self.norm(hidden_states, residual)
return hidden_states, aux
"""

_SCHEDULE = """
def run_overlapped(layers, hidden_states, residual):
    operations = []
    for layer in layers:
        operations += [layer.op_attention, layer.op_mlp]
    queue = list(operations)
    while queue:
        state = queue.pop(0)(hidden_states)
        queue.append(state)
    return hidden_states, residual
"""


@pytest.mark.parametrize(("assume", "served"), [((), "h[2] ⊕ h[7] ⊕ h[10]"), (("tbo",), "h[2]")])
def test_overlapping_batches_skip_captures(tmp_path: Path, assume: tuple[str, ...], served: str) -> None:
    """What the loop captured before the overlap reaches the draft, and nothing else does."""
    model = Model(
        top=_SCHEDULE,
        layer_init="self.op_attention, self.op_mlp = print, print",
        loop=_OVERLAP.replace("batch.", "self.config."),
    )
    wiring = derive(tmp_path, model, *assume)
    assert (wiring.status, str(wiring)) == ("exact", served)


def test_an_overlap_that_is_handed_the_list(tmp_path: Path) -> None:
    """A schedule that could capture leaves the answer open."""
    loop = _OVERLAP.replace("batch.", "self.config.").replace("residual=residual)", "residual=residual, aux=aux)")
    model = Model(top=_SCHEDULE.replace("residual):", "residual, aux):"), loop=loop)
    wiring = derive(tmp_path, model, "tbo")
    assert (wiring.status, str(wiring)) == ("unknown", "?")


def test_a_function_that_runs_the_layers_itself(tmp_path: Path) -> None:
    """However long it is, it is followed to its end: what it leaves is a state that the caller captures."""
    loop = f"""
hidden_states = self.embed_tokens(input_ids)
residual = None
aux = []
for i in range(len(self.layers)):
    if i in self.layers_to_capture:
        aux.append({_STATE})
    hidden_states, residual = run_layers(layers=self.layers[i : i + 1], hidden_states=hidden_states, residual=residual)
hidden_states, _ = self.norm(hidden_states, residual)
return hidden_states, aux
"""
    top = """
def run_layers(layers, hidden_states, residual):
    for layer in layers:
        hidden_states, residual = layer(hidden_states, residual)
    total = 0
    for count in range(1_000):
        total += count
    return hidden_states, residual
"""
    wiring = derive(tmp_path, Model(top=top, loop=loop))
    assert (wiring.status, str(wiring)) == ("exact", "h[2] ⊕ h[7] ⊕ h[10]")


def captured_if(test: str, top: str = "import os") -> Model:
    return Model(
        top=top,
        setter=f"shift = 1 if {test} else 2\nself.model.layers_to_capture = [i + shift for i in layer_ids]",
    )


@pytest.mark.parametrize(
    ("model", "assume", "served"),
    [
        (captured_if("os.getenv('FAST') == '1'"), (), "h[3] ⊕ h[8] ⊕ h[11]"),
        (captured_if("os.getenv('FAST') == '1'"), ("env:FAST=1",), "h[2] ⊕ h[7] ⊕ h[10]"),
        (captured_if("os.environ.get('FAST', '0') == '1'"), ("env:FAST=0",), "h[3] ⊕ h[8] ⊕ h[11]"),
        (captured_if("is_hip()", "from sglang.platform import is_hip"), (), "h[3] ⊕ h[8] ⊕ h[11]"),
        (captured_if("is_hip()", "from sglang.platform import is_hip"), ("platform=rocm",), "h[2] ⊕ h[7] ⊕ h[10]"),
        (captured_if("envs.FAST", "from sglang import envs"), (), "h[3] ⊕ h[8] ⊕ h[11]"),
        (captured_if("envs.FAST", "from sglang import envs"), ("env:FAST=1",), "h[2] ⊕ h[7] ⊕ h[10]"),
    ],
)
def test_variables_and_platforms(tmp_path: Path, model: Model, assume: tuple[str, ...], served: str) -> None:
    """A condition on either is decided by what is assumed; a module's own __getattr__ is asked."""
    envs = """
        import os

        variables = {"FAST": lambda: bool(int(os.getenv("FAST", "0")))}

        def __getattr__(name):
            if name in variables:
                return variables[name]()
            raise AttributeError(name)
    """
    wiring = derive(tmp_path, replace(model, extra={"envs.py": envs}), *assume)
    assert (wiring.status, str(wiring)) == ("exact", served)


def test_several_devices_are_a_condition(tmp_path: Path) -> None:
    """Partial sums are not told from sums: with two devices no answer is exact, and the line of the capture is named."""
    wiring = derive(tmp_path, Model(), "tp=2")
    assert (wiring.status, str(wiring)) == ("conditional", "h[2] ⊕ h[7] ⊕ h[10]")
    (condition,) = wiring.conditions
    assert condition.text.startswith("when each state is added up over the devices")
    assert condition.span is not None
    lines = (tmp_path / "sglang/srt/models/llama.py").read_text("utf-8").split("\n")
    assert "aux.append(" in lines[condition.span.start.line - 1]


def test_a_condition_names_its_line(tmp_path: Path) -> None:
    """In the JSON as a location, for people in brackets: the line that decides."""
    model = captured_if("flag()", "import os\n\ndef flag():\n    return len(os.environ) > 0")
    wiring = derive(tmp_path, model)
    (condition,) = wiring.conditions
    assert condition.span is not None
    location = wiring.to_json()["conditions"][0]["location"]
    line = (tmp_path / "sglang/srt/models/llama.py").read_text("utf-8").split("\n")[location["start"]["line"] - 1]
    assert line[location["start"]["column"] - 1 :].startswith("flag()")
