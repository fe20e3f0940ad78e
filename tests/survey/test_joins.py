<<<<<<< HEAD
"""Joins of captured states that are None on some path, and what the answer rests on."""

from __future__ import annotations

import shutil
from pathlib import Path

from eaglelint.serving import open_source
from eaglelint.source.snapshot import Snapshot
from eaglelint.survey.facts import JoinedWhileNone
from eaglelint.survey.join_order import joined_while_none

PROJECT = Path(__file__).parent.parent / "rules/projects/sound-sglang/sglang"
SOURCE = """\
import torch


def store(aux_hidden_states, last):
    kept = None
    if {test}:
        kept = [hidden[-1] for hidden in aux_hidden_states]
    return torch.cat(kept, dim=-1)
"""


def joins(root: Path, snapshot: Snapshot) -> list[tuple[str, str, tuple[str, ...]]]:
    handle = open_source(f"sglang@{root}", root=root, display_root=root, snapshot=snapshot)
    found: tuple[JoinedWhileNone, ...] = joined_while_none(handle.source)
    return [(str(item.place), item.name, item.conditions) for item in found]


def test_what_the_answer_rests_on(tmp_path: Path) -> None:
    """One question about all files, whose answer is another one once a file is mended; then there is no finding."""
    shutil.copytree(PROJECT, tmp_path / "sglang")
    file = tmp_path / "sglang/srt/layers/store.py"
    file.write_text(SOURCE.format(test="last"))
    snapshot = Snapshot()
    with snapshot.noting() as rests:
        assert joins(tmp_path, snapshot) == [("sglang/srt/layers/store.py:8", "kept", ("not last",))]
    (tree,) = [asked for asked in rests if asked[0] == "tree"]
    before = Snapshot().answer(tree)
    assert before == snapshot.answers[tree]
    file.write_text(SOURCE.format(test="True"))
    after = Snapshot()
    assert after.answer(tree) != before
    assert joins(tmp_path, after) == []
=======
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
>>>>>>> 58e2849 (Rule CAT002 reversed-join: in which order a draft's class and its training code join the embedding and the hidden state)
