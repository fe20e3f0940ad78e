"""The small engine of the rules' pages is followed exactly; else the pages would show what is not proven."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eaglelint.derive import ServingRequest, derive_serving
from eaglelint.serving import open_serving
from eaglelint.wiring import Wiring

PROJECT = Path(__file__).parent / "projects/mini-sglang"


def wiring(draft: dict[str, Any]) -> Wiring:
    """What the engine feeds a draft with this config, for a target of 61 layers."""
    handle = open_serving("sglang@sglang", root=PROJECT, display_root=PROJECT)
    binding = handle.engine.target_class(handle.source, "LlamaForCausalLM")
    assert binding is not None
    target = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 61}
    return derive_serving(handle.engine, handle.source, ServingRequest(binding, 61, target, "eagle3", draft))


@pytest.mark.parametrize(
    ("draft", "layer_ids", "slots"),
    [
        ({}, "default", "h[2] ⊕ h[30] ⊕ h[58]"),
        ({"eagle_aux_hidden_state_layer_ids": [3, 31, 59]}, "default", "h[2] ⊕ h[30] ⊕ h[58]"),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 30, 58]}}, (2, 30, 58), "h[3] ⊕ h[31] ⊕ h[59]"),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [-1, 2, 30]}}, (-1, 2, 30), "h[0] ⊕ h[3] ⊕ h[31]"),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 30, 60]}}, (2, 30, 60), "h[3] ⊕ h[31]"),
    ],
)
def test_it_is_followed_exactly(draft: dict[str, Any], layer_ids: object, slots: str) -> None:
    """Its default, a place where it does not look, ids that it shifts, and one that it cannot reach."""
    found = wiring(draft)
    assert (found.status, found.layer_ids, str(found)) == ("exact", layer_ids, slots)


def test_its_evidence() -> None:
    """The setter, the capture and the concatenation are named, in this order."""
    lines = [str(item) for item in wiring({}).evidence]
    assert lines == [
        "sglang/srt/models/capture.py:8",
        *["sglang/srt/models/llama.py:49"] * 3,
        "sglang/srt/layers/logits_processor.py:20",
    ]
