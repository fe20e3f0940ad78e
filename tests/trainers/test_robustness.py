"""Code that captures nothing, code that does not parse, code that disagrees, code that is hostile."""

from __future__ import annotations

from pathlib import Path

import pytest

from eaglelint.source.machine import Budget
from eaglelint.trainers import derive_training

CAPTURE = """
import torch
def forward(self, ids, positions, X=IDS):
    hidden, residual, aux = self.embed_tokens(ids), None, []
    for i, layer in enumerate(self.layers):
        if i in X:
            aux.append(hidden + residual)
        hidden, residual = layer(positions, hidden, residual)
    torch.save({"hidden_states": aux}, "x.pt")
"""


def capture(ids="(3, 31, 59)"):
    return CAPTURE.replace("IDS", ids)


@pytest.mark.parametrize(
    "code",
    [
        "",
        "x = 1\n",
        "import torch\ndef train(model, loader):\n    losses = []\n    for batch in loader:\n"
        "        loss = model(**batch).loss\n        loss.backward()\n        losses.append(loss.detach())\n"
        "    torch.save(model.state_dict(), 'x.pt')\n",
        "import torch.nn as nn\nclass Draft(nn.Module):\n    def __init__(self, config):\n        self.fc = nn.Linear(3, 1)\n"
        "        self.norm = RMSNorm(1)\n    def forward(self, hidden_states):\n        return self.norm(self.fc(hidden_states))\n",
    ],
)
def test_no_capture_is_no_wiring(derive, code):
    """Training code that captures nothing has no wiring, known or unknown."""
    assert derive(train=code).wiring is None


def test_a_file_that_does_not_parse_is_a_problem(derive):
    """It is named with its line; the rest is derived."""
    result = derive(broken="x = 1\ndef capture(hidden_states:\n    pass\n", dump=capture())
    assert len(result.problems) == 1
    assert result.problems[0].startswith("broken.py:2: ")
    assert (str(result.wiring), result.wiring.status) == ("h[3] ⊕ h[31] ⊕ h[59]", "exact")


@pytest.mark.parametrize("data", [b"x = '\xff\xfe'\n", b"hidden_states = 1\x00\n", b"layers = " + b"(" * 5000])
def test_bytes_that_are_no_source(tmp_path: Path, data):
    """Invalid UTF-8, null bytes, absurd nesting: one sentence, no exception."""
    (tmp_path / "bad.py").write_bytes(data)
    (tmp_path / "dump.py").write_text(capture(), "utf-8")
    result = derive_training((tmp_path,), num_layers=61, relative_to=tmp_path)
    assert [problem.split(":")[0] for problem in result.problems] == ["bad.py"]
    assert str(result.wiring) == "h[3] ⊕ h[31] ⊕ h[59]"


def test_two_captures_that_disagree(derive):
    """Both lines are named, and the answer is not exact."""
    wiring = derive(one=capture(), two=capture("(2, 30, 58)")).wiring
    assert wiring.status == "conditional"
    assert "one.py:7" in wiring.reason
    assert "two.py:7" in wiring.reason
    assert [str(slot) for slot in wiring.conditions[0].slots] == ["h[2]", "h[30]", "h[58]"]


def test_two_captures_that_agree(derive):
    """A copy of the script changes nothing."""
    wiring = derive(one=capture(), two=capture()).wiring
    assert (str(wiring), wiring.status) == ("h[3] ⊕ h[31] ⊕ h[59]", "exact")


def test_engines_and_environments_are_left_out(tmp_path: Path):
    """An engine's own copy in the directory is not training code."""
    for name in ("sglang", "vllm", ".venv", "site-packages", "env"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "dump.py").write_text(capture("(1, 2, 4)"), "utf-8")
    (tmp_path / "env" / "pyvenv.cfg").write_text("")
    assert derive_training((tmp_path,), num_layers=61, relative_to=tmp_path).wiring is None
    (tmp_path / "dump.py").write_text(capture(), "utf-8")
    assert derive_training((tmp_path,), num_layers=61, relative_to=tmp_path).wiring.status == "exact"


def test_scripts_find_each_other(tmp_path: Path):
    """A file given by itself imports its neighbours; a package's files import each other."""
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "ids.py").write_text("LAYERS = (3, 31, 59)\n")
    code = "from .ids import LAYERS\n" + capture("LAYERS")
    (package / "dump.py").write_text(code, "utf-8")
    wiring = derive_training((package / "dump.py",), num_layers=61, relative_to=tmp_path).wiring
    assert (str(wiring), wiring.status, wiring.name) == ("h[3] ⊕ h[31] ⊕ h[59]", "exact", "pkg/dump.py")
    assert ("pkg/ids.py", 1) in [(row.path, row.line) for row in wiring.evidence]


def test_a_budget_that_runs_out_is_unknown(derive, tmp_path: Path):
    """A run that takes too long says so."""
    derive(dump=capture())
    wiring = derive_training((tmp_path,), num_layers=61, relative_to=tmp_path, budget=Budget(steps=100)).wiring
    assert wiring.status == "unknown"
    assert "100 steps" in wiring.reason


@pytest.mark.parametrize(
    "code",
    [
        "def hidden(x):\n    return hidden(x)\n",
        "def layers():\n    while True:\n        pass\n",
        "layers = [layers for layers in layers]\n",
        "class states(states):\n    pass\nhidden_states = states().x\n",
        "def f(*hidden, **states):\n    del hidden[0]\n    raise\n",
        "hidden = '' % ()\nlayers = 1 / 0\n",
        "def f(hidden):\n    a, *b = hidden.states = f\n    return lambda: (yield)\n",
        "async def f(hidden):\n    async for x in hidden:\n        await x.save(hidden)\n",
        "import layers\nfrom . import states\nfrom .hidden import *\nlayers.save(states)\n",
    ],
)
def test_odd_code_is_survived(derive, code):
    """Whatever the code does, there is an answer."""
    result = derive(odd=code, dump=capture())
    assert str(result.wiring) == "h[3] ⊕ h[31] ⊕ h[59]"


def test_a_state_whose_way_is_lost_is_unknown(derive):
    """Captured for sure, but handed to something unknown: not nothing, and not exact."""
    code = capture().replace('torch.save({"hidden_states": aux}, "x.pt")', "self.sink.push(aux)")
    wiring = derive(dump=code).wiring
    assert wiring.status == "unknown"
    assert "dump.py:7" in wiring.reason


def test_a_flag_computed_in_the_loop_is_not_decided_once(derive):
    """``wanted = i in ids`` with unknown ids: neither no layer nor every layer."""
    code = capture("()").replace("        if i in X:", "        wanted = i in self.ids_of_nobody\n        if wanted:")
    assert derive(dump=code).wiring.status == "unknown"


def test_a_helper_that_decides_is_not_decided_once(derive):
    """The same through a function that is called in each round."""
    code = capture().replace(
        "        if i in X:\n            aux.append(hidden + residual)", "        keep(self, i, aux, hidden + residual)"
    )
    code += "\n\ndef keep(self, i, aux, state):\n    if i in self.ids_of_nobody:\n        aux.append(state)\n"
    assert derive(dump=code).wiring.status == "unknown"
