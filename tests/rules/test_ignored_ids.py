"""CFG001: ids that stand where the engine never looks."""

from __future__ import annotations

import json

import pytest

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Position
from eaglelint.rule import Served
from eaglelint.wiring import Wiring
from tests.rules.facts import NESTED, TOP, draft, eagle3, fixed, found, served, stated, trained

DEFAULT = served((2, 30, 58))
KIMI = trained(3, 31, 59)


def test_ids_at_the_top_level() -> None:
    """Where they stand, where the engine looks, and what it serves instead."""
    config = eagle3(top=[3, 31, 59])
    (finding,) = found("CFG001", config, DEFAULT)
    assert (finding.severity, finding.confidence) == ("error", "certain")
    assert finding.message == (
        "eagle_aux_hidden_state_layer_ids at the top level is never read by sglang 0.5.9: it looks in "
        "eagle_config.eagle_aux_hidden_state_layer_ids, finds nothing there and serves its default "
        "h[2] ⊕ h[30] ⊕ h[58]"
    )
    assert finding.span == config.layer_ids[0].key_span
    assert [row.label for row in finding.related] == ["served"]
    assert finding.help == (
        "Write the ids in eagle_config.eagle_aux_hidden_state_layer_ids, counted as sglang 0.5.9 counts them there: "
        "whether [3, 31, 59] is counted so is not known."
    )
    assert [edit.safety for edit in finding.edits] == ["display"]


def test_nested_ids_and_an_engine_that_looks_elsewhere() -> None:
    serving = served(
        (2, 30, 58),
        engine="vllm",
        version="0.33.0",
        looks_in=(TOP, ("target_layer_ids",), ("eagle_config", "layer_ids")),
    )
    (finding,) = found("CFG001", eagle3([3, 31, 59]), serving)
    assert finding.message == (
        "eagle_config.eagle_aux_hidden_state_layer_ids is never read by vllm 0.33.0: it looks in "
        "eagle_aux_hidden_state_layer_ids at the top level, target_layer_ids at the top level or "
        "eagle_config.layer_ids, finds nothing there and serves its default h[2] ⊕ h[30] ⊕ h[58]"
    )


# name: draft, what is served, the training, severity, confidence, the end of the message
SAID: dict[str, tuple[DraftConfig, Served, Wiring | None, str, str, str]] = {
    "trained otherwise": (
        eagle3(top=[2, 30, 58]), DEFAULT, KIMI, "error", "certain", "h[58], not h[3] ⊕ h[31] ⊕ h[59] as trained",
    ),
    "right by chance": (
        eagle3(top=[2, 30, 58]), DEFAULT, trained(2, 30, 58), "warning", "certain",
        "which happens to be what was trained",
    ),
    "right by chance if the ids are boundaries": (
        eagle3(top=[2, 30, 58]), DEFAULT, None, "warning", "certain",
        "which happens to be what [2, 30, 58] means where ids count boundaries",
    ),
    "right by chance if the ids are layer outputs": (
        eagle3(top=[1, 29, 57]), DEFAULT, None, "warning", "certain",
        "which happens to be what [1, 29, 57] means where ids count layer outputs",
    ),
    "conditional": (
        eagle3(top=[3, 31, 59]), served((2, 30, 58), status="conditional"), None, "error", "likely", "h[58]",
    ),
    "unknown slots": (
        eagle3(top=[3, 31, 59]), served((2, None, 58), status="unknown"), None, "warning", "possible", "h[58]",
    ),
    "an engine that looks nowhere": (
        eagle3(top=[3, 31, 59]), served((2, 30, 58), looks_in=()), None, "error", "certain",
        "is never read by sglang 0.5.9: it finds no ids and serves its default h[2] ⊕ h[30] ⊕ h[58]",
    ),
    "two lists, both of them elsewhere": (
        eagle3(top=[2, 15, 27], aux_hidden_states_layer_ids=[1, 14, 26]), served((2, 15, 27)), None,
        "warning", "certain", "which happens to be what [2, 15, 27] means where ids count boundaries",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SAID)
def test_how_bad_it_is(case: str) -> None:
    """An error unless the default is, or may well be, what the ids mean."""
    config, serving, training, severity, confidence, end = SAID[case]
    (finding,) = found("CFG001", config, serving, training=training)
    assert (finding.severity, finding.confidence) == (severity, confidence)
    assert finding.message.endswith(end)


SILENT: dict[str, tuple[DraftConfig, Served]] = {
    "the list was read": (eagle3([2, 30, 58]), served((3, 31, 59), (2, 30, 58))),
    "another consumer's list beside the one that was read": (
        eagle3(top=[2, 15, 27], aux_hidden_states_layer_ids=[1, 14, 26]),
        served((2, 15, 27), (2, 15, 27), key=TOP, looks_in=(TOP,), engine="vllm"),
    ),
    "the same list at both places": (
        eagle3([2, 21, 39], top=[2, 21, 39]), served((3, 22, 40), (2, 21, 39), key=NESTED),
    ),
    "no ids at all is CAP001's": (eagle3(), DEFAULT),
    "an engine that could not be followed": (eagle3(top=[3, 31, 59]), served((), status="unknown")),
    "a default that could not be followed": (eagle3(top=[3, 31, 59]), served((None,), status="unknown")),
    "a list at a place where the engine does look": (eagle3([3, 31, 59]), DEFAULT),
    "auxiliary states are switched off": (
        draft('{"eagle_config": {"use_aux_hidden_state": false}, "eagle_aux_hidden_state_layer_ids": [2]}'), DEFAULT,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SILENT)
def test_stays_silent(case: str) -> None:
    """Where a proper list was read, further lists are nobody's fault."""
    config, serving = SILENT[case]
    assert found("CFG001", config, serving) == []


def test_the_list_under_a_known_key_is_pointed_at() -> None:
    """Of several lists the one whose key the engine knows, wherever it stands."""
    config = draft(
        '{"architectures": ["Eagle3LlamaForCausalLM"], "aux_hidden_states_layer_ids": [1, 9, 26],\n'
        '"eagle_aux_hidden_state_layer_ids": [2, 10, 27]}'
    )
    (finding,) = found("CFG001", config, DEFAULT)
    assert finding.span.start == Position(2, 1)
    assert finding.message.startswith(
        "eagle_aux_hidden_state_layer_ids at the top level and aux_hidden_states_layer_ids at the top level are never"
    )


@pytest.mark.parametrize(("training", "servings"), [(KIMI, 1), (stated(3, 31, 59), 1), (KIMI, 2)])
def test_the_edit_where_the_training_is_known(training: Wiring, servings: int) -> None:
    """The mended list goes where the engine looks; with a second engine in the scan it is left to a person."""
    config = draft(
        '{\n  "architectures": ["LlamaForCausalLMEagle3"],\n  "eagle_aux_hidden_state_layer_ids": [3, 31, 59]\n}\n'
    )
    serving = served((2, 30, 58), mended=(2, 30, 58))
    others = [served((3, 31, 59), (3, 31, 59), key=TOP, engine="vllm")] * (servings - 1)
    (finding,) = found("CFG001", config, serving, *others, training=training)
    assert [edit.safety for edit in finding.edits] == ["unsafe" if servings == 1 else "display"]
    text = fixed(config, finding)
    assert text.splitlines()[1] == '  "eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 30, 58]},'
    assert json.loads(text)["eagle_aux_hidden_state_layer_ids"] == [3, 31, 59]
    assert finding.help == "Write [2, 30, 58] in eagle_config.eagle_aux_hidden_state_layer_ids."
