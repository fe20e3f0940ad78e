"""CAP001: a draft without layer ids is served what each engine happens to guess."""

from __future__ import annotations

import json

import pytest

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Position
from eaglelint.rule import Served
from eaglelint.wiring import Fault
from tests.rules.facts import dflash, draft, eagle3, fixed, found, served, trained

DEFAULT = served((2, 30, 58))


def test_the_default_that_is_served_is_named() -> None:
    """With the line that sets it."""
    (finding,) = found("CAP001", eagle3(), DEFAULT)
    assert (finding.severity, finding.confidence) == ("warning", "certain")
    assert finding.message == (
        "the config of this EAGLE-3 draft holds no layer ids, so sglang 0.5.9 guesses: "
        "it serves its default h[2] ⊕ h[30] ⊕ h[58]"
    )
    assert [str(row.span) for row in finding.related] == ["sglang-0.5.9/deepseek_v2.py:2975:1"]
    assert finding.span.start == Position(1, 1)


@pytest.mark.parametrize(
    ("config", "servings", "severity", "confidence"),
    [
        (eagle3(), (), "warning", "possible"),
        (eagle3(), (served((), status="unknown"),), "warning", "possible"),
        (eagle3(), (served((None,), status="unknown"),), "warning", "possible"),
        (eagle3(), (served((2, 30, 58), status="conditional"),), "warning", "likely"),
        (dflash(), (), "error", "likely"),
        (dflash(), (DEFAULT,), "error", "certain"),
    ],
)
def test_how_sure(config: DraftConfig, servings: tuple[Served, ...], severity: str, confidence: str) -> None:
    """EAGLE-3 has a customary default and DFlash has none, so there the absence is an error."""
    (finding,) = found("CAP001", config, *servings)
    assert (finding.severity, finding.confidence) == (severity, confidence)


def test_without_an_engine() -> None:
    (finding,) = found("CAP001", dflash())
    assert finding.message == (
        "the config of this DFlash-family draft holds no layer ids, so every engine guesses its own default list"
    )
    assert finding.help == ("Write the ids that the draft was trained on, usually in dflash_config.target_layer_ids.")


@pytest.mark.parametrize(
    "text",
    [
        '{"architectures": ["LlamaForCausalLMEagle3"], "eagle_config": {"use_aux_hidden_state": false}}',
        '{"architectures": ["LlamaForCausalLMEagle3"], "use_aux_hidden_state": false}',
        '{"architectures": ["LlamaForCausalLMEagle"]}',
        '{"architectures": ["Qwen3NextMTP"]}',
        '{"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 32}',
        '{"architectures": ["LlamaForCausalLMEagle3"], "aux_hidden_states_layer_ids": [1, 14, 26]}',
    ],
)
def test_stays_silent(text: str) -> None:
    """Drafts that take no auxiliary states, and drafts that hold ids under whatever key."""
    assert found("CAP001", draft(text), DEFAULT) == []


def test_a_default_that_is_proven_right() -> None:
    """Both schools' defaults are the same three states; only an engine that differs is reported."""
    assert found("CAP001", eagle3(), DEFAULT, training=trained(2, 30, 58)) == []
    assert len(found("CAP001", eagle3(), DEFAULT, training=trained(3, 31, 59))) == 1
    other = served((3, 31, 59), engine="vllm", version="0.33.0")
    (finding,) = found("CAP001", eagle3(), DEFAULT, other, training=trained(2, 30, 58))
    assert "vllm 0.33.0 guesses" in finding.message


def test_an_engine_that_stops_without_ids() -> None:
    serving = served((), status="unknown", faults=(Fault("ValueError: requires explicit layer_ids", "m.py", 7),))
    (finding,) = found("CAP001", dflash(), serving)
    assert finding.message == (
        "the config of this DFlash-family draft holds no layer ids, and sglang 0.5.9 stops without them at m.py:7: "
        "ValueError: requires explicit layer_ids"
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"architectures": ["LlamaForCausalLMEagle3"],\n"eagle_config": {}}', Position(2, 1)),
        ('{"architectures": ["LlamaForCausalLMEagle3"],\n"eagle_aux_hidden_state_layer_ids": null}', Position(2, 37)),
        ('{"eagle_config": {\n"eagle_aux_hidden_state_layer_ids": []}, "model_type": "llama"}', Position(2, 37)),
        ('{"eagle_config": {\n"eagle_aux_hidden_state_layer_ids": "2"}, "model_type": "llama"}', Position(2, 37)),
    ],
)
def test_where_it_points(text: str, place: Position) -> None:
    """At the value that ought to be a list, else at the section that ought to hold it."""
    (finding,) = found("CAP001", draft(text), DEFAULT)
    assert finding.span.start == place


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{\n  "architectures": ["LlamaForCausalLMEagle3"]\n}\n', '{\n  "eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 30, 58]},\n  "architectures": ["LlamaForCausalLMEagle3"]\n}\n'),
        ('{"architectures": ["LlamaForCausalLMEagle3"], "eagle_config": {}}', '{"architectures": ["LlamaForCausalLMEagle3"], "eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 30, 58]}}'),
        ('{"architectures": ["LlamaForCausalLMEagle3"], "eagle_config": null}', '{"architectures": ["LlamaForCausalLMEagle3"], "eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 30, 58]}}'),
        ('{"architectures": ["LlamaForCausalLMEagle3"], "eagle_config": {"use_aux_hidden_state": true}}', '{"architectures": ["LlamaForCausalLMEagle3"], "eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 30, 58], "use_aux_hidden_state": true}}'),
        ('{"architectures": ["LlamaForCausalLMEagle3"],\r\n\t"eagle_config": {\r\n\t\t"use_aux_hidden_state": true\r\n\t}\r\n}', '{"architectures": ["LlamaForCausalLMEagle3"],\r\n\t"eagle_config": {\r\n\t\t"eagle_aux_hidden_state_layer_ids": [2, 30, 58],\r\n\t\t"use_aux_hidden_state": true\r\n\t}\r\n}'),
    ],
)  # fmt: skip
def test_the_edit_writes_the_list_where_the_engine_looks(text: str, expected: str) -> None:
    """Where the training is known; the rest of the file stays as it is."""
    config = draft(text)
    (finding,) = found("CAP001", config, served((2, 30, 58), mended=(2, 30, 58)), training=trained(3, 31, 59))
    assert finding.edits[0].safety == "unsafe"
    assert fixed(config, finding) == expected
    json.loads(expected)
