"""The ``fc`` of an engine's draft class: its widths from the draft's config, its line, and whether it takes what it is fed."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from eaglelint.deployment import parse_assumptions
from eaglelint.derive import ServingRequest, derive_serving
from eaglelint.projection import derive_projection, width_of
from eaglelint.wiring import Projection
from tests.engines.mini import Model, handle, write_engine

TARGET = {"num_hidden_layers": 12, "hidden_size": 64}
DRAFT = {"architectures": ["Eagle3Draft"], "hidden_size": 32, "eagle_config": {"eagle_aux_hidden_state_layer_ids": []}}
# A linear layer of the engine's own.
_OWN = """
    class WideLinear(nn.Module):
        def __init__(self, input_size, output_size, bias=False):
            super().__init__()
            self.input_size = input_size
            self.output_size = output_size
"""


def projection(root: Path, init: str, *assume: str, **changes: Any) -> Projection | None:
    """What is said of a draft class with this constructor."""
    lines = dedent(init).strip().replace("\n", "\n                ")
    draft_class = f"""
        import torch
        from torch import nn
        {dedent(_OWN).strip().replace(chr(10), chr(10) + " " * 8)}


        class Eagle3Draft(nn.Module):
            def __init__(self, config, quant_config=None, prefix=""):
                super().__init__()
                {lines}
    """
    found = handle(write_engine(root, Model(extra={"srt/models/draft.py": draft_class})))
    binding = found.engine.target_class(found.source, "LlamaForCausalLM")
    assert binding is not None
    ids = changes.pop("ids", [1, 4, 7])
    draft = {**DRAFT, "eagle_config": {"eagle_aux_hidden_state_layer_ids": ids}, **changes}
    request = ServingRequest(binding, 12, TARGET, draft_data=draft, deployment=parse_assumptions(assume))
    wiring = derive_serving(found.engine, found.source, request)
    return derive_projection(found.engine, found.source, request, wiring)


@pytest.mark.parametrize(
    ("init", "takes"),
    [
        ("self.fc = nn.Linear(config.target_hidden_size * 3, config.hidden_size)", 192),
        ("self.fc = torch.nn.Linear(in_features=3 * config.target_hidden_size, out_features=config.hidden_size)", 192),
        ("self.fc = WideLinear(config.target_hidden_size * 3, config.hidden_size)", 192),
        ("self.fc = WideLinear(input_size=config.target_hidden_size * 2, output_size=config.hidden_size)", 128),
        ("width = getattr(config, 'missing', None) or 5\nself.fc = nn.Linear(width * 64, config.hidden_size)", 320),
    ],
)
def test_the_widths_that_a_constructor_gives(tmp_path: Path, init: str, takes: int) -> None:
    """By place and by name, of torch's class and of one of the engine's own; with the line, and compared."""
    found = projection(tmp_path, init, target_hidden_size=64)
    assert found is not None
    assert (found.in_features, found.out_features, found.fed, found.agrees) == (takes, 32, 192, takes == 192)
    lines = (tmp_path / "sglang/srt/models/draft.py").read_text("utf-8").split("\n")
    assert "Linear(" in lines[found.line - 1]
    assert "self.fc" in lines[found.line - 1]


def test_an_fc_in_the_inner_model(tmp_path: Path) -> None:
    """Draft classes keep it in the model that they hold."""
    inner = "class Inner(nn.Module):\n    def __init__(self, config):\n        super().__init__()\n"
    inner += "        self.fc = nn.Linear(192, config.hidden_size)\n"
    root = write_engine(tmp_path, Model(extra={}))
    text = (
        f"from torch import nn\n\n{inner}\n\nclass Eagle3Draft(nn.Module):\n    def __init__(self, config, **rest):\n"
    )
    text += "        super().__init__()\n        self.model = Inner(config)\n"
    (root / "sglang/srt/models/draft.py").write_text(text, "utf-8")
    found = handle(root)
    binding = found.engine.target_class(found.source, "LlamaForCausalLM")
    assert binding is not None
    draft = {**DRAFT, "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 4, 7]}}
    request = ServingRequest(binding, 12, TARGET, draft_data=draft)
    made = derive_projection(found.engine, found.source, request, derive_serving(found.engine, found.source, request))
    assert made is not None
    assert (made.in_features, made.agrees) == (192, True)


@pytest.mark.parametrize(
    "init",
    [
        "self.fc = nn.Linear(states_of(config) * 64, config.hidden_size)",
        "import os\nself.fc = nn.Linear(192 if len(os.environ) else 64, config.hidden_size)",
        "self.projection = nn.Linear(192, config.hidden_size)",
        "self.fc = nn.Linear(config.no_such_key, config.hidden_size)",
    ],
)
def test_what_is_not_known_is_not_said(tmp_path: Path, init: str) -> None:
    """An unknown width, a condition that is not known, another name, a key that the config lacks."""
    assert projection(tmp_path, init) is None


def test_an_fc_that_is_left_out(tmp_path: Path) -> None:
    """One state as wide as the draft is not narrowed: nothing is compared."""
    found = projection(tmp_path, "self.fc = nn.Linear(192, 64)", ids=[4], hidden_size=64)
    assert found is not None
    assert (found.fed, found.agrees) == (64, None)


def test_a_conditional_wiring_is_not_compared(tmp_path: Path) -> None:
    """What may be fed otherwise disagrees with nothing for certain."""
    found = projection(tmp_path, "self.fc = nn.Linear(320, 32)", "tp=2")
    assert found is not None
    assert (found.fed, found.agrees) == (192, None)


def test_a_draft_class_that_is_not_there(tmp_path: Path) -> None:
    """A config that names no class of the engine has no fc that could be read."""
    assert projection(tmp_path, "self.fc = nn.Linear(192, 32)", architectures=["Other"]) is None
    assert projection(tmp_path, "self.fc = nn.Linear(192, 32)", architectures=None) is None


@pytest.mark.parametrize(
    ("config", "width"),
    [
        ({"hidden_size": 8}, 8),
        ({"hidden_size": 8, "text_config": {"hidden_size": 16}}, 16),
        ({"text_config": {}, "hidden_size": 8}, 8),
        ({"hidden_size": "8"}, None),
        ({}, None),
    ],
)
def test_the_width_of_a_target(config: dict[str, Any], width: int | None) -> None:
    """The language model's where there is one."""
    assert width_of(config) == width
