"""Which of the embedding and the hidden state comes first in a draft's input, by the ways in which engines write it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from eaglelint.source.tree import SourceTree
from eaglelint.survey.join_order import joins_in

E, H = "embedding", "hidden state"


@pytest.mark.parametrize(
    ("body", "orders"),
    [
        ("def f(self, embeds, hidden_states):\n    return torch.cat([embeds, hidden_states], dim=-1)", [(E, H)]),
        (
            "def f(self, input_emb, hidden):\n    return torch.concat((self.hnorm(hidden), self.enorm(input_emb)), -1)",
            [(H, E)],
        ),
        (
            "def f(self, ids, batch):\n    hidden_states = self.embed_tokens(ids)\n"
            "    return self.fc(torch.cat((hidden_states, batch.spec_info.hidden_states), dim=-1))",
            [(E, H)],
        ),
        (
            "def f(self, ids, batch, input_embeds=None):\n"
            "    hidden_states = input_embeds if input_embeds is not None else self.embed_tokens(ids)\n"
            "    hidden_states = self.fc(torch.cat((batch.spec_info.hidden_states.to(self.dtype), hidden_states), -1))\n"
            "    return hidden_states",
            [(H, E)],
        ),
        (  # ModelOpt 0.47.0, modeling_eagle.py: a hook before the attention
            "def f(self, module, args, kwargs):\n    embeds = self.layers[0].input_layernorm(self._input_embeds)\n"
            "    kwargs['hidden_states'] = torch.cat((embeds, self.norm(kwargs['hidden_states'])), dim=-1)",
            [(E, H)],
        ),
        # ModelOpt 0.47.0, modeling_dspark.py: a gate and a confidence head are fed what the draft has computed.
        ("def f(self, hidden, prev_emb):\n    return self.gate_proj(torch.cat([hidden, prev_emb], dim=-1))", []),
        (
            "def f(self, hidden, prev_emb):\n    both = torch.cat([hidden, prev_emb], dim=-1)\n"
            "    return self.confidence_proj(both)",
            [],
        ),
        (  # SGLang 0.5.23, srt/models/dspark.py:452
            "class DraftConfidenceHead:\n    def forward(self, hidden_states, prev_embeddings):\n"
            "        return self.proj(torch.cat([hidden_states, prev_embeddings], dim=-1))",
            [],
        ),
        ("def f(self, x, y):\n    return torch.cat([x, y], dim=-1)", []),
        ("def f(self, embeds):\n    return torch.cat([embeds, embeds], dim=-1)", []),
        (
            "def f(self, flag, embeds, hidden):\n    both = embeds if flag else hidden\n    return torch.cat([both, hidden])",
            [],
        ),
        ("def f(self, embeds, hidden, more):\n    return torch.cat([embeds, hidden, more], dim=-1)", []),
    ],
)
def test_the_order_of_a_join(body: str, orders: list[tuple[str, str]], tmp_path: Path) -> None:
    """Told by where the values come from, not by the names that hold them; where that is not plain, nothing is said."""
    file = tmp_path / "draft.py"
    file.write_text("import torch\n" + dedent(body) + "\n", "utf-8")
    module = SourceTree((tmp_path,), relative_to=tmp_path).module_at(file)
    assert module is not None
    assert [join.order for join in joins_in(module)] == orders
