"""The ways in which engines write a capture, each as a small model: derived by eaglelint, and run to be sure."""

from __future__ import annotations

from pathlib import Path

import pytest

from eaglelint.wiring import LayerIds
from tests.engines.mini import BEFORE, Model, derive
from tests.engines.reference import captured

START = """
hidden_states = self.embed_tokens(input_ids)
residual = None
aux = []
"""
END = """
hidden_states, _ = self.norm(hidden_states, residual)
return hidden_states, aux
"""
STATE = "hidden_states + residual if residual is not None else hidden_states"
IDENTITY = "self.model.layers_to_capture = list(layer_ids or [2, 6, 9])"


def loop(body: str) -> str:
    return START + body + END


def captures(value: str, *, layer_call: str = "layer(hidden_states, residual)") -> str:
    """A loop that captures a value before each layer."""
    return loop(f"""
for i, layer in enumerate(self.layers):
    if i in self.layers_to_capture:
        {value}
    hidden_states, residual = {layer_call}
""")


SINGLE_LAYER = """
residual = hidden_states
hidden_states = residual + self.self_attn(self.input_layernorm(hidden_states))
return hidden_states + self.mlp(self.post_attention_layernorm(hidden_states))
"""
SINGLE_LOOP = """
hidden_states = self.embed_tokens(input_ids)
aux = []
for i, layer in enumerate(self.layers):
    if i in self.layers_to_capture:
        aux.append(hidden_states)
    hidden_states = layer(hidden_states)
return self.norm(hidden_states), aux
"""

DEFAULT = ("default", "h[2] h[6] h[9]")

