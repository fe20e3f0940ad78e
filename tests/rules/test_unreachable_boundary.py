"""CAP003: ids that no engine, or not this one, can turn into a hidden state."""

from __future__ import annotations

from typing import Any

import pytest

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.artifacts.target import TargetConfig
from eaglelint.rule import Served
from eaglelint.wiring import Fault
from tests.rules.facts import draft, eagle3, found, served, target, trained

NONE = Fault("the right operand of hidden_states + residual is None", "deepseek_v2.py", 2728, None, 0)
UNGUARDED = served((None, 3, 31), (-1, 2, 30), status="unknown", faults=(NONE,), mended=(2, 30, 58))


def test_a_state_before_there_is_a_residual() -> None:
    """The engine would stop at the capture; the slot, its id and the line are named."""
    config = eagle3([-1, 2, 30])
    (finding,) = found("CAP003", config, UNGUARDED, training=trained(3, 31, 59))
    assert (finding.severity, finding.confidence) == ("error", "certain")
    assert finding.message == (
        "slot 0 (id -1) is the state before layer 0, where the right operand of hidden_states + residual is still "
        "None: sglang 0.5.9 stops with TypeError at deepseek_v2.py:2728"
    )
    assert finding.span == config.layer_ids[0].item_spans[0]
    assert [(edit.safety, edit.text) for edit in finding.edits] == [("safe", "[2, 30, 58]")]


def test_a_state_that_is_never_captured() -> None:
    """The last layer's output, where the loop captures before each layer."""
    config = eagle3([2, 30, 60])
    (finding,) = found("CAP003", config, served((3, 31), (2, 30, 60), uncaptured=(2,)))
    assert (finding.severity, finding.confidence) == ("error", "certain")
    assert finding.message == (
        "id 60 asks for h[61], which DeepseekV3ForCausalLM never captures: in sglang 0.5.9 fc gets 2 of 3 states"
    )
    assert finding.span == config.layer_ids[0].item_spans[2]
    assert [row.label for row in finding.related] == ["served"]


def served_with(ids: tuple[int, ...], **more: Any) -> Served:
    return served((), ids, version="0.5.23", status="unknown", **more)


COUNT = Fault('RuntimeError: RuntimeError(f"captured {n} of {m}")', "aux_hidden_states.py", 87)
INDEX = Fault("IndexError: list index out of range", "qwen3_5.py", 1890)

# name: ids, what is served, the message
SAID: dict[str, tuple[list[int], Served, str]] = {
    "past the end of the target": (
        [2, 30, 70], served((3, 31), (2, 30, 70), uncaptured=(2,)),
        "id 70 asks for h[71] of a target that has 61 layers: in sglang 0.5.9 fc gets 2 of 3 states",
    ),
    "what the others mean is not known": (
        [2, 30, 60], served((3, None), (2, 30, 60), uncaptured=(2,), status="conditional"),
        "id 60 asks for a state, which DeepseekV3ForCausalLM never captures: in sglang 0.5.9 fc gets 2 of 3 states",
    ),
    "lost, and counted by the engine": (
        [2, 30, 61], served_with((2, 30, 61), faults=(COUNT,), uncaptured=(2,)),
        "id 61 asks for a state, which DeepseekV3ForCausalLM never captures: "
        "sglang 0.5.23 stops with RuntimeError at aux_hidden_states.py:87",
    ),
    "an index past the layers": (
        [1, 30, 60], served_with((1, 30, 60), faults=(INDEX,)),
        "id 60 is the last layer: sglang 0.5.23 stops with IndexError at qwen3_5.py:1890 (list index out of range)",
    ),
    "an id below the layers": (
        [-1, 2, 30], served_with((-1, 2, 30), faults=(COUNT,)),
        "id -1 lies before the first layer: sglang 0.5.23 stops with RuntimeError at aux_hidden_states.py:87 "
        '(RuntimeError(f"captured {n} of {m}"))',
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SAID)
def test_what_is_said(case: str) -> None:
    """The id, what it asks for, and what the engine makes of it."""
    ids, serving, message = SAID[case]
    (finding,) = found("CAP003", eagle3(ids), serving)
    assert finding.message == message
    assert finding.severity == "error"


def test_a_fault_of_the_default_list() -> None:
    """A target of three layers: its default asks for the state before layer 0."""
    (finding,) = found("CAP003", eagle3(), served((None, 1, 2), status="unknown", faults=(NONE,)))
    assert finding.message.startswith("slot 0 is the state before layer 0, where")


SILENT: dict[str, tuple[DraftConfig, tuple[Served, ...], TargetConfig | None]] = {
    "all is served": (eagle3([2, 30, 58]), (served((3, 31, 59), (2, 30, 58)),), target()),
    "a repeated id is CAP004's": (eagle3([2, 2, 58]), (served((3, 59), (2, 2, 58), uncaptured=(1,)),), target()),
    "a fault that explains no slot may be the interpreter's": (
        eagle3([2, 30, 58]), (served((3, 31, 59), (2, 30, 58), faults=(NONE,)),), target(),
    ),
    "a fault of another boundary than the unknown slot's": (
        eagle3([2, 30, 58]), (served((3, None, 59), (2, 30, 58), status="unknown", faults=(NONE,)),), target(),
    ),
    "an exception that no id explains": (
        eagle3([2, 30, 58]), (served_with((2, 30, 58), faults=(INDEX,)),), target(),
    ),
    "an exception from outside the source": (
        eagle3([2, 30, 60]), (served_with((2, 30, 60), faults=(Fault("AttributeError: no setter", "", 1),)),), target(),
    ),
    "a wiring of which nothing is known, not even the number of slots": (
        eagle3([2, 30, 58]), (served((None,), (2, 30, 58), uncaptured=(0, 1, 2), status="unknown"),), target(),
    ),
    "a boundary may equal the depth": (eagle3([2, 30, 61]), (), target()),
    "an embedding by its layer-output id": (eagle3([-1, 2, 30]), (), target()),
    "a large id and no target": (eagle3([2, 30, 99]), (), None),
    "auxiliary states are switched off": (
        draft('{"eagle_config": {"use_aux_hidden_state": false, "eagle_aux_hidden_state_layer_ids": [99]}}'), (),
        target(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SILENT)
def test_stays_silent(case: str) -> None:
    """Look-alikes that are right, and faults that prove nothing about the ids."""
    config, servings, of = SILENT[case]
    assert found("CAP003", config, *servings, target=of) == []


@pytest.mark.parametrize(
    ("ids", "of", "message"),
    [
        ([2, 30, 62], target(), "the target has 61 layers, so ids lie between -1 and 61"),
        ([-2, 2, 30], target(), "the target has 61 layers, so ids lie between -1 and 61"),
        ([-2, 2, 30], None, "the lowest id in use is -1, the embedding where ids count layer outputs"),
    ],
)
def test_out_of_range_in_every_convention(ids: list[int], of: TargetConfig | None, message: str) -> None:
    """Without an engine only what is wrong in every way to count is an error."""
    (finding,) = found("CAP003", eagle3(ids), target=of)
    assert (finding.severity, finding.confidence) == ("error", "certain")
    wrong = next(layer_id for layer_id in ids if layer_id < -1 or layer_id > 61)
    assert finding.message == f"id {wrong} is out of range however ids are counted: {message}"


def test_an_engine_that_could_not_be_followed_is_none() -> None:
    """Then the range is all there is to check."""
    (finding,) = found("CAP003", eagle3([2, 30, 99]), served((), (2, 30, 99), status="unknown"), target=target())
    assert "out of range" in finding.message
    assert [row.label for row in finding.related] == ["target"]
