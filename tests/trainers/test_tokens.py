"""By how many tokens a function moves what it is handed."""

from __future__ import annotations

from pathlib import Path

import pytest

from eaglelint.source.tree import SourceTree
from eaglelint.trainers.bench import Bench
from eaglelint.trainers.tokens import make_row, row_shift


@pytest.mark.parametrize(
    ("body", "shift"),
    [
        ("return x[1:]", 1),
        ("return x[:, 1:].contiguous()", 1),
        ("return x[:-1]", 0),
        ("return x[..., None]", 0),
        ("return x.roll(-1, 1)", 1),
        ("return torch.roll(x, -1, dims=1)", 1),
        ("return torch.cat((x[:, 1:], torch.zeros_like(x[:, -1:])), dim=1)", 1),
        ("return torch.cat((torch.zeros_like(x[:, -1:]), x[:, :-1]), dim=1)", -1),
        ("return x[1:][1:]", 2),
        ("return x[n:]", None),
    ],
)
def test_shifts(tmp_path: Path, body: str, shift: int | None) -> None:
    """What stands at t stood at t + shift before; None where that is not known."""
    (tmp_path / "stack").mkdir()
    (tmp_path / "stack/data.py").write_text(f"import torch\n\n\ndef move(x, n):\n    {body}\n")
    bench = Bench(SourceTree((tmp_path,)), tmp_path / "stack", 8, rows=True)
    from eaglelint.source.values import Unknown

    assert row_shift(bench.call(bench.function("data.py", "move"), make_row(), Unknown("n"))) == shift
