"""Joins of captured states that are None on some path, and what the answer rests on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from eaglelint.serving import open_source
from eaglelint.source.snapshot import Snapshot
from eaglelint.survey.facts import JoinedWhileNone
from eaglelint.survey.joined_none import joined_while_none

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
    found: tuple[JoinedWhileNone, ...] = joined_while_none(
        handle.source.package, handle.source.tree.relative_to, snapshot
    )
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


@pytest.mark.parametrize(
    ("sets", "found"),
    [
        ("kept = []\n    kept += [last]", []),
        ("kept = [last]\n    kept = [hidden for hidden in kept]", []),
        ("kept = []\n    if last:\n        kept, last = None, kept", ["kept"]),
        ("kept = []\n    if last:\n        kept = None", ["kept"]),
    ],
)
def test_a_variable_that_is_set_to_lists(tmp_path: Path, sets: str, found: list[str]) -> None:
    """It is none but where something else is put in its place."""
    shutil.copytree(PROJECT, tmp_path / "sglang")
    text = f"import torch\n\n\ndef store(aux_hidden_states, last):\n    {sets}\n    return torch.cat(kept, dim=-1)\n"
    (tmp_path / "sglang/srt/layers/store.py").write_text(text)
    assert [name for _, name, _ in joins(tmp_path, Snapshot())] == found