# name: the model, then ids and what they capture in 12 layers
IDIOMS: dict[str, tuple[Model, list[tuple[LayerIds, str]]]] = {
    "append before the layer": (
        Model(),
        [DEFAULT, ((1, 5, 8), "h[2] h[6] h[9]"), ((0, 3, 10), "h[1] h[4] h[11]"), ((-1, 2), "h[0] h[3]")],
    ),
    "append after the layer": (
        Model(
            setter=IDENTITY,
            loop=loop("""
for i, layer in enumerate(self.layers):
    hidden_states, residual = layer(hidden_states, residual)
    if i in self.layers_to_capture:
        aux.append(hidden_states + residual)
"""),
        ),
        [((1, 5, 8), "h[2] h[6] h[9]"), ((0, 11), "h[1] h[12]")],
    ),
    "i - 1 in ids before the layer": (
        Model(
            setter=IDENTITY,
            loop=loop(f"""
for i in range(self.start_layer, self.end_layer):
    if i - 1 in self.layers_to_capture:
        aux.append({STATE})
    hidden_states, residual = self.layers[i](hidden_states, residual)
"""),
        ),
        [((1, 5, 8), "h[2] h[6] h[9]")],
    ),
    "idx + 1 in ids after the layer": (
        Model(
            setter=IDENTITY,
            loop=loop("""
for idx, layer in enumerate(self.layers):
    hidden_states, residual = layer(hidden_states, residual)
    if idx + 1 in self.layers_to_capture:
        aux.append(hidden_states + residual)
"""),
        ),
        [((2, 6, 12), "h[2] h[6] h[12]")],
    ),
    "enumerate over a slice, with a start": (
        Model(
            loop=loop(f"""
for i, layer in enumerate(islice(self.layers, self.start_layer, self.end_layer), start=self.start_layer):
    if i in self.layers_to_capture:
        aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual)
""")
        ),
        [DEFAULT],
    ),
    "a slice of an enumeration": (
        Model(
            loop=loop(f"""
for i, layer in islice(enumerate(self.layers), self.start_layer, self.end_layer):
    if i in self.layers_to_capture:
        aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual)
""")
        ),
        [DEFAULT],
    ),
    "an index that is rebound in the loop": (
        Model(
            loop=loop(f"""
for i, layer in enumerate(self.layers[self.start_layer : self.end_layer]):
    i = i + self.start_layer
    if i in self.layers_to_capture:
        aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual)
""")
        ),
        [DEFAULT],
    ),
    "a helper method": (
        Model(
            loop=loop("""
self.maybe_capture(aux, 0, hidden_states, residual)
for idx, layer in enumerate(self.layers):
    hidden_states, residual = layer(hidden_states, residual)
    self.maybe_capture(aux, idx + 1, hidden_states, residual)
"""),
            methods="""
def maybe_capture(self, aux, layer_idx, hidden_states, residual):
    if layer_idx in self.layers_to_capture:
        aux.append(hidden_states + residual if residual is not None else hidden_states)
""",
        ),
        [DEFAULT, ((-1, 11), "h[0] h[12]")],
    ),
    "a helper that a mixin brings": (
        Model(
            top="""
class CapturesStates:
    def maybe_capture(self, aux, layer_idx, value):
        return [*aux, value] if layer_idx in self.layers_to_capture else aux
""",
            model_bases="CapturesStates, ",
            loop=loop(f"""
for i, layer in enumerate(self.layers):
    aux = self.maybe_capture(aux, i, {STATE})
    hidden_states, residual = layer(hidden_states, residual)
"""),
        ),
        [DEFAULT],
    ),
    "a flag on each layer": (
        Model(
            setter="""
ids = [2, 6, 9] if layer_ids is None else [i + 1 for i in layer_ids]
for index in ids:
    setattr(self.model.layers[index], "_is_layer_to_capture", True)
""",
            loop=loop(f"""
for layer in self.layers:
    if getattr(layer, "_is_layer_to_capture", False):
        aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual)
"""),
        ),
        [DEFAULT, ((0, 3, 10), "h[1] h[4] h[11]")],
    ),
    "the list handed to the layer by keyword": (
        Model(
            layer_args="hidden_states, residual, captured=None",
            layer="""
if residual is None:
    residual = hidden_states
    hidden_states = self.input_layernorm(hidden_states)
else:
    hidden_states, residual = self.input_layernorm(hidden_states, residual)
if captured is not None:
    captured.append(residual)
hidden_states = self.self_attn(hidden_states)
hidden_states, residual = self.post_attention_layernorm(hidden_states, residual)
return self.mlp(hidden_states), residual
""",
            loop=loop("""
for i, layer in enumerate(self.layers):
    hidden_states, residual = layer(
        hidden_states, residual, captured=aux if i in self.layers_to_capture else None
    )
"""),
        ),
        [DEFAULT, ((-1, 2), "h[0] h[3]")],
    ),
    "a bound method handed to the layer": (
        Model(
            top="""
class Collector:
    def __init__(self):
        self.states = []

    def capture(self, state):
        self.states.append(state.clone())
""",
            layer_args="hidden_states, residual, capture=None",
            layer="""
if capture is not None:
    capture(hidden_states if residual is None else hidden_states + residual)
if residual is None:
    residual = hidden_states
    hidden_states = self.input_layernorm(hidden_states)
else:
    hidden_states, residual = self.input_layernorm(hidden_states, residual)
hidden_states = self.self_attn(hidden_states)
hidden_states, residual = self.post_attention_layernorm(hidden_states, residual)
return self.mlp(hidden_states), residual
""",
            loop="""
hidden_states = self.embed_tokens(input_ids)
residual = None
collector = Collector()
for i, layer in enumerate(self.layers):
    capture = collector.capture if i in self.layers_to_capture else None
    hidden_states, residual = layer(hidden_states, residual, capture=capture)
hidden_states, _ = self.norm(hidden_states, residual)
return hidden_states, collector.states
""",
        ),
        [DEFAULT],
    ),
    "a closure": (
        Model(
            loop=loop("""
def capture(index, state, rest):
    if index in self.layers_to_capture:
        aux.append(state if rest is None else state + rest)

for i, layer in enumerate(self.layers):
    capture(i, hidden_states, residual)
    hidden_states, residual = layer(hidden_states, residual)
""")
        ),
        [DEFAULT],
    ),
    "a capture after the loop": (
        Model(
            loop=loop(f"""
for i in range(self.start_layer, self.end_layer):
    if i in self.layers_to_capture:
        aux.append({STATE})
    hidden_states, residual = self.layers[i](hidden_states, residual)
if self.end_layer in self.layers_to_capture:
    aux.append(hidden_states + residual)
""")
        ),
        [DEFAULT, ((2, 11), "h[3] h[12]")],
    ),
    "the residual after a fused norm": (
        Model(
            loop="""
hidden_states = self.embed_tokens(input_ids)
residual = None
aux = []
for i, layer in enumerate(self.layers):
    if residual is None:
        residual, normed = hidden_states, self.entry_norm(hidden_states)
    else:
        normed, residual = self.entry_norm(hidden_states, residual)
    if i in self.layers_to_capture:
        aux.append(residual)
    hidden_states, residual = layer(hidden_states=normed, residual=residual)
hidden_states, _ = self.norm(hidden_states, residual)
return hidden_states, aux
""",
            init="self.entry_norm = RMSNorm(config.hidden_size)",
            layer="""
hidden_states = self.self_attn(hidden_states)
hidden_states, residual = self.post_attention_layernorm(hidden_states, residual)
return self.mlp(hidden_states), residual
""",
        ),
        [],  # the norm stands outside the layers, and so the stream is not what a layer is handed: see below
    ),
    "a layer that adds the residual itself": (
        Model(layer=SINGLE_LAYER, layer_args="hidden_states", loop=SINGLE_LOOP),
        [DEFAULT, ((-1, 10), "h[0] h[11]")],
    ),
    "a norm on each branch": (
        Model(
            layer="""
branch = self.input_layernorm(self.self_attn(hidden_states))
hidden_states = hidden_states + branch
branch = self.post_attention_layernorm(self.mlp(hidden_states))
return hidden_states + branch
""",
            layer_args="hidden_states",
            loop=SINGLE_LOOP,
        ),
        [DEFAULT],
    ),
    "a clone": (Model(loop=captures(f"aux.append(({STATE}).clone())")), [DEFAULT]),
    "an all-gather": (
        Model(
            top="""
def tensor_model_parallel_all_gather(tensor, dim=-1):
    return tensor.view(-1)
""",
            loop=captures(f"aux.append(tensor_model_parallel_all_gather({STATE}, dim=0))"),
        ),
        [DEFAULT],
    ),
    "a set of ids": (
        Model(setter="self.model.layers_to_capture = {i + 1 for i in layer_ids or [1, 5, 8]}"),
        [DEFAULT, ((8, 1, 1), "h[2] h[9]")],
    ),
    "a default list, then shifted": (
        Model(
            setter="""
if layer_ids is None:
    layer_ids = [1, 5, 8]
self.model.layers_to_capture = tuple(map(lambda i: i + 1, layer_ids))
"""
        ),
        [DEFAULT, ((0, 3, 10), "h[1] h[4] h[11]")],
    ),
    "a setter that looks at the first id": (
        Model(
            setter="""
if layer_ids is None:
    self.model.layers_to_capture = [2, 6, 9]
elif layer_ids[0] == 1:
    self.model.layers_to_capture = [i + 1 for i in layer_ids]
else:
    self.model.layers_to_capture = list(layer_ids)
"""
        ),
        [DEFAULT, ((1, 5, 8), "h[2] h[6] h[9]"), ((2, 6, 9), "h[2] h[6] h[9]")],
    ),
    "a setter that looks for an id N": (
        Model(
            setter="""
n = self.config.num_hidden_layers
shift = 0 if layer_ids and max(layer_ids) == n else 1
self.model.layers_to_capture = [i + shift for i in layer_ids or [1, n // 2 - 1, n - 4]]
""",
            loop=BEFORE.replace(
                "hidden_states, _ =",
                "if self.end_layer in self.layers_to_capture:\n"
                "    aux.append(hidden_states + residual)\n"
                "hidden_states, _ =",
            ),
        ),
        [DEFAULT, ((1, 5, 11), "h[2] h[6] h[12]"), ((1, 5, 12), "h[1] h[5] h[12]")],
    ),
    "ids sorted and made unique": (
        Model(setter="self.model.layers_to_capture = tuple(sorted(set(layer_ids or (9, 2, 6))))"),
        [DEFAULT, ((9, 2, 9), "h[2] h[9]")],
    ),
    "unsorted and duplicate ids are captured in the order of the layers": (
        Model(),
        [((8, 1, 5), "h[2] h[6] h[9]"), ((5, 5, 1), "h[2] h[6]")],
    ),
    "a dict read in the order of the list": (
        Model(
            loop=START
            + f"""
states = {{}}
for i, layer in enumerate(self.layers):
    states[i] = {STATE}
    hidden_states, residual = layer(hidden_states, residual)
aux = [states[i] for i in self.layers_to_capture]
"""
            + END
        ),
        [((8, 1, 1), "h[9] h[2] h[2]")],
    ),
    "a packed buffer": (
        Model(
            loop=START
            + f"""
packed, width = None, None
position = 0
for i, layer in enumerate(self.layers):
    if i in self.layers_to_capture:
        state = {STATE}
        if packed is None:
            width = state.shape[-1]
            packed = state.new_empty((state.shape[0], len(self.layers_to_capture) * width))
        packed[..., position * width : (position + 1) * width].copy_(state)
        position += 1
    hidden_states, residual = layer(hidden_states, residual)
hidden_states, _ = self.norm(hidden_states, residual)
return hidden_states, packed
""",
            extra={
                "srt/layers/logits_processor.py": """
from torch import nn

class LogitsProcessor(nn.Module):
    def forward(self, input_ids, hidden_states, lm_head, logits_metadata, aux_hidden_states=None):
        return self._get_hidden_states_to_store(hidden_states, None, aux_hidden_states, logits_metadata)

    def _get_hidden_states_to_store(
        self, hidden_states, hidden_states_before_norm, aux_hidden_states, logits_metadata
    ):
        return aux_hidden_states
"""
            },
        ),
        [DEFAULT, ((0, 3), "h[1] h[4]")],
    ),
    "the normed state": (
        Model(
            loop=START
            + """
for layer in self.layers:
    hidden_states, residual = layer(hidden_states, residual)
hidden_states, _ = self.norm(hidden_states, residual)
return hidden_states, [hidden_states]
"""
        ),
        [("default", "norm(h[12])")],
    ),
    "a branch without the residual": (
        Model(loop=captures("aux.append(hidden_states)")),
        [("default", "partial(h[2]) partial(h[6]) partial(h[9])"), ((-1, 2), "h[0] partial(h[3])")],
    ),
    "layers that __init__ appends one by one": (
        Model(
            init="""
self.layers = nn.ModuleList()
for index in range(config.num_hidden_layers):
    self.layers.append(LlamaDecoderLayer(config, index))
"""
        ),
        [DEFAULT],
    ),
    "a property with a setter": (
        Model(
            init="self._ids = []",
            methods="""
@property
def ids(self):
    return self._ids

@ids.setter
def ids(self, ids):
    self._ids = [i + 1 for i in ids]
""",
            setter="self.model.ids = layer_ids or [1, 5, 8]",
            loop=BEFORE.replace("self.layers_to_capture", "self.ids"),
        ),
        [DEFAULT, ((0, 3), "h[1] h[4]")],
    ),
}


