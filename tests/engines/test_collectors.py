"""Layers that are handed what they collect states with: computed once for a class, and right for each of them.

Each model here is also run; a layer that does more with a collector than to call it is followed as it stands.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from eaglelint.derive import Deriver, ServingRequest
from eaglelint.source import layer_summaries, layers
from eaglelint.source.layers import run_layer
from tests.engines.mini import Model, derive, handle, write_engine
from tests.engines.reference import captured
from tests.engines.test_hard_cases import NORMS_THAT_ADD
from tests.engines.test_idioms import STATE, loop

KEEPER = """
class Keeper:
    def __init__(self):
        self.states = {}
        self.count = 0

    def append(self, state):
        self.states[self.count] = state
        self.count += 1

    def __len__(self):
        return self.count
"""


def collecting(layer: str, handed: str = "aux", *, top: str = "", before: str = "", after: str = "") -> Model:
    """Layers that are handed a collector where their input is to be captured, else None."""
    return Model(
        top=top,
        layer_args="hidden_states, residual, collector=None",
        layer=layer + NORMS_THAT_ADD,
        loop=loop(f"""
{before}
for i, layer in enumerate(self.layers):
    hidden_states, residual = layer(hidden_states, residual, {handed} if i in self.layers_to_capture else None)
{after}
"""),
    )


def in_place(layer: str) -> Model:
    """Layers that add to the one state that they are handed."""
    return Model(
        layer_args="hidden_states, collector=None",
        layer=layer,
        loop="""
hidden_states = self.embed_tokens(input_ids)
aux = []
for i, layer in enumerate(self.layers):
    hidden_states = layer(hidden_states, aux if i in self.layers_to_capture else None)
return self.norm(hidden_states), aux
""",
    )


ASKED = f"if collector is not None:\n    collector.append({STATE})\n"
CALLED = f"if collector is not None:\n    collector({STATE})\n"
ADDED = """\
hidden_states += self.self_attn(self.input_layernorm(hidden_states))
hidden_states += self.mlp(self.post_attention_layernorm(hidden_states))
"""
TO_NEW = "state = hidden_states + self.self_attn(self.input_layernorm(hidden_states))\n"
# Each answered by one run of a layer without and one with a collector.
FORESEEN = {
    "a list": collecting(ASKED),
    "a method of a list": collecting(CALLED, "aux.append"),
    "a list of its own class": collecting(
        ASKED, "kept", top="class Kept(list):\n    pass", before="kept = Kept()", after="aux = kept"
    ),
    "a function around it": collecting(CALLED, "keep", before="def keep(state):\n    aux.append(state)"),
    "a function that chooses": collecting(
        CALLED,
        "keep",
        before="""
seen = []
def keep(state):
    seen.append(1)
    if len(seen) != 2:
        aux.append(state)
""",
    ),
}
FORESEEN["through another function"] = Model(
    layer_args="hidden_states, residual, collector=None",
    layer=f"keep({STATE}, collector=collector)\n" + NORMS_THAT_ADD,
    top="""
def keep(state, **given):
    if given.get("collector") is not None:
        given["collector"].append(state)
""",
    loop=FORESEEN["a list"].loop,
)
# Each followed as it stands.
NOT_FORESEEN = {
    "the layer counts": collecting(
        f"if collector is not None and len(collector) < 2:\n    collector.append({STATE})\n"
    ),
    "the layer asks whether there are any": collecting(
        f"if collector is not None and not collector:\n    collector.append({STATE})\n"
    ),
    "the layer adds a list": collecting(f"if collector is not None:\n    collector += [{STATE}]\n"),
    "the layer reads an item": collecting(
        f"if collector is not None:\n    collector.append({STATE})\n    collector.append(collector[0])\n"
    ),
    "the layer uses the result": collecting(
        "if collector is not None:\n    hidden_states = collector(hidden_states)\n",
        "keep",
        before="def keep(state):\n    aux.append(state)\n    return state",
    ),
    "the layer empties it": collecting(
        f"if collector is not None:\n    collector.clear()\n    collector.append({STATE})\n"
    ),
    "the layer asks an object": collecting(
        f"if collector is not None and collector.count < 2:\n    collector.append({STATE})\n",
        "keeper",
        top=KEEPER,
        before="keeper = Keeper()",
        after="aux = list(keeper.states.values())",
    ),
    "an object that counts": collecting(
        ASKED, "keeper", top=KEEPER, before="keeper = Keeper()", after="aux = list(keeper.states.values())"
    ),
    "its method": collecting(
        CALLED, "keeper.append", top=KEEPER, before="keeper = Keeper()", after="aux = list(keeper.states.values())"
    ),
    "the layer keeps it": Model(
        layer_args="hidden_states, residual, collector=None",
        layer=f"if collector is not None:\n    KEPT.append(collector)\nif KEPT:\n    KEPT[0].append({STATE})\n"
        + NORMS_THAT_ADD,
        top="KEPT = []",
        loop=FORESEEN["a list"].loop.replace("for i,", "KEPT.clear()\nfor i,"),
    ),
}
KEPT = "if collector is not None:\n    collector.append({})\n".format
RETURNED = "return hidden_states"
ALIASES = {
    "what is captured is added to": in_place(KEPT("hidden_states") + ADDED + RETURNED),
    "a copy is captured": in_place(KEPT("hidden_states.clone()") + ADDED + RETURNED),
    "what was added to is captured": in_place(ADDED + KEPT("hidden_states.clone()") + RETURNED),
    "before and after": in_place(KEPT("hidden_states.clone()") + ADDED + KEPT("hidden_states.clone()") + RETURNED),
    "what the layer makes and adds to later": in_place(
        TO_NEW + KEPT("state") + "state += self.mlp(self.post_attention_layernorm(state))\nreturn state"
    ),
    "what the layer returns": in_place(
        TO_NEW + "state = state + self.mlp(self.post_attention_layernorm(state))\n" + KEPT("state") + "return state"
    ),
    "what the next layer adds to": in_place(
        "hidden_states += self.self_attn(self.input_layernorm(hidden_states))\n"
        "state = hidden_states + self.mlp(self.post_attention_layernorm(hidden_states))\n"
        + KEPT("state")
        + "return state"
    ),
}


def runs_of(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """Which layers are run from here on; None for one that stands for its class."""
    ran: list[int | None] = []

    def noted(machine, layer, *given):  # type: ignore[no-untyped-def]
        ran.append(layer.layer)
        return run_layer(machine, layer, *given)

    monkeypatch.setattr(layers, "run_layer", noted)
    monkeypatch.setattr(layer_summaries, "run_layer", noted)
    return ran


@pytest.mark.parametrize("name", FORESEEN)
def test_a_layer_that_collects_is_run_once_for_its_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The first layer is handed None for a residual: it is one of a kind, and so is one that collects."""
    ran = runs_of(monkeypatch)
    found = handle(write_engine(tmp_path, FORESEEN[name]))
    binding = found.engine.target_class(found.source, "LlamaForCausalLM")
    assert binding is not None
    deriver = Deriver(found.engine, found.source, 12)
    for ids in ((1, 3, 5, 7, 8, 10), (4, 8)):
        wiring = deriver.derive(ServingRequest(binding, 12, {"num_hidden_layers": 12}, layer_ids=ids)).wiring
        assert (wiring.status, [str(slot) for slot in wiring.slots]) == ("exact", captured(tmp_path, list(ids)))
    assert ran == [None] * 3


