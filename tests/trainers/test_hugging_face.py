"""States taken from a Hugging Face model: ``output_hidden_states``, and hooks on its layers."""

from __future__ import annotations

import pytest

SCRIPT = """
import torch
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("m")


def dump(input_ids):
    BODY
"""


def wired(result):
    wiring = result.wiring
    assert wiring is not None, "nothing was captured"
    label = f" | {wiring.label}" if wiring.label else ""
    return f"{wiring}{label}, {wiring.status}"


def script(body):
    return SCRIPT.replace("BODY", body.strip("\n").replace("\n", "\n    "))


OUTPUTS = {
    "joined": ("torch.cat([out.hidden_states[i] for i in (3, 31, 59)], dim=-1)", "h[3] ⊕ h[31] ⊕ h[59]"),
    "shifted": ("torch.cat([out.hidden_states[i + 1] for i in (2, 30, 58)], dim=-1)", "h[3] ⊕ h[31] ⊕ h[59]"),
    "the last entry is normed": ("torch.cat([out.hidden_states[3], out.hidden_states[-1]], -1)", "h[3] ⊕ norm(h[61])"),
    "entry N is normed": ("torch.cat([out.hidden_states[60], out.hidden_states[61]], -1)", "h[60] ⊕ norm(h[61])"),
    "in list order": ("torch.cat([out.hidden_states[i].cpu() for i in [59, 3]], dim=-1)", "h[59] ⊕ h[3]"),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_entry_k_is_boundary_k(derive, name):
    """``hidden_states[k]`` is h[k], and the last entry is the normed state."""
    saved, expected = OUTPUTS[name]
    body = f'out = model(input_ids, output_hidden_states=True)\ntorch.save({{"x": {saved}}}, "x.pt")'
    assert wired(derive(dump=script(body))) == f"{expected}, exact"


def test_a_list_with_the_last_entry_is_open(derive):
    """``for i in (3, 31, 59, -1)`` in one list, and nobody says which is the label."""
    body = """
with torch.no_grad():
    out = model(input_ids, output_hidden_states=True)
torch.save([out.hidden_states[i].cpu() for i in (3, 31, 59, -1)], "x.pt")
"""
    wiring = derive(dump=script(body)).wiring
    assert (wiring.status, len(wiring.conditions[0].slots)) == ("conditional", 4)


def test_an_index_past_the_end_saves_nothing(derive):
    """Entry N + 1 does not exist."""
    body = 'out = model(input_ids, output_hidden_states=True)\ntorch.save(out.hidden_states[62], "x.pt")'
    assert derive(dump=script(body)).wiring is None


HOOKS = {
    "one function for each layer": """
captured = {}
def make(i):
    def hook(module, inputs, output):
        captured[i] = output[0] if isinstance(output, tuple) else output
    return hook
for i in (2, 30, 58):
    model.model.layers[i].register_forward_hook(make(i))
model(input_ids)
torch.save({"x": torch.cat([captured[i] for i in (2, 30, 58)], dim=-1)}, "x.pt")
""",
    "one list for all": """
captured = []
for i in (58, 2, 30):
    model.model.layers[i].register_forward_hook(lambda m, args, out: captured.append(out[0].detach()))
with torch.no_grad():
    model(input_ids)
torch.save({"x": torch.cat(captured, dim=-1)}, "x.pt")
""",
    "before the layer": """
captured = []
def hook(module, args):
    captured.append(args[0])
for i in (3, 31, 59):
    model.model.layers[i].register_forward_pre_hook(hook)
model(input_ids)
torch.save({"x": torch.cat(captured, dim=-1)}, "x.pt")
""",
}


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_on_a_layer_sees_its_output(derive, name):
    """A hook on layer i sees h[i+1]; the layers run in order, whatever order the hooks were set in."""
    result = derive(dump=script(HOOKS[name]))
    assert wired(result) == "h[3] ⊕ h[31] ⊕ h[59], exact"
    assert any("Hugging Face" in text for text in result.wiring.assumptions)


def test_a_hook_in_an_engine_is_conditional(derive):
    """An engine's layer returns a branch and the residual: the first of them is not the stream."""
    code = script(HOOKS["one list for all"]).replace("import torch\n", "import torch\nfrom vllm import LLM\n", 1)
    assert derive(dump=code).wiring.status == "conditional"


def test_a_hook_on_the_final_norm(derive):
    """The output of the norm is the label."""
    body = """
captured, last = [], []
for i in (2, 30, 58):
    model.model.layers[i].register_forward_hook(lambda m, args, out: captured.append(out[0]))
model.model.norm.register_forward_hook(lambda m, args, out: last.append(out))
model(input_ids)
torch.save({"hidden_states": captured, "target": last[0]}, "x.pt")
"""
    assert wired(derive(dump=script(body))) == "h[3] ⊕ h[31] ⊕ h[59] | norm(h[61]), exact"


def test_a_patched_model_is_called(derive):
    """The forward pass that was put on the class runs where the script calls the model."""
    code = """
    import torch
    from transformers import AutoModel, LlamaModel
    from transformers.modeling_outputs import BaseModelOutputWithPast

    def forward(self, input_ids=None, **kwargs):
        hidden_states = self.embed_tokens(input_ids)
        aux = ()
        for idx, layer in enumerate(self.layers):
            if idx == len(self.layers) - 3 or idx == len(self.layers) // 2 or idx == 2:
                aux += (hidden_states,)
            hidden_states = layer(hidden_states, **kwargs)[0]
        hidden_states = self.norm(hidden_states)
        return BaseModelOutputWithPast(last_hidden_state=hidden_states, hidden_states=aux)

    LlamaModel.forward = forward

    def main():
        model = AutoModel.from_pretrained("m")
        for batch in batches():
            out = model(batch)
            states = torch.cat(out.hidden_states, dim=-1)
            torch.save({"hidden_states": states, "target": out.last_hidden_state}, "x.pt")
    """
    assert wired(derive(patch=code)) == "h[2] ⊕ h[30] ⊕ h[58] | norm(h[61]), exact"


ALL = 'out = model(input_ids, output_hidden_states=True)\ntorch.save({"hidden_states": out.hidden_states}, "x.pt")'


def test_all_entries_are_saved_and_the_dataset_picks(derive):
    """The dump keeps every state; what fc gets is chosen when it is loaded."""
    load = """
    import torch
    def load(path):
        states = torch.load(path)["hidden_states"]
        return {"x": torch.cat([states[i] for i in (3, 31, 59)], dim=-1), "target": states[-1]}
    """
    assert wired(derive(dump=script(ALL), data=load)) == "h[3] ⊕ h[31] ⊕ h[59] | norm(h[61]), exact"


def test_all_entries_are_saved_and_nobody_picks(derive):
    """Without the dataset, which of them feed fc is unknown."""
    wiring = derive(dump=script(ALL)).wiring
    assert wiring.status == "unknown"
    assert "every boundary" in wiring.reason


def test_only_the_last_state_is_saved(derive):
    """An EAGLE-1 dump: the normed last state is the input."""
    body = (
        'out = model(input_ids, output_hidden_states=True)\ntorch.save({"hidden_state": out.hidden_states[-1]}, "x.pt")'
    )
    assert wired(derive(dump=script(body))) == "norm(h[61]), exact"


def test_a_model_among_the_files(derive):
    """A copied modeling file: its layers are run, each adds to the stream, the rotary embeddings do not."""
    code = """
    import torch
    from torch import nn
    class Layer(nn.Module):
        def __init__(self, config, layer_idx):
            super().__init__()
            self.self_attn = Attention(config)
            self.mlp = MLP(config)
            self.input_layernorm = RMSNorm(config.hidden_size)
            self.post_attention_layernorm = RMSNorm(config.hidden_size)
        def forward(self, hidden_states, position_embeddings=None, output_attentions=False):
            residual = hidden_states
            hidden_states, weights = self.self_attn(self.input_layernorm(hidden_states), position_embeddings)
            hidden_states = residual + hidden_states
            residual = hidden_states
            hidden_states = residual + self.mlp(self.post_attention_layernorm(hidden_states))
            return (hidden_states, weights) if output_attentions else (hidden_states,)
    class Model(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
            self.layers = nn.ModuleList([Layer(config, i) for i in range(config.num_hidden_layers)])
            self.norm = RMSNorm(config.hidden_size)
            self.rotary_emb = RotaryEmbedding(config)
        def forward(self, input_ids=None, inputs_embeds=None, output_attentions=None):
            if inputs_embeds is None:
                inputs_embeds = self.embed_tokens(input_ids)
            output_attentions = output_attentions if output_attentions is not None else self.config.output_attentions
            hidden_states = inputs_embeds
            positions = self.rotary_emb(hidden_states)
            aux = []
            for i, layer in enumerate(self.layers):
                if i in (3, 31, 59):
                    aux.append(hidden_states)
                hidden_states = layer(hidden_states, positions, output_attentions=output_attentions)[0]
            return self.norm(hidden_states), torch.cat(aux, dim=-1)
    """
    assert wired(derive(model=code)) == "h[3] ⊕ h[31] ⊕ h[59] | norm(h[61]), exact"
