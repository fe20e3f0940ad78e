"""CAP002: one finding for each engine that feeds the draft other states than it was trained on."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Position
from eaglelint.rule import Served
from eaglelint.wiring import Condition, Fault, Slot, Wiring
from tests.rules.facts import NESTED, TOP, draft, eagle3, fixed, found, served, slots, stated, trained

KIMI = (3, 31, 59)
OLD = served((3, 31, 59), (2, 30, 58))
NEW = served((2, 30, 58), (2, 30, 58), version="0.5.23", mended=(3, 31, 59))
SHIFTED = served((0, 3, 31), (-1, 2, 30), mended=(2, 30, 58))


def test_the_kimi_report() -> None:
    """The whole finding of the story that this project began with."""
    (finding,) = found("CAP002", eagle3([-1, 2, 30]), SHIFTED, training=trained(*KIMI))
    assert (finding.severity, finding.confidence) == ("error", "certain")
    assert finding.message == (
        "slot 0 was trained on h[3] and is served h[0] (the embedding); "
        "slot 1 was trained on h[31] and is served h[3]; slot 2 was trained on h[59] and is served h[31]"
    )
    assert finding.annotation == "h[0] in sglang 0.5.9 (DeepseekV3ForCausalLM)"
    assert [(row.label, str(row.span), row.message) for row in finding.related] == [
        ("trained", "training/capture.py:41:1", "captures before layer 3, 31, 59  ->  h[3] ⊕ h[31] ⊕ h[59]"),
        ("served", "sglang-0.5.9/deepseek_v2.py:2975:1", "layers_to_capture = [0, 3, 31]  ->  h[0] ⊕ h[3] ⊕ h[31]"),
        ("captured", "sglang-0.5.9/deepseek_v2.py:2728:1", "aux_hidden_states.append(hidden_states + residual)"),
        ("joined", "sglang-0.5.9/logits_processor.py:553:1", "torch.cat(aux_hidden_states, dim=-1)"),
    ]
    assert finding.help == "Write [2, 30, 58]: ids that sglang 0.5.9 turns into h[3] ⊕ h[31] ⊕ h[59]."
    (edit,) = finding.edits
    assert (edit.safety, edit.text) == ("safe", "[2, 30, 58]")
    assert edit.description == "ids that sglang 0.5.9 turns into h[3] ⊕ h[31] ⊕ h[59]"


SILENT: dict[str, tuple[DraftConfig | None, Served, Wiring | None]] = {
    "served as trained": (eagle3([2, 30, 58]), OLD, trained(*KIMI)),
    "defaults of both schools": (eagle3([1, 29, 57]), served((2, 30, 58), (1, 29, 57)), trained(2, 30, 58)),
    "nothing is known of the training": (eagle3([2, 30, 58]), OLD, None),
    "a training that could not be followed": (eagle3([2, 30, 58]), OLD, Wiring("training", "t.py", (), "unknown")),
    "an engine that could not be followed": (eagle3([2, 30, 58]), served((), status="unknown"), trained(*KIMI)),
    "unknown slots prove nothing": (
        eagle3([2, 30, 58]), served((None, 31, 59), (2, 30, 58), status="unknown"), trained(*KIMI),
    ),
    "a wiring of which nothing is known, not even the number of slots": (
        eagle3([2, 30, 58]), served((None,), (2, 30, 58), status="unknown"), trained(*KIMI),
    ),
    "the number of slots, where a wiring is not known for sure": (
        eagle3([2, 30, 58]), served((3, None), (2, 30, 58), status="unknown"), trained(*KIMI),
    ),
    "auxiliary states are switched off": (
        draft('{"architectures": ["X"], "eagle_config": {"use_aux_hidden_state": false, "layer_ids": [1]}}'),
        served((2, 30, 58)), trained(*KIMI),
    ),
    "a state that never arrives is CAP003's": (
        eagle3([2, 30, 60]), served((3, 31), (2, 30, 60), uncaptured=(2,)), trained(3, 31, 61),
    ),
    "no draft": (None, OLD, trained(1, 2, 3)),
}  # fmt: skip


@pytest.mark.parametrize("case", SILENT)
def test_stays_silent(case: str) -> None:
    """Where nothing is proven, nothing is said."""
    config, serving, training = SILENT[case]
    assert found("CAP002", config, serving, training=training) == []


@pytest.mark.parametrize(
    ("serving", "training", "severity", "confidence"),
    [
        (SHIFTED, trained(*KIMI), "error", "certain"),
        (SHIFTED, stated(*KIMI), "error", "certain"),
        (SHIFTED, trained(*KIMI, status="conditional"), "error", "likely"),
        (served((0, 3, 31), (-1, 2, 30), status="conditional"), trained(*KIMI), "error", "likely"),
        (served((None, 3, 31), (-1, 2, 30), status="unknown"), trained(*KIMI), "warning", "possible"),
        (
            served((None, 3, 31), (-1, 2, 30), status="unknown", faults=(Fault("None", "x.py", 1, None, 0),)),
            trained(*KIMI),
            "error",
            "likely",
        ),
    ],
)
def test_how_sure(serving: Served, training: Wiring, severity: str, confidence: str) -> None:
    """Certain only where both ends are exact; an error where it is at least likely."""
    (finding,) = found("CAP002", eagle3([-1, 2, 30]), serving, training=training)
    assert (finding.severity, finding.confidence) == (severity, confidence)


def test_only_the_differing_slots_are_named_and_the_first_is_pointed_at() -> None:
    config = eagle3([2, 30, 57])
    (finding,) = found("CAP002", config, served((3, 31, 58), (2, 30, 57)), training=trained(*KIMI))
    assert finding.message == "slot 2 was trained on h[59] and is served h[58]"
    assert finding.span == config.layer_ids[0].item_spans[2]
    assert finding.help is not None
    assert finding.help.startswith("No ids were found with which sglang 0.5.9 serves h[3] ⊕ h[31] ⊕ h[59]")


def test_another_number_of_states() -> None:
    """A state that is not there is named, and so are the totals."""
    (finding,) = found("CAP002", eagle3([2, 30]), served((3, 31), (2, 30)), training=trained(*KIMI))
    assert finding.message == "slot 2 was trained on h[59] and is served nothing (trained on 3 states, served 2)"
    (finding,) = found("CAP002", eagle3([2, 30, 58]), OLD, training=trained(3, 31))
    assert finding.message == "slot 2 is served h[59] and was not trained (trained on 2 states, served 3)"


def test_another_form_of_the_same_state() -> None:
    """What was trained whole and is served as a branch alone is not the same."""
    serving = replace(OLD, wiring=replace(OLD.wiring, slots=(Slot("partial", 3), *slots(31, 59))))
    (finding,) = found("CAP002", eagle3([2, 30, 58]), serving, training=trained(*KIMI))
    assert finding.message == "slot 0 was trained on h[3] and is served partial(h[3]) (a branch without the residual)"


def test_ids_out_of_order_are_pointed_at_as_a_whole() -> None:
    """Which id a slot belongs to is not known then."""
    config = eagle3([58, 2, 30])
    serving = served((3, 31, 59), (58, 2, 30))
    (finding,) = found("CAP002", config, serving, training=trained(59, 3, 31))
    assert finding.span == config.layer_ids[0].span


def test_the_default_is_reported_where_the_ignored_ids_stand() -> None:
    """Without any ids that is the start of the file."""
    serving = served((2, 30, 58), mended=(2, 30, 58), ignored=(TOP,))
    config = eagle3(top=[3, 31, 59])
    (finding,) = found("CAP002", config, serving, training=trained(*KIMI))
    assert finding.span == config.layer_ids[0].span
    (finding,) = found("CAP002", eagle3(), serving, training=trained(*KIMI))
    assert finding.span.start == Position(1, 1)
    assert finding.edits == ()
    assert finding.help == (
        "Every slot is served one layer too early.\n"
        "Write [2, 30, 58] in eagle_config.eagle_aux_hidden_state_layer_ids: "
        "ids that sglang 0.5.9 turns into h[3] ⊕ h[31] ⊕ h[59]."
    )


def test_a_declared_training_gets_no_safe_edit() -> None:
    """The declaration counts the ids of the list that the edit changes: applied twice, it would move them twice."""
    (finding,) = found("CAP002", eagle3([-1, 2, 30]), SHIFTED, training=stated(*KIMI))
    assert [edit.safety for edit in finding.edits] == ["unsafe"]
    assert finding.help is not None
    assert "no longer counts as declared" in finding.help


def test_an_upgrade_changes_the_meaning() -> None:
    """The same ids in two releases: the wrong one is reported, both are named, and no edit is offered as a fix."""
    (finding,) = found("CAP002", eagle3([2, 30, 58]), NEW, OLD, training=trained(*KIMI))
    assert finding.message == (
        "slot 0 was trained on h[3] and is served h[2]; slot 1 was trained on h[31] and is served h[30]; "
        "slot 2 was trained on h[59] and is served h[58]. The same ids mean "
        "h[3] ⊕ h[31] ⊕ h[59] in sglang 0.5.9 (sglang-0.5.9/deepseek_v2.py:2975) and "
        "h[2] ⊕ h[30] ⊕ h[58] in sglang 0.5.23 (sglang-0.5.23/deepseek_v2.py:2975): "
        "the config changes meaning with the upgrade"
    )
    assert [row.span.path for row in finding.related] == [
        "training/capture.py",
        "sglang-0.5.23/deepseek_v2.py",
        "sglang-0.5.9/deepseek_v2.py",
    ]
    assert [edit.safety for edit in finding.edits] == ["display"]
    assert finding.help == (
        "Every slot is served one layer too early.\n"
        "No one list serves both sglang 0.5.23 and sglang 0.5.9: choose the engine and the version that serve this "
        "draft; sglang 0.5.23 needs [3, 31, 59]."
    )


def test_an_engine_that_reads_another_list_is_no_rival() -> None:
    """An edit of one list leaves the other one alone."""
    other = served((3, 31, 59), (3, 31, 59), engine="vllm", version="0.33.0", key=TOP)
    config = eagle3([-1, 2, 30], top=[3, 31, 59])
    (finding,) = found("CAP002", config, SHIFTED, other, training=trained(*KIMI))
    assert [edit.safety for edit in finding.edits] == ["safe"]


def test_an_engine_that_could_not_be_followed_makes_the_edit_unsafe() -> None:
    other = served((None, None, None), (-1, 2, 30), version="0.5.23", status="unknown")
    (finding,) = found("CAP002", eagle3([-1, 2, 30]), SHIFTED, other, training=trained(*KIMI))
    assert [edit.safety for edit in finding.edits] == ["unsafe"]


def test_a_condition_is_named() -> None:
    condition = Condition("when can_run_tbo", slots(3, 31, 59))
    serving = served((2, 30, 58), (2, 30, 58), status="conditional", conditions=(condition,))
    (finding,) = found("CAP002", eagle3([2, 30, 58]), serving, training=trained(*KIMI))
    assert finding.help is not None
    assert finding.help.endswith("It is served otherwise when can_run_tbo, h[3] ⊕ h[31] ⊕ h[59].")


LAYOUTS = [
    ('{"eagle_config": {"eagle_aux_hidden_state_layer_ids": [-1, 2, 30]}}', "[2, 30, 58]"),
    ('{"eagle_config": {"eagle_aux_hidden_state_layer_ids": [-1,2,30]}}', "[2,30,58]"),
    ('{"eagle_config": {"eagle_aux_hidden_state_layer_ids": [ -1 , 2 , 30 ]}}', "[ 2 , 30 , 58 ]"),
    (
        '{\n  "eagle_config": {\n    "eagle_aux_hidden_state_layer_ids": [\n      -1,\n      2,\n      30\n    ]\n  }\n}\n',
        "[\n      2,\n      30,\n      58\n    ]",
    ),
    (
        '{\r\n\t"eagle_config": {"eagle_aux_hidden_state_layer_ids": [\r\n\t\t-1,\r\n\t\t2,\r\n\t\t30\r\n\t]}\r\n}',
        "[\r\n\t\t2,\r\n\t\t30,\r\n\t\t58\r\n\t]",
    ),
]


@pytest.mark.parametrize(("text", "expected"), LAYOUTS)
def test_the_edit_keeps_the_layout(text: str, expected: str) -> None:
    """A list keeps its brackets, line breaks and indentation, and the file stays JSON."""
    text = text.replace("{", '{"architectures": ["LlamaForCausalLMEagle3"], ', 1)
    config = draft(text)
    (finding,) = found("CAP002", config, SHIFTED, training=trained(*KIMI))
    assert finding.edits[0].text == expected
    after: dict[str, Any] = json.loads(fixed(config, finding))
    assert after["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [2, 30, 58]


def test_one_id_becomes_three() -> None:
    """A list of one has no separator to copy."""
    config = draft('{"eagle_config": {"eagle_aux_hidden_state_layer_ids": [\n  5\n]}, "model_type": "llama"}')
    serving = served((6,), (5,), mended=(2, 30, 58))
    (finding,) = found("CAP002", config, serving, training=trained(*KIMI))
    assert finding.edits[0].text == "[\n  2,\n  30,\n  58\n]"


def test_two_engines_disagree_and_the_training_is_not_known() -> None:
    """One warning for all of them: at most one can be right."""
    config = eagle3([2, 30, 58])
    (finding,) = found("CAP002", config, NEW, OLD)
    assert (finding.severity, finding.confidence) == ("warning", "likely")
    assert finding.message == (
        "the same ids mean h[3] ⊕ h[31] ⊕ h[59] in sglang 0.5.9 (sglang-0.5.9/deepseek_v2.py:2975) and "
        "h[2] ⊕ h[30] ⊕ h[58] in sglang 0.5.23 (sglang-0.5.23/deepseek_v2.py:2975): "
        "the config changes meaning with the upgrade; which of them the draft was trained for is not known"
    )
    assert finding.span == config.layer_ids[0].span
    assert finding.help is not None
    assert "--trained-by" in finding.help


def test_engines_that_agree_or_overlook_the_ids_do_not_disagree() -> None:
    """What an engine serves because it overlooked the ids is CFG001's to report."""
    assert found("CAP002", eagle3([2, 30, 58]), OLD, replace(OLD)) == []
    unknown = served((None,), (2, 30, 58), version="0.5.23", status="unknown")
    assert found("CAP002", eagle3([2, 30, 58]), OLD, unknown) == []
    overlooks = served((2, 30, 58), engine="vllm", version="0.33.0", looks_in=(TOP,))
    assert found("CAP002", eagle3([2, 30, 58]), OLD, overlooks) == []


def test_the_fingerprint_survives_moved_lines() -> None:
    """The same fault two lines further down is the same finding."""
    moved = draft(
        '{\n\n"architectures": ["LlamaForCausalLMEagle3"],\n'
        '"eagle_config": {"eagle_aux_hidden_state_layer_ids": [-1, 2, 30]}}'
    )
    assert moved.layer_ids[0].key_path == NESTED
    (first,) = found("CAP002", eagle3([-1, 2, 30]), SHIFTED, training=trained(*KIMI))
    (second,) = found("CAP002", moved, SHIFTED, training=trained(*KIMI))
    assert first.fingerprint == second.fingerprint
    assert first.span != second.span