@pytest.mark.parametrize(
    ("name", "ids", "slots"),
    [(name, ids, slots) for name, (_, cases) in IDIOMS.items() for ids, slots in cases],
    ids=lambda value: value if isinstance(value, str) else ",".join(map(str, value)),
)
def test_an_idiom_is_followed(tmp_path: Path, name: str, ids: tuple[int, ...] | str, slots: str) -> None:
    """What eaglelint derives exactly is what the model captures when it runs."""
    model = IDIOMS[name][0]
    wiring = derive(tmp_path, model, ids)  # type: ignore[arg-type]
    assert (wiring.status, " ".join(map(str, wiring.slots))) == ("exact", slots), wiring.reason
    assert captured(tmp_path, None if ids == "default" else list(ids)) == slots.split()  # type: ignore[arg-type]


DELEGATES = {
    "plain": "self.language_model.set_eagle3_layers_to_capture(layer_ids)",
    "guarded by hasattr": """
if hasattr(self.language_model, "set_eagle3_layers_to_capture"):
    self.language_model.set_eagle3_layers_to_capture(layer_ids)
""",
    "shifted before": """
if layer_ids is not None:
    layer_ids = [i - 1 for i in layer_ids]
self.language_model.set_eagle3_layers_to_capture(layer_ids)
""",
}


