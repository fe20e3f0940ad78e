"""Captures in a patched forward pass, in every form that engines and scripts write them."""

from __future__ import annotations

import pytest

HEAD = "import torch\nfrom itertools import islice\n"
TAIL = """
    torch.save({"hidden_states": aux}, "x.pt")
"""


def wired(result):
    """The wiring as ``slots | label, status``."""
    wiring = result.wiring
    assert wiring is not None, "nothing was captured"
    label = f" | {wiring.label}" if wiring.label else ""
    return f"{wiring}{label}, {wiring.status}"


LOOPS = {
    "before the layer": (
        """
    for i, layer in enumerate(self.layers):
        if i in LAYERS:
            aux.append(hidden_states + residual)
        hidden_states, residual = layer(positions, hidden_states, residual)
""",
        "h[3] ⊕ h[31] ⊕ h[59]",
    ),
    "after the layer": (
        """
    for i, layer in enumerate(self.layers):
        hidden_states, residual = layer(positions, hidden_states, residual)
        if i in LAYERS:
            aux.append((hidden_states + residual).clone())
""",
        "h[4] ⊕ h[32] ⊕ h[60]",
    ),
    "one more than the index": (
        """
    for i in range(len(self.layers)):
        hidden_states, residual = self.layers[i](positions, hidden_states, residual)
        if i + 1 in LAYERS:
            aux.append(hidden_states.detach().cpu() + residual)
""",
        "h[3] ⊕ h[31] ⊕ h[59]",
    ),
    "a range of the engine's": (
        """
    for i in range(self.start_layer, self.end_layer):
        if i in LAYERS:
            aux.append(hidden_states if residual is None else hidden_states + residual)
        hidden_states, residual = self.layers[i](positions, hidden_states, residual)
""",
        "h[3] ⊕ h[31] ⊕ h[59]",
    ),
    "islice": (
        """
    for i, layer in enumerate(islice(self.layers, self.start_layer, self.end_layer)):
        if i - 1 in LAYERS:
            aux.append(hidden_states + residual if residual is not None else hidden_states)
        hidden_states, residual = layer(positions, hidden_states, residual)
""",
        "h[4] ⊕ h[32] ⊕ h[60]",
    ),
    "a counter": (
        """
    index = 0
    for layer in self.layers:
        if index in LAYERS:
            aux += [hidden_states + residual]
        hidden_states, residual = layer(positions, hidden_states, residual)
        index += 1
""",
        "h[3] ⊕ h[31] ⊕ h[59]",
    ),
    "a layer that returns the whole stream": (
        """
    for i, layer in enumerate(self.layers):
        hidden_states = layer(hidden_states, attention_mask=None)[0]
        if i in LAYERS:
            aux.append(hidden_states)
""",
        "h[4] ⊕ h[32] ⊕ h[60]",
    ),
    "three comparisons": (
        """
    for i, layer in enumerate(self.layers):
        if i == 2 or i == len(self.layers) // 2 or i == len(self.layers) - 3:
            aux.append(hidden_states)
        hidden_states = layer(hidden_states)
""",
        "h[2] ⊕ h[30] ⊕ h[58]",
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_over_the_layers_captures_boundaries(derive, name):
    """The index that is tested, and the side of the layer call, decide which boundary is captured."""
    body, expected = LOOPS[name]
    start = "\n    hidden_states = self.embed_tokens(input_ids)\n    residual = None\n    aux = []"
    code = HEAD + "LAYERS = (3, 31, 59)\ndef forward(self, input_ids, positions):" + start + body + TAIL
    assert wired(derive(patch=code)) == f"{expected}, exact"


def test_only_the_branch_is_captured(derive):
    """Where a layer returns a branch and the residual apart, the branch alone is no boundary."""
    result = derive(
        patch="""
        import torch
        def forward(self, hidden_states, positions):
            residual, aux = None, []
            for i, layer in enumerate(self.layers):
                hidden_states, residual = layer(positions, hidden_states, residual)
                if i in (2, 30):
                    aux.append(hidden_states)
            torch.save(aux, "x.pt")
        """
    )
    assert wired(result) == "partial(h[3]) ⊕ partial(h[31]), exact"


IDS = {
    "a default argument": "def forward(self, ids, positions, layers=(3, 31, 59)):\n    X = layers",
    "a constant in the function": "def forward(self, ids, positions):\n    X = [3, 31, 59]",
    "a set, whatever its order": "def forward(self, ids, positions):\n    X = {59, 3, 31}",
    "a list with duplicates": "def forward(self, ids, positions):\n    X = [59, 3, 31, 3]",
    "ids made of others": "IDS = [2, 30, 58]\ndef forward(self, ids, positions):\n    X = [i + 1 for i in IDS]",
    "ids made of the depth": (
        "def forward(self, ids, positions):\n    N = self.config.num_hidden_layers\n    X = [3, N // 2 + 1, N - 2]"
    ),
    "an attribute set on the class": (
        "from transformers import LlamaModel\nLlamaModel.layers_to_capture = [3, 31, 59]\n"
        "def forward(self, ids, positions):\n    X = self.layers_to_capture"
    ),
    "an attribute set on the model": (
        "def setup(model):\n    model.model.layers_to_capture = [3, 31, 59]\n"
        "def forward(self, ids, positions):\n    X = self.layers_to_capture"
    ),
}
LOOP = """
    hidden, residual, aux = self.embed_tokens(ids), None, []
    for i, layer in enumerate(self.layers):
        if i in X:
            aux.append(hidden + residual)
        hidden, residual = layer(positions, hidden, residual)
    torch.save(aux, "x.pt")
"""


@pytest.mark.parametrize("name", IDS)
def test_ids_come_from(derive, name):
    """The loop captures in ascending order, each layer once, wherever the ids stand."""
    assert wired(derive(patch="import torch\n" + IDS[name] + LOOP)) == "h[3] ⊕ h[31] ⊕ h[59], exact"


def test_ids_come_from_the_command_line(derive):
    """An argument parser's default is taken, and the answer says so."""
    result = derive(
        dump="""
        import argparse, torch
        def run(self, ids, positions, X):
        """
        + "    " * 2
        + LOOP.replace("\n", "\n        ")
        + """
        if __name__ == "__main__":
            parser = argparse.ArgumentParser()
            parser.add_argument("--layers", type=int, nargs="+", default=[3, 31, 59])
            args = parser.parse_args()
            run(load_model(), None, None, args.layers)
        """
    )
    assert wired(result) == "h[3] ⊕ h[31] ⊕ h[59], exact"
    assert "the defaults of the command line" in result.wiring.assumptions


def test_unknown_ids_are_unknown(derive):
    """Ids that nobody gives are not guessed: neither no layer nor all of them."""
    result = derive(patch="import torch\ndef forward(self, ids, positions, X):" + LOOP)
    assert (result.wiring.status, str(result.wiring)) == ("unknown", "?")
    assert "i in X" in result.wiring.reason
    assert "patch.py:5" in result.wiring.reason


def test_ids_that_are_set_twice_are_unknown(derive):
    """Two setups that disagree leave the capture unknown."""
    result = derive(
        one="def setup(model):\n    model.model.capture = [3, 31, 59]\n",
        two="def setup(model):\n    model.model.capture = [2, 30, 58]\n",
        patch="import torch\ndef forward(self, ids, positions):\n    X = self.capture" + LOOP,
    )
    assert result.wiring.status == "unknown"
    assert "one.py:2" in result.wiring.reason
    assert "two.py:2" in result.wiring.reason


def test_a_method_sets_the_ids(derive):
    """A class whose setter holds the ids, and whose forward captures."""
    result = derive(
        model="""
        import torch
        from transformers import LlamaModel
        class Capturing(LlamaModel):
            def setup(self):
                self.layers_to_capture = (3, 31, 59)
            def forward(self, ids, positions):
                X = self.layers_to_capture
        """
        + LOOP.replace("\n", "\n            ")
    )
    assert wired(result) == "h[3] ⊕ h[31] ⊕ h[59], exact"


def test_an_unknown_condition_on_everything_is_harmless(derive):
    """A flag that switches the whole capture on does not change what is captured."""
    code = "import torch\ndef forward(self, ids, positions, X=(3, 31, 59)):" + LOOP
    code = code.replace("if i in X:", "if self.capture_enabled and i in X:")
    assert wired(derive(patch=code)) == "h[3] ⊕ h[31] ⊕ h[59], exact"


def test_an_unknown_condition_on_one_state_is_a_condition(derive):
    """What is added under a flag that nobody sets is told apart."""
    code = "import torch\ndef forward(self, ids, positions, flag, X=(3, 31, 59)):" + LOOP
    code = code.replace("    torch.save", "    if flag:\n        aux.append(hidden + residual)\n    torch.save")
    result = derive(patch=code)
    assert wired(result) == "h[3] ⊕ h[31] ⊕ h[59], conditional"
    assert [(c.text, len(c.slots)) for c in result.wiring.conditions] == [("when flag", 4)]


def test_a_nested_patch_is_run(derive):
    """A forward pass that is defined inside the function which installs it."""
    result = derive(
        patch="""
        import torch
        from transformers.models.llama.modeling_llama import LlamaModel
        def install(X=(3, 31, 59)):
            def forward(self, ids, positions):
        """
        + LOOP.replace("\n", "\n                ")
        + """
            LlamaModel.forward = forward
        """
    )
    assert wired(result) == "h[3] ⊕ h[31] ⊕ h[59], exact"


def test_the_sum_after_the_loop_is_the_last_boundary(derive):
    """``hidden + residual`` after the last layer is h[N]; under its own key it is the label."""
    code = "import torch\ndef forward(self, ids, positions, X=(3, 31, 59)):" + LOOP
    code = code.replace("torch.save(aux", 'torch.save({"hidden_states": aux, "target": hidden + residual}')
    assert wired(derive(patch=code)) == "h[3] ⊕ h[31] ⊕ h[59] | h[61], exact"


def test_evidence_names_the_lines(derive):
    """Where the ids stand, where each state is captured, where it is saved."""
    result = derive(
        patch="import torch\nLAYERS = [3, 31, 59]\ndef forward(self, ids, positions):\n    X = LAYERS" + LOOP
    )
    rows = [(str(row), row.note, row.slot) for row in result.wiring.evidence]
    capture = ("patch.py:8", "aux.append(hidden + residual)")
    assert rows == [
        ("patch.py:2", "LAYERS = [3, 31, 59]", None),
        ("patch.py:8", "captures before layer 3, 31, 59", None),
        (*capture, 0),
        (*capture, 1),
        (*capture, 2),
        ("patch.py:10", 'torch.save(aux, "x.pt")', None),
    ]
    assert (result.wiring.party, result.wiring.name, result.wiring.num_layers) == ("training", "patch.py", 61)


NOT_EXACT = {
    "a caller that gives other ids": "def main(cfg):\n    forward(load(), 0, 0, cfg.ids)\n",
    "a constant that a flag replaces": "import os\nLAYERS = (1, 2, 4)\nif os.path.exists('x'):\n    LAYERS = (3, 31, 59)\n",
    "a constant that main replaces": "LAYERS = (3, 31, 59)\ndef main():\n    global LAYERS\n    LAYERS = parse()\n",
    "a setter's default": (
        "def set_layers(model, ids=None):\n    model.chosen = [2, 30, 58] if ids is None else ids\n"
        "def main(cfg):\n    load().set_layers(cfg.ids)\n"
    ),
}
READ = {
    "a caller that gives other ids": "def forward(self, ids, positions, X=(3, 31, 59)):",
    "a setter's default": "def forward(self, ids, positions):\n    X = self.chosen",
}


@pytest.mark.parametrize("name", NOT_EXACT)
def test_values_that_may_be_others_are_not_exact(derive, name):
    """A default, or a constant, that some code may replace is no proof."""
    read = READ.get(name, "def forward(self, ids, positions):\n    X = LAYERS")
    wiring = derive(patch="import torch\n" + NOT_EXACT[name] + read + LOOP).wiring
    assert wiring.status in ("conditional", "unknown")
    assert wiring.reason


CONSTANTS = {
    "in steps": "LAYERS = [3]\nLAYERS += [31]\nLAYERS.append(59)\n",
    "twice": "LAYERS = (1, 2, 4)\nLAYERS = (3, 31, 59)\n",
    "in a loop": "LAYERS = []\nfor i in (2, 30, 58):\n    LAYERS.append(i + 1)\n",
    "under a condition that is known": "BIG = True\nif BIG:\n    LAYERS = (3, 31, 59)\nelse:\n    LAYERS = (1, 2, 4)\n",
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_is_what_its_module_makes_of_it(derive, name):
    """All statements that set a module's variable count, not the last of them."""
    code = "import torch\n" + CONSTANTS[name] + "def forward(self, ids, positions):\n    X = LAYERS" + LOOP
    assert wired(derive(patch=code)) == "h[3] ⊕ h[31] ⊕ h[59], exact"


def test_an_attribute_from_outside_replaces_what_init_left(derive):
    """``self.chosen = []`` in __init__, and the script sets it."""
    code = """
    import torch
    from torch import nn
    class Model(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.chosen = []
            self.layers = nn.ModuleList([make(config) for _ in range(config.num_hidden_layers)])
        def forward(self, ids, positions):
            X = self.chosen
    """ + LOOP.replace("\n", "\n        ")
    setup = "def setup(model):\n    model.chosen = [3, 31, 59]  # the layers\n"
    assert derive(model=code).wiring is None
    assert wired(derive(model=code, setup=setup)) == "h[3] ⊕ h[31] ⊕ h[59], exact"
