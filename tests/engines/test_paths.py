"""Paths that meet again: branches of one layer, a condition that decides in two places, tables of layer classes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.mini import Model, derive

FUSED = """
if residual is None:
    residual = hidden_states
    hidden_states = self.input_layernorm(hidden_states)
else:
    hidden_states, residual = self.input_layernorm(hidden_states, residual)
"""

EITHER_BRANCH = (
    FUSED
    + """
if self.kind == "linear":
    hidden_states = self.linear_attn(hidden_states)
elif self.kind == "full":
    hidden_states = self.self_attn(hidden_states)
else:
    raise ValueError("kind")
if self.scale:
    hidden_states = hidden_states * self.factor
hidden_states, residual = self.post_attention_layernorm(hidden_states, residual)
return self.mlp(hidden_states), residual
"""
)


def test_which_module_computed_a_branch_does_not_matter(tmp_path: Path) -> None:
    """Attention of one kind or another, scaled or not: the stream is what the layers add, whichever it was."""
    model = Model(
        layer=EITHER_BRANCH,
        layer_init="""
            self.kind = config.layer_types[layer_id]
            self.scale = config.layer_scale
            self.factor = nn.Parameter(1.0)
            self.linear_attn = nn.Linear(1, 1)
        """,
    )
    wiring = derive(tmp_path, model)
    assert (wiring.status, str(wiring)) == ("exact", "h[2] ⊕ h[6] ⊕ h[9]")


def test_a_captured_part_stays_apart_from_the_whole(tmp_path: Path) -> None:
    """Inside a layer the residual before and after a branch are two states; they are not taken for one."""
    model = Model(
        layer_args="hidden_states, residual, aux=None",
        layer="""
            if residual is None:
                residual = hidden_states
                hidden_states = self.input_layernorm(hidden_states)
            else:
                hidden_states, residual = self.input_layernorm(hidden_states, residual)
            before = residual
            hidden_states = self.self_attn(hidden_states)
            hidden_states, residual = self.post_attention_layernorm(hidden_states, residual)
            if aux is not None:
                aux.append(before if self.early else residual)
            return self.mlp(hidden_states), residual
        """,
        layer_init="self.early = config.early",
        loop="""
            hidden_states = self.embed_tokens(input_ids)
            residual = None
            aux = []
            for i in range(len(self.layers)):
                hidden_states, residual = self.layers[i](
                    hidden_states, residual, aux if i in self.layers_to_capture else None
                )
            hidden_states, _ = self.norm(hidden_states, residual)
            return hidden_states, aux
        """,
    )
    assert derive(tmp_path, model).status != "exact"


TWO_NORMS = """
class PlainNorm(nn.Module):
    def __init__(self, size):
        super().__init__()

    def forward(self, hidden_states, residuals=None):
        hidden_states = self.weight * hidden_states
        return hidden_states, residuals


def make_norm(config):
    eps = getattr(config, "rms_norm_eps", None)
    if eps is not None:
        return RMSNorm(config.hidden_size)
    return PlainNorm(config.hidden_size)
"""


def test_one_condition_decides_in_the_layer_and_in_the_model(tmp_path: Path) -> None:
    """What a truth value depends on is remembered: the layer's norm and the model's test of it go together."""
    model = Model(
        top=TWO_NORMS,
        layer_init="""
            self.input_layernorm = make_norm(config)
            self.fused = isinstance(self.input_layernorm, RMSNorm)
        """,
        layer="""
            if not self.fused:
                residual = hidden_states
                hidden_states, residual = self.input_layernorm(hidden_states, residual)
            elif residual is None:
                residual = hidden_states
                hidden_states = self.input_layernorm(hidden_states)
            else:
                hidden_states, residual = self.input_layernorm(hidden_states, residual)
            block = self.self_attn(hidden_states) + self.mlp(hidden_states)
            if self.fused:
                return block, residual
            return residual + block, residual
        """,
        init="""
            self.norm = make_norm(config)
            self.fused = isinstance(self.norm, RMSNorm)
        """,
        loop="""
            hidden_states = self.embed_tokens(input_ids)
            residual = None
            aux = []
            for i in range(len(self.layers)):
                hidden_states, residual = self.layers[i](hidden_states, residual)
                if i + 1 in self.layers_to_capture:
                    aux.append(hidden_states + residual if self.fused else hidden_states)
            hidden_states, _ = self.norm(hidden_states, residual)
            return hidden_states, aux
        """,
    )
    wiring = derive(tmp_path, model)
    assert (wiring.status, str(wiring)) == ("exact", "h[2] ⊕ h[6] ⊕ h[9]")


TABLE = """
class MambaLayer(nn.Module):
    def __init__(self, config, layer_id):
        super().__init__()
        self.norm = RMSNorm(config.hidden_size)
        self.mixer = nn.Linear(1, 1)

    def forward(self, hidden_states, residual):
        if residual is None:
            residual = hidden_states
            hidden_states = self.norm(hidden_states)
        else:
            hidden_states, residual = self.norm(hidden_states, residual)
        return self.mixer(hidden_states), residual
"""


@pytest.mark.parametrize("value", ["config.layer_types[i]", '"attention"'])
def test_a_table_of_layer_classes(tmp_path: Path, value: str) -> None:
    """Which class a layer has may be open: each class of the table is taken in its turn."""
    model = Model(
        top=TABLE,
        init=f"""
            kinds = {{"attention": LlamaDecoderLayer, "mamba": MambaLayer}}
            self.layers = nn.ModuleList([kinds[{value}](config, i) for i in range(config.num_hidden_layers)])
        """,
    )
    wiring = derive(tmp_path, model)
    assert (wiring.status, str(wiring)) == ("exact", "h[2] ⊕ h[6] ⊕ h[9]")


def test_a_depth_that_only_the_config_knows(tmp_path: Path) -> None:
    """The length of a layer pattern that is not given is taken to be the depth, and the answer says so."""
    model = Model(
        init="self.layers = nn.ModuleList([LlamaDecoderLayer(config, i) for i in range(len(config.block_pattern))])"
    )
    wiring = derive(tmp_path, model)
    assert (wiring.status, str(wiring)) == ("conditional", "h[2] ⊕ h[6] ⊕ h[9]")
    assert [condition.text for condition in wiring.conditions] == [
        "when the target's config.block_pattern has an item for each of the 12 layers"
    ]
