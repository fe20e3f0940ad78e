"""Models put together at random: whatever is called exact is what the model captures when it runs."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engines.mini import Model, derive
from tests.engines.reference import captured

N = 6

PAIR_LAYER = Model().layer
IN_PLACE_PAIR = """
if residual is None:
    residual = hidden_states.clone()
else:
    residual += hidden_states
hidden_states = self.self_attn(self.input_layernorm(residual))
residual.add_(hidden_states)
return self.mlp(self.post_attention_layernorm(residual)), residual
"""
RESIDUAL_FIRST = """
if residual is not None:
    hidden_states = hidden_states + residual
residual = hidden_states
hidden_states = residual + self.self_attn(self.input_layernorm(hidden_states))
return self.mlp(self.post_attention_layernorm(hidden_states)), hidden_states
"""

whole = "(hidden_states + residual if residual is not None else hidden_states)"
values = st.sampled_from([whole, whole, f"{whole}.clone()", "hidden_states", "hidden_states.clone()"])
indices = st.sampled_from(["i", "i - 1", "i + 1", "layer.layer_id", "count", "len(aux)"])
conditions = st.one_of(
    indices.map(lambda index: f"{index} in self.layers_to_capture"),
    st.tuples(indices, st.integers(-1, N)).map(lambda pair: f"{pair[0]} == {pair[1]}"),
    st.integers(2, 4).map(lambda step: f"i % {step} == 1"),
    st.integers(0, N).map(lambda bound: f"not i < {bound} and i in self.layers_to_capture"),
)
stores = st.sampled_from(
    [
        "aux.append({})",
        "aux.insert(0, {})",
        "aux += [{}]",
        "aux = aux + [{}]",
        "aux = [*aux, {}]",
        "aux[len(aux):] = [{}]",
    ]
)
captures = st.tuples(conditions, stores, values).map(lambda parts: f"if {parts[0]}:\n    " + parts[1].format(parts[2]))
extras = st.sampled_from(
    [
        "",
        "",
        "kept = aux",
        "if len(aux) > 2:\n    del aux[0]",
        "if i == 3:\n    aux = aux[1:]",
        "if i == 2:\n    continue",
        "if aux:\n    aux[-1] = aux[-1] + 0",
    ]
)
headers = st.sampled_from(
    [
        "for i, layer in enumerate(self.layers):",
        "for i, layer in enumerate(islice(self.layers, 0, self.end_layer), start=0):",
        "for i in range(self.start_layer, self.end_layer):\n    layer = self.layers[i]",
        "for i, layer in zip(range(len(self.layers)), self.layers):",
        "for i, layer in enumerate(self.layers[1:], 1):",
        "for layer in reversed(self.layers):\n    i = layer.layer_id",
    ]
)
endings = st.sampled_from(
    [
        "",
        "",
        "aux.reverse()",
        "aux = aux[::-1]",
        "aux = sorted(range(len(aux)))[:0] + aux",
        "aux = aux[:2]",
        "aux = kept",
    ]
)
setters = st.sampled_from(
    [
        "self.model.layers_to_capture = [i + 1 for i in layer_ids]",
        "self.model.layers_to_capture = list(layer_ids)",
        "self.model.layers_to_capture = tuple(sorted(set(layer_ids)))",
        "self.model.layers_to_capture = {i for i in layer_ids if i >= 0}",
        "ids = layer_ids[:]\nids[0] -= 1\nself.model.layers_to_capture = ids",
    ]
)
CALL = "hidden_states, residual = layer(hidden_states, residual)"


@st.composite
def models(draw: st.DrawFn) -> Model:
    before = draw(st.lists(captures, max_size=2))
    after = draw(st.lists(captures, max_size=1))
    body = "\n".join([*before, draw(extras), CALL, "count += 1", *after])
    body = "\n".join("    " + line for line in body.split("\n"))
    loop = f"""
hidden_states = self.embed_tokens(input_ids)
residual = None
aux = []
kept = aux
count = 0
{draw(headers)}
{body}
{draw(endings)}
hidden_states, _ = self.norm(hidden_states, residual)
return hidden_states, aux
"""
    layer = draw(st.sampled_from([PAIR_LAYER, PAIR_LAYER, IN_PLACE_PAIR, RESIDUAL_FIRST]))
    return Model(loop=loop, layer=layer, setter=draw(setters))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(models(), st.lists(st.integers(-1, N), min_size=1, max_size=4))
def test_exact_is_never_wrong(model: Model, ids: list[int]) -> None:
    """Two loops of captures, aliases, slices and in-place sums; where the answer is not exact, it says why."""
    with TemporaryDirectory() as directory:
        wiring = derive(Path(directory), model, tuple(ids), N)
        if wiring.status == "exact" and not wiring.faults:
            assert [str(slot) for slot in wiring.slots] == captured(Path(directory), ids, N)
        else:
            assert wiring.reason or wiring.conditions