@pytest.mark.parametrize("name", NOT_FORESEEN)
def test_a_layer_that_does_more_with_a_collector(tmp_path: Path, name: str) -> None:
    for ids in (None, [0, 3, 10]):
        wiring = derive(tmp_path, NOT_FORESEEN[name], "default" if ids is None else tuple(ids))
        assert (wiring.status, [str(slot) for slot in wiring.slots]) == ("exact", captured(tmp_path, ids)), (
            wiring.reason
        )


@pytest.mark.parametrize("name", ALIASES)
def test_what_is_collected_shares_its_memory(tmp_path: Path, name: str) -> None:
    """A state that is stored without a copy is what the layers make of it; within a layer, it is no boundary."""
    for ids in (None, [0, 3, 10]):
        wiring = derive(tmp_path, ALIASES[name], "default" if ids is None else tuple(ids))
        states = ["?" if state == "other" else state for state in captured(tmp_path, ids)]
        assert [str(slot) for slot in wiring.slots] == states, wiring.reason
        assert wiring.status == ("unknown" if "?" in states else "exact")


FUSED = {
    "srt/layers/layernorm.py": """
from torch import nn
from sgl_kernel import fused_add_rmsnorm

class RMSNorm(nn.Module):
    def forward(self, x, residual=None):
        if residual is None:
            return self.weight * x
        fused_add_rmsnorm(x, residual, self.weight)
        return x, residual
"""
}
BETWEEN_NORMS = """
if residual is None:
    residual = hidden_states
    hidden_states = self.input_layernorm(hidden_states)
else:
    hidden_states, residual = self.input_layernorm(hidden_states, residual)
if collector is not None:
    collector.append({})
hidden_states, residual = self.post_attention_layernorm(self.self_attn(hidden_states), residual)
return self.mlp(hidden_states), residual
""".format


def capturing(state: str) -> Model:
    """Layers that capture between two norms that add in place."""
    return Model(
        layer_args="hidden_states, residual, collector=None",
        layer=BETWEEN_NORMS(state),
        loop=FORESEEN["a list"].loop,
        extra=FUSED,
    )


def test_a_state_that_a_norm_of_the_layer_adds_to(tmp_path: Path) -> None:
    """The norm after the capture adds to the residual, which is the state that was stored, in its memory."""
    wiring = derive(tmp_path, capturing("residual"))
    assert (wiring.status, str(wiring)) == ("conditional", "h[2] ⊕ h[6] ⊕ h[9]")
    assert ["RMSNorm does not add in place" in condition.text for condition in wiring.conditions] == [True]
    copied = derive(tmp_path, capturing("residual.clone()"))
    assert (copied.status, str(copied)) == ("exact", "h[2] ⊕ h[6] ⊕ h[9]")


EVERY = {
    **FORESEEN,
    **NOT_FORESEEN,
    **ALIASES,
    "a residual without a copy": capturing("residual"),
    "a copy of the residual": capturing("residual.clone()"),
}


@pytest.mark.parametrize("name", EVERY)
def test_the_answer_is_that_of_each_layer_run_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """To the last line of evidence."""
    for ids in ("default", (0, 3, 10), tuple(range(11))):
        found = derive(tmp_path, EVERY[name], ids)
        with monkeypatch.context() as patched:
            patched.setattr(layer_summaries, "summarised", lambda *given: None)
            assert found == derive(tmp_path, EVERY[name], ids)