@pytest.mark.parametrize(
    ("name", "slots"), [("plain", "h[2] h[6]"), ("guarded by hasattr", "h[2] h[6]"), ("shifted before", "h[1] h[5]")]
)
def test_a_wrapper_is_followed(tmp_path: Path, name: str, slots: str) -> None:
    """A multimodal class hands the ids to its language model, in whatever way."""
    body = "\n".join("        " + line for line in DELEGATES[name].strip().split("\n"))
    wrapper = f"""
import torch
from torch import nn
from sglang.srt.models.llama import LlamaForCausalLM

class VisionForConditionalGeneration(nn.Module):
    def __init__(self, config, quant_config=None, prefix=""):
        super().__init__()
        self.language_model = LlamaForCausalLM(config)

    def forward(self, input_ids, positions, forward_batch):
        return self.language_model(input_ids, positions, forward_batch)

    def set_eagle3_layers_to_capture(self, layer_ids=None):
{body}
"""
    model = Model(extra={"srt/models/vision.py": wrapper})
    wiring = derive(tmp_path, model, (1, 5), name="VisionForConditionalGeneration")
    assert (wiring.status, " ".join(map(str, wiring.slots))) == ("exact", slots), wiring.reason
    assert wiring.target_class == "VisionForConditionalGeneration"


