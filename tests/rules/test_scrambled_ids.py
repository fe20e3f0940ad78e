"""CAP004: lists that say something else than what reaches the draft."""

from __future__ import annotations

import pytest

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.rule import Served
from eaglelint.wiring import Fault, Wiring
from tests.rules.facts import draft, eagle3, found, served, stated, trained

SHRUNK = served((3, 59), (2, 2, 58))
ORDERED = served((3, 31, 59), (58, 2, 30))
AS_LISTED = served((59, 3, 31), (58, 2, 30), engine="vllm", version="0.33.0")


def test_a_repeated_id() -> None:
    """Captured once, while fc is as wide as the list."""
    config = eagle3([2, 2, 58])
    (finding,) = found("CAP004", config, SHRUNK)
    assert (finding.severity, finding.confidence) == ("error", "certain")
    assert finding.message == (
        "id 2 stands at positions 0 and 1: sglang 0.5.9 captures 2 states for 3 ids, and fc is as wide as the ids"
    )
    assert finding.span == config.layer_ids[0].item_spans[1]
    assert finding.annotation == "already at position 0"


def test_a_lost_order() -> None:
    config = eagle3([58, 2, 30])
    (finding,) = found("CAP004", config, ORDERED)
    assert (finding.severity, finding.confidence) == ("warning", "likely")
    assert finding.message == (
        "ids [58, 2, 30] do not ascend, and sglang 0.5.9 captures in the order of the layers: "
        "fc gets h[3] ⊕ h[31] ⊕ h[59]"
    )
    assert finding.span == config.layer_ids[0].span
    assert [(edit.safety, edit.text) for edit in finding.edits] == [("unsafe", "[2, 30, 58]")]


# name: ids, what is served, the training, severity, confidence, a part of the message
SAID: dict[str, tuple[list[int], tuple[Served, ...], Wiring | None, str, str, str]] = {
    "repeated, no engine": ([2, 2, 58], (), None, "warning", "likely", "engines capture a state once"),
    "repeated, fed twice": (
        [2, 2, 58], (served((3, 3, 59), (2, 2, 58)),), None, "warning", "certain", "sglang 0.5.9 feeds one state twice",
    ),
    "repeated, and the engine counts": (
        [2, 2, 58],
        (served((), (2, 2, 58), status="unknown", faults=(Fault("RuntimeError: 2 of 3", "aux.py", 87),)),), None,
        "error", "likely", "sglang 0.5.9 stops at aux.py:87",
    ),
    "order lost, no engine": ([58, 2, 30], (), None, "warning", "possible", "most engines capture in the order"),
    "order lost, and served otherwise than trained": (
        [58, 2, 30], (ORDERED,), trained(59, 3, 31), "warning", "likely", "fc gets h[3] ⊕ h[31] ⊕ h[59]",
    ),
    "order lost, no engine, declared": (
        [58, 2, 30], (), stated(59, 3, 31), "warning", "possible", "do not ascend",
    ),
    "negative, no engine": (
        [-1, 2, 30], (), None, "warning", "possible",
        "id -1 is the embedding where ids count layer outputs, and the last state or nothing elsewhere",
    ),
    "negative, an engine that could not be followed": (
        [-1, 2, 30], (served((), (-1, 2, 30), status="unknown"),), None, "warning", "possible", "id -1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SAID)
def test_what_is_said(case: str) -> None:
    """How bad it is depends on what the engine makes of the list."""
    ids, servings, training, severity, confidence, words = SAID[case]
    (finding,) = found("CAP004", eagle3(ids), *servings, training=training)
    assert (finding.severity, finding.confidence) == (severity, confidence)
    assert words in finding.message


SILENT: dict[str, tuple[DraftConfig, tuple[Served, ...], Wiring | None]] = {
    "ascending": (eagle3([2, 30, 58]), (), None),
    "the training captured in the order of the layers": (eagle3([58, 2, 30]), (ORDERED,), trained(3, 31, 59)),
    "the same without an engine": (eagle3([58, 2, 30]), (), trained(3, 31, 59)),
    "an engine that keeps the order of the list": (eagle3([58, 2, 30]), (AS_LISTED,), None),
    "trained with one state twice": (eagle3([2, 2, 58]), (served((3, 3, 59), (2, 2, 58)),), trained(3, 3, 59)),
    "a negative id whose meaning is known": (eagle3([-1, 2, 30]), (served((0, 3, 31), (-1, 2, 30)),), None),
    "a list as long as it is, and a wiring of which nothing is known": (
        eagle3([2, 30, 58]), (served((None,), (2, 30, 58), status="unknown"),), None,
    ),
    "below -1 is CAP003's": (eagle3([-2, 2, 30]), (), None),
    "-1 has a meaning of its own in TensorRT-LLM": (
        draft('{"architectures": ["LlamaForCausalLMEagle3"], "eagle3_layers_to_capture": [-1]}'), (), None,
    ),
    "a list that this engine does not read": (eagle3(top=[58, 2, 30]), (served((2, 30, 58)),), None),
    "auxiliary states are switched off": (
        draft('{"eagle_config": {"use_aux_hidden_state": false, "eagle_aux_hidden_state_layer_ids": [5, 5, -1]}}'), (),
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SILENT)
def test_stays_silent(case: str) -> None:
    """What is served as trained is right, however the list looks."""
    config, servings, training = SILENT[case]
    assert found("CAP004", config, *servings, training=training) == []
