"""What a trace says of a value: which hidden state it is, how it is joined, its shape; and where it says nothing."""

from __future__ import annotations

import pytest

from tests.trace.conftest import Tracing

MODEL = """\
import torch


class Model:
    def setup(self, ids, n):
        self.captured = [2, n // 2, n - 3] if ids is None else [i + 1 for i in ids]

    def forward(self, hidden, residual):
        aux = []
        for i in range(self.start, self.end):
            if i in self.captured:
                aux.append(hidden + residual)
            hidden, residual = self.layers[i](hidden, residual)
        if not self.last_rank:
            return {"hidden": hidden}
        hidden, _ = self.norm(hidden, residual)
        if not aux:
            return hidden
        return hidden, aux


def run(model: Model, hidden, full, last_index):
    out = model.forward(hidden, None)
    if model.captured:
        out, aux = out
        if full:
            return torch.cat(aux, dim=-1)
        kept = [state[last_index] for state in aux]
        return torch.cat(kept, dim=-1)
"""
LIST = "[h[i] for i in self.captured], each [tokens, H] (hidden + residual before layer i)"
LOOP = "        for i in range(self.start, self.end):\n"


def values(traced: Tracing, source: str, symbol: str = "aux") -> dict[tuple[int, str], str | None]:
    """By line and kind, of the symbol and of what is made of it."""
    return {(item.line, item.kind): item.value for item in traced(symbol, source).occurrences}


def test_from_the_capture_to_the_join(traced: Tracing) -> None:
    """Over the return of a pair, its unpacking, the choice of rows and both ways to join."""
    source = MODEL.replace("        self.captured = [2, n // 2, n - 3] if ids is None else [i + 1 for i in ids]",
                           "        self.captured = [2, n // 2, n - 3]\n        if ids is not None:\n"
                           "            self.captured = [i + 1 for i in ids]")  # fmt: skip
    source = source.replace(
        "return torch.cat(aux, dim=-1)", "joined = torch.cat(aux, dim=-1)\n            return joined"
    )
    source = source.replace("return torch.cat(kept, dim=-1)", "last = torch.cat(kept, dim=-1)\n        return last")
    found = {(item.line, item.name, item.kind): item.value for item in traced("aux", source).occurrences}
    assert found[14, "aux", "mutation"] == LIST
    assert found[21, "aux", "returned"] == LIST
    assert found[27, "aux", "assignment"] == LIST
    assert found[29, "joined", "assignment"] == (
        "h[i] for i in self.captured, joined along dimension -1: [tokens, n·H] with n layers in self.captured, "
        "3 by default"
    )
    assert found[31, "kept", "assignment"] == LIST.replace("tokens", "last_index")
    assert found[32, "last", "assignment"] == found[29, "joined", "assignment"].replace("tokens", "last_index")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("hidden + residual)\n", "hidden if residual is None else hidden + residual)\n", "h[i] for i in"),
        (LOOP, "        for i, layer in enumerate(self.layers[self.start :], start=self.start):\n", "h[i] for i in"),
        (LOOP, "        for i, layer in enumerate(self.layers[self.start :]):\n", "h[self.start + i] for i in"),
        (
            LOOP,
            "        for i, layer in enumerate(self.layers[self.start :]):\n            i = i + self.start\n",
            "h[i] for i in",
        ),
        # A branch alone; another value; a list that the layer is handed; an index that means something else; a loop inside.
        ("aux.append(hidden + residual)", "aux.append(hidden)", None),
        ("aux.append(hidden + residual)", "aux.append(hidden + other)", None),
        ("[i](hidden, residual)", "[i](hidden, residual, aux)", None),
        (LOOP, LOOP + "            i = i * 2\n", None),
        (LOOP, LOOP + "            residual = self.scale(residual)\n", None),
        ("        for i in range(self.start, self.end):\n", LOOP + "            for _ in self.streams: pass\n", None),
        # What is appended elsewhere is something else.
        ("        if not self.last_rank", "        aux.append(self.norm(hidden))\n        if not self.last_rank", None),
    ],
)
def test_what_is_captured(traced: Tracing, old: str, new: str, expected: str | None) -> None:
    """The state before the layer, counted from the first one of all; nothing where that does not follow."""
    assert old in MODEL
    found = values(traced, MODEL.replace(old, new))
    ((_, value),) = [(line, value) for (line, kind), value in found.items() if kind == "returned"]
    assert value is None if expected is None else value is not None and value.startswith(f"[{expected}")


def test_after_the_layer(traced: Tracing) -> None:
    """It is the state of one layer more."""
    append = "            if i in self.captured:\n                aux.append(hidden + residual)\n"
    call = "            hidden, residual = self.layers[i](hidden, residual)\n"
    found = values(traced, MODEL.replace(append + call, call + append))
    assert found[19, "returned"] == LIST.replace("h[i]", "h[i + 1]").replace("before", "after")


def test_two_callers_that_do_not_agree(traced: Tracing) -> None:
    """Where another caller hands over something unknown, nothing is said."""
    source = MODEL + "\n\ndef store(states):\n    kept = states\n    return kept\n\n\ndef one(model: Model, hidden):\n"
    source += "    out, aux = model.forward(hidden, None)\n    store(aux)\n"

    def stored(program: str) -> list[str | None]:
        return [
            item.value for item in traced("aux", program).occurrences if (item.name, item.function) == ("kept", "store")
        ]

    assert stored(source) == [LIST, LIST]
    assert stored(source + "\n\ndef two(other):\n    store(other)\n") == [None, None]


def test_an_attribute_that_is_read(traced: Tracing) -> None:
    """What it may have been set to, where all that sets it is known."""
    source = MODEL.replace("[2, n // 2, n - 3] if ids is None else [i + 1 for i in ids]", "[2, n // 2, n - 3]")
    assert values(traced, source, "captured")[11, "read"] == "[2, n // 2, n - 3]"
    assert values(traced, source + "    model.captured = other\n", "captured")[11, "read"] is None