def test_layers_that_are_run_by_their_method(tmp_path: Path) -> None:
    """``layer.forward(...)`` is ``layer(...)``: what a layer computes is no reason to give the model up."""
    loop = BEFORE.replace("self.layers[i](hidden_states, residual)", "self.layers[i].forward(hidden_states, residual)")
    assert loop != BEFORE
    work = "\n".join(f"if hidden_states.a{number}: hidden_states = hidden_states * 2" for number in range(12))
    layer = Model().layer.replace("return self.mlp", f"{work}\nreturn self.mlp")
    for body in (BEFORE, loop):
        wiring = derive(tmp_path, Model(loop=body, layer=layer), (1, 5))
        assert (wiring.status, " ".join(map(str, wiring.slots))) == ("exact", "h[2] h[6]"), wiring.reason


def test_a_norm_outside_the_layers(tmp_path: Path) -> None:
    """Where the stream passes between layers in another form, states are either right or left open."""
    model = IDIOMS["the residual after a fused norm"][0]
    wiring = derive(tmp_path, model)
    assert wiring.status == "unknown" or captured(tmp_path, None) == list(map(str, wiring.slots))


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ("x, g, residual=None", "OutputNorm"),  # what would be added has a name of its own
        ("x, gate", "OutputNorm"),
        ("x, z", "OutputNorm"),
        ("*args", "RMSNormGated"),
    ],
)
def test_a_norm_that_is_handed_a_gate(tmp_path: Path, parameters: str, name: str) -> None:
    """It gives one state, to which nothing was added; the state is one that a layer computes."""
    top = f"""
class {name}(nn.Module):
    def __init__(self, size):
        self.weight = nn.Parameter(size)

    def forward(self, {parameters}):
        return fused_gate(self.weight)
"""
    model = Model(
        top=top,
        layer_init="self.out_norm = " + name + "(config.hidden_size)",
        layer="""
residual = hidden_states if residual is None else hidden_states + residual
hidden_states = self.input_layernorm(residual)
hidden_states = self.out_norm(self.self_attn(hidden_states), self.mlp(hidden_states)).squeeze(0)
return hidden_states, residual
""",
    )
    wiring = derive(tmp_path, model, (1, 5))
    assert (wiring.status, " ".join(map(str, wiring.slots))) == ("exact", "h[2] h[6]"), wiring.reason


def test_the_evidence_names_the_lines(tmp_path: Path) -> None:
    """The setter, each capture and the concatenation, with the file and line where they stand."""
    wiring = derive(tmp_path, Model(), (1, 5))
    source = (tmp_path / "sglang/srt/models/llama.py").read_text("utf-8").split("\n")
    setter, *captures, concat = wiring.evidence
    assert "layer_id + 1" in source[setter.line - 1]
    assert setter.note == "layers_to_capture = [2, 6]"
    assert [(item.slot, "aux.append" in source[item.line - 1]) for item in captures] == [(0, True), (1, True)]
    assert (concat.path, concat.note) == (
        "sglang/srt/layers/logits_processor.py",
        "torch.cat(aux_hidden_states, dim=-1)",
    )


def test_evidence_names_the_call_of_the_layer(tmp_path: Path) -> None:
    """A capture inside a layer that stands in another file is shown with the line that hands it the list."""
    layer = """
from torch import nn
from sglang.srt.layers.layernorm import RMSNorm

class OtherDecoderLayer(nn.Module):
    def __init__(self, config):
        self.norm = RMSNorm(1)
        self.mlp = nn.Linear(1, 1)

    def forward(self, hidden_states, captured=None):
        if captured is not None:
            captured.append(hidden_states)
        return hidden_states + self.mlp(self.norm(hidden_states))
"""
    model = Model(
        top="from sglang.srt.models.other import OtherDecoderLayer",
        extra={"srt/models/other.py": layer},
        init="self.layers = nn.ModuleList([OtherDecoderLayer(config) for _ in range(config.num_hidden_layers)])",
        loop="""
hidden_states = self.embed_tokens(input_ids)
aux = []
for i, layer in enumerate(self.layers):
    hidden_states = layer(hidden_states, captured=aux if i in self.layers_to_capture else None)
return self.norm(hidden_states), aux
""",
    )
    wiring = derive(tmp_path, model, (1,))
    assert (wiring.status, str(wiring)) == ("exact", "h[2]")
    assert [(item.path.rsplit("/", 1)[-1], item.note) for item in wiring.evidence if item.slot == 0] == [
        ("llama.py", "layer(hidden_states, captured=aux if i in self.layers_to_capture else None)"),
        ("other.py", "captured.append(hidden_states)"),
    ]
