"""A target's config says how many decoder layers there are, wherever its family keeps the number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eaglelint.artifacts.document import Document
from eaglelint.artifacts.target import TargetConfig, is_target_config, read_target
from eaglelint.exceptions import UnreadableInput, WrongUsage
from eaglelint.finding import Position


def target(data: dict[str, Any]) -> TargetConfig:
    return TargetConfig.from_document(Document.parse("target/config.json", json.dumps(data).encode()))


@pytest.mark.parametrize(
    ("data", "num_layers", "key_path"),
    [
        ({"num_hidden_layers": 36}, 36, "num_hidden_layers"),
        ({"num_layers": 28}, 28, "num_layers"),
        ({"n_layer": 12}, 12, "n_layer"),
        ({"n_layers": 40}, 40, "n_layers"),
        ({"text_config": {"num_hidden_layers": 61}}, 61, "text_config.num_hidden_layers"),
        ({"llm_config": {"num_hidden_layers": 32}}, 32, "llm_config.num_hidden_layers"),
        ({"language_config": {"num_hidden_layers": 30}}, 30, "language_config.num_hidden_layers"),
        ({"thinker_config": {"text_config": {"num_hidden_layers": 48}}}, 48, "thinker_config.text_config.num_hidden_layers"),
        ({"num_hidden_layers": 2, "text_config": {"num_hidden_layers": 61}}, 61, "text_config.num_hidden_layers"),
        ({"num_hidden_layers": 80, "text_config": {"model_type": "llama"}}, 80, "num_hidden_layers"),
        ({"num_hidden_layers": 80, "text_config": None, "vision_config": {"num_hidden_layers": 24}}, 80, "num_hidden_layers"),
        ({"num_hidden_layers": None, "n_layer": 6}, 6, "n_layer"),
    ],
)  # fmt: skip
def test_the_layer_count_is_found(data: dict[str, Any], num_layers: int, key_path: str) -> None:
    """A nested language model comes before the top level, a vision tower never counts."""
    found = target(data)
    assert (num_layers, key_path) == (found.num_layers, ".".join(found.num_layers_path))
    assert found.num_layers_span == found.span(*found.num_layers_path)


def test_a_multimodal_target_names_both_classes_and_its_places() -> None:
    """Kimi-K2.5: the served class at the top, the language model's class and shape inside."""
    text = b"""{"architectures": ["KimiK25ForConditionalGeneration"], "vocab_size": 5,
 "text_config": {"architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 61, "hidden_size": 7168}}"""
    found = TargetConfig.from_document(Document.parse("t.json", text))
    assert found.architectures == ("KimiK25ForConditionalGeneration",)
    assert found.text_architectures == ("DeepseekV3ForCausalLM",)
    assert found.num_layers_span is not None and Position(2, 83) == found.num_layers_span.start
    assert tuple(map(found.text_value, ("hidden_size", "vocab_size", "rope_theta"))) == (7168, 5, None)


def test_the_inner_class_stands_in_where_the_top_names_none() -> None:
    """A config that was cut down to its language model is still a target."""
    assert target({"text_config": {"architectures": ["A"], "num_hidden_layers": 3}}).architectures == ("A",)
    assert target({"num_hidden_layers": 3}).architectures == ()


@pytest.mark.parametrize("value", [0, -1, True, 3.0, "36", [36], 10**9])
def test_a_number_that_is_no_layer_count_is_refused_where_it_stands(value: Any) -> None:
    """Zero, a boolean, a fraction, a string or a billion layers."""
    with pytest.raises(UnreadableInput, match=r"^target/config\.json:1:23: num_hidden_layers is no layer count\. "):
        target({"num_hidden_layers": value})


def test_a_missing_layer_count_names_the_keys_that_were_looked_for() -> None:
    """The user learns what was expected and the way round it."""
    with pytest.raises(UnreadableInput) as caught:
        target({"architectures": ["LlavaForConditionalGeneration"], "text_config": {"model_type": "llama"}})
    assert str(caught.value) == (
        "target/config.json: no layer count found. Looked for num_hidden_layers, num_layers, n_layer, n_layers at the "
        "top level and in thinker_config.text_config, text_config, llm_config, language_config, thinker_config. "
        "Name the target's config.json, or give the depth with --num-layers."
    )


def test_a_depth_given_by_flag_is_a_target_without_a_file() -> None:
    """``--num-layers 61`` is enough to count boundaries."""
    found = TargetConfig.synthetic(61, ("DeepseekV3ForCausalLM",))
    assert (found.num_layers, found.architectures, found.document) == (61, ("DeepseekV3ForCausalLM",), None)
    assert (
        found.span("num_hidden_layers"),
        found.text_node("x"),
        found.text_value("num_hidden_layers"),
    ) == (None, None, 61)
    assert "architectures" not in TargetConfig.synthetic(61).data  # it may be any class, and not none
    with pytest.raises(WrongUsage, match="--num-layers 0 is no layer count"):
        TargetConfig.synthetic(0)


def test_a_target_is_read_from_a_file_or_its_directory(tmp_path: Path) -> None:
    """Both name the config; what is missing is said."""
    (tmp_path / "config.json").write_text('{"num_hidden_layers": 4}')
    assert (read_target(tmp_path, "t").num_layers, read_target(tmp_path, "t").path) == (4, "t/config.json")
    assert read_target(tmp_path / "config.json", "c").num_layers == 4
    with pytest.raises(UnreadableInput, match=r"^t\.json does not exist"):
        read_target(tmp_path / "t.json", "t.json")
    (tmp_path / "config.json").write_text('{"num_hidden_layers": }')
    with pytest.raises(UnreadableInput, match=r"^t/config\.json:1:23: not valid JSON: expected a value before '}'"):
        read_target(tmp_path, "t")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 32}, True),
        ({"model_type": "kimi_k25", "text_config": {"num_hidden_layers": 61}}, True),
        ({"num_hidden_layers": 32}, False),
        ({"architectures": ["LlamaForCausalLM"]}, False),
        ({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": "32"}, False),
        ({"tokenizer_class": "LlamaTokenizer"}, False),
        ([], False),
    ],
)
def test_a_targets_config_is_told_from_other_json(data: Any, expected: bool) -> None:
    """It names a class or a type, and a depth."""
    assert expected is is_target_config(data)
