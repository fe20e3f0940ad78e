"""A draft's config gives up every list of layer ids, and its kind and dialect where something tells them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eaglelint.artifacts.draft import DraftConfig, is_draft_config, is_embedded_draft, read_draft
from eaglelint.artifacts.draft_kinds import DIALECT_SIGNS, IDS_KEYS, KIND_SIGNS
from eaglelint.exceptions import UnreadableInput
from eaglelint.finding import Position


def draft(data: dict[str, Any]) -> DraftConfig:
    return DraftConfig.parse("draft/config.json", json.dumps(data).encode())


EAGLE3 = {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "num_hidden_layers": 1}
DFLASH = {"architectures": ["DFlashDraftModel"], "dflash_config": {"target_layer_ids": [1, 9]}, "num_hidden_layers": 5}
SPECULATORS = {"architectures": ["Eagle3Speculator"], "speculators_model_type": "eagle3", "speculators_config": {}}

# name: config, kind, dialect
SHAPES: dict[str, tuple[dict[str, Any], str, str]] = {
    "SpecForge EAGLE-3": ({**EAGLE3, "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 2]}}, "eagle3", "sglang"),
    "SpecForge EAGLE-3 without ids": (EAGLE3, "eagle3", "sglang"),
    "ModelOpt export": ({**EAGLE3, "eagle_config": {"use_last_layernorm": True}}, "eagle3", "modelopt"),
    "ModelOpt, last state only": ({**EAGLE3, "eagle_config": {"use_aux_hidden_state": False}}, "eagle3", "sglang"),
    "vLLM class, ids at top level": (
        {"architectures": ["Eagle3LlamaForCausalLM"], "eagle_aux_hidden_state_layer_ids": [2, 21]}, "eagle3", "unknown",
    ),
    "a target class of its own": ({"architectures": ["Eagle3DeepseekV2ForCausalLM"]}, "eagle3", "unknown"),
    "speculators EAGLE-3": (SPECULATORS, "eagle3", "speculators"),
    "speculators P-EAGLE": ({"speculators_model_type": "peagle"}, "peagle", "speculators"),
    "speculators DFlash": ({**DFLASH, "speculators_model_type": "dflash"}, "dflash", "speculators"),
    "speculators, another algorithm": ({"speculators_model_type": "mlp_speculator"}, "unknown", "speculators"),
    "SpecForge P-EAGLE": ({"architectures": ["PEagleDraftModel"]}, "peagle", "sglang"),
    "z-lab DFlash": (DFLASH, "dflash", "dflash"),
    "DFlash without a class": ({"hidden_size": 8, "dflash_config": {"mask_token_id": 1}}, "dflash", "dflash"),
    "AngelSlim DFlash": ({**DFLASH, "architectures": ["QwenDFlashDraftModel"]}, "dflash", "angelslim"),
    "AngelSlim EAGLE-3": (
        {"architectures": ["Eagle3LlamaForCausalLM"], "target_model_type": "qwen3"}, "eagle3", "angelslim",
    ),
    "SpecForge Domino": ({**DFLASH, "architectures": ["DominoDraftModel"]}, "domino", "dflash"),
    "Domino by its projector": (
        {"hidden_size": 8, "dflash_config": {"projector_type": "domino"}}, "domino", "dflash",
    ),
    "SpecForge DSpark": ({**DFLASH, "architectures": ["DSparkDraftModel"]}, "dspark", "dflash"),
    "DeepSeek V4 DSpark": (
        {"architectures": ["DeepseekV4ForCausalLM"], "num_hidden_layers": 43, "dspark_target_layer_ids": [40, 41]},
        "dspark", "unknown",
    ),
    "SafeAILab EAGLE-3": ({"architectures": ["LlamaForCausalLM"], "draft_vocab_size": 32000}, "eagle3", "eagle"),
    "vLLM's EAGLE wrapper": ({"model_type": "eagle", "model": {}}, "eagle", "eagle"),
    "SGLang EAGLE": ({"architectures": ["LlamaForCausalLMEagle"]}, "eagle", "sglang"),
    "vLLM EAGLE": ({"architectures": ["EagleMiniCPMForCausalLM"]}, "eagle", "unknown"),
    "EAGLE on an MTP body": ({"architectures": ["EagleDeepSeekMTPModel"]}, "eagle", "unknown"),
    "MTP": ({"architectures": ["Qwen3NextMTP"]}, "mtp", "unknown"),
    "NextN": ({"architectures": ["DeepseekV3ForCausalLMNextN"]}, "mtp", "unknown"),
    "SafeAILab EAGLE, which nothing tells": ({**EAGLE3, "architectures": ["LlamaForCausalLM"]}, "unknown", "unknown"),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_kind_and_dialect_are_recognised(name: str) -> None:
    """One row for each layout that is in use; a reason stands beside every answer."""
    data, kind, dialect = SHAPES[name]
    found = draft(data)
    assert (kind, dialect) == (found.kind, found.dialect)
    assert (kind != "unknown", dialect != "unknown") == (bool(found.kind_reason), bool(found.dialect_reason))
    assert is_draft_config(data) is (kind != "unknown")


@pytest.mark.parametrize(
    "data",
    [
        {"architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 61, "num_nextn_predict_layers": 1},
        {"architectures": ["Qwen3NextForCausalLM"], "num_hidden_layers": 48},
        {"architectures": ["Eagle2_5_VLForConditionalGeneration"], "model_type": "eagle_2_5_vl", "vision_config": {}},
        {"architectures": ["Eagle3_VLForConditionalGeneration"], "text_config": {"num_hidden_layers": 28}},
        {"architectures": ["EagleLlamaForCausalLM"], "mm_vision_tower": "a tower", "num_hidden_layers": 32},
        {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "model_max_length": 4096},
        {"eos_token_id": 2, "transformers_version": "5.0.0"},
        {"name": "eagle", "version": "1.0.0", "dependencies": {"eagle_config": "1"}},
        {"training": {"draft_vocab_size": 32000}, "eagle_aux_hidden_state_layer_ids": [1, 2, 3]},
        {"metadata": {}, "weight_map": {"fc.weight": "model.safetensors"}},
        {"architectures": "LlamaForCausalLMEagle3"[:5], "eagle_config": None},
        [],
        None,
        "eagle3",
    ],
)
def test_other_json_is_no_draft(data: Any) -> None:
    """A target, an Eagle vision model, a tokenizer, a package, options that quote a key: none is a draft's config."""
    assert not is_draft_config(data)


def test_every_sign_has_a_reason_and_can_match() -> None:
    """Each row of both tables says why, and none is shadowed by being impossible."""
    assert all(sign.reason and sign.key_path for sign in KIND_SIGNS)
    assert all(sign.reason and sign.key_path for sign in DIALECT_SIGNS)
    assert {"eagle3", "eagle", "peagle", "dflash", "dspark", "domino", "mtp"} == {sign.result for sign in KIND_SIGNS}
    assert {kind for _, kind, _ in SHAPES.values()} - {"unknown"} == {sign.result for sign in KIND_SIGNS}
    assert {dialect for *_, dialect in SHAPES.values()} - {"unknown"} == {sign.result for sign in DIALECT_SIGNS}


@pytest.mark.parametrize("key", sorted(IDS_KEYS))
@pytest.mark.parametrize("parents", [(), ("eagle_config",), ("transformer_layer_config", "extra")])
def test_ids_are_found_under_every_spelling_wherever_they_stand(key: str, parents: tuple[str, ...]) -> None:
    """At the top level and nested; ``layer_ids`` alone says too little elsewhere than in a draft's own table."""
    data: dict[str, Any] = {key: [2, 30, 58]}
    for parent in reversed(parents):
        data = {parent: data}
    expected = [] if key == "layer_ids" and parents != ("eagle_config",) else [((*parents, key), (2, 30, 58))]
    assert expected == [(ids.key_path, ids.values) for ids in draft(data).layer_ids]


def test_ids_come_in_the_order_of_the_text_with_their_places() -> None:
    """A config that states ids twice shows both, each with the place of the list, of its key and of each id."""
    text = """{"eagle_config": {"eagle_aux_hidden_state_layer_ids": [-1, 2]},
 "aux_hidden_states_layer_ids": [ 1 ,3,3]}"""
    nested, top = DraftConfig.parse("c.json", text.encode()).layer_ids
    assert (nested.key_path, nested.values) == (("eagle_config", "eagle_aux_hidden_state_layer_ids"), (-1, 2))
    assert top.values == (1, 3, 3)
    assert [Position(1, 56), Position(1, 60)] == [span.start for span in nested.item_spans]
    assert (Position(2, 33), Position(2, 42)) == (top.span.start, top.span.end)
    assert Position(2, 2) == top.key_span.start
    assert str(top) == "aux_hidden_states_layer_ids = [1, 3, 3]"


def test_lists_that_are_no_ids_are_kept_apart() -> None:
    """Null and an empty list say nothing; fractions, strings, booleans and a bare number are malformed."""
    found = draft(
        {
            "target_layer_ids": None,
            "eagle_aux_hidden_state_layer_ids": [],
            "dflash_config": {"target_layer_ids": [1, 2.0], "layer_ids": "1,2"},
            "a": {"target_layer_ids": [1, True]},
            "b": {"target_layer_ids": ["1", "2"]},
            "c": {"target_layer_ids": 3},
            "d": {"target_layer_ids": [[1]]},
            "e": [{"target_layer_ids": [4]}],
        }
    )
    assert [ids.key_path for ids in found.layer_ids] == [("e", "0", "target_layer_ids")]
    assert {".".join(ids.key_path): ids.reason for ids in found.malformed_ids} == {
        "dflash_config.target_layer_ids": "a list that holds a fraction",
        "dflash_config.layer_ids": "a string where a list of integers is read",
        "a.target_layer_ids": "a list that holds a boolean",
        "b.target_layer_ids": "a list that holds a string",
        "c.target_layer_ids": "an integer where a list of integers is read",
        "d.target_layer_ids": "a list that holds a list",
    }


def test_a_draft_in_its_targets_config_is_embedded() -> None:
    """DeepSeek V4 keeps the drafter's ids beside the target's own depth, V4.1 below text_config."""
    nested = {"model_type": "deepseek_v41", "text_config": {"num_hidden_layers": 40, "dspark_target_layer_ids": [37]}}
    assert draft(nested).embedded
    assert is_embedded_draft(nested)
    assert not draft(DFLASH).embedded
    assert not is_embedded_draft([])


def test_shape_and_count_are_found_wherever_the_dialect_keeps_them() -> None:
    """speculators nests the draft's shape; the number of hidden states may stand in eagle_config."""
    nested = draft(
        {**SPECULATORS, "transformer_layer_config": {"hidden_size": 4096}, "eagle_config": {"num_aux_hidden_states": 4}}
    )
    assert getattr(nested.text_node("hidden_size"), "value", None) == 4096
    assert nested.num_aux_hidden_states == 4
    assert nested.text_node("vocab_size") is None
    assert draft({"num_aux_hidden_states": 3}).num_aux_hidden_states == 3
    assert draft({"num_aux_hidden_states": True}).num_aux_hidden_states is None


def test_places_are_asked_by_key_path() -> None:
    """A value's place, a key's place, and the enclosing place where the value is missing."""
    config = DraftConfig.parse("c.json", b'{\n "eagle_config": {"x": 1}}')
    assert Position(2, 24) == config.span("eagle_config", "x").start
    assert Position(2, 18) == config.span("eagle_config", "eagle_aux_hidden_state_layer_ids").start
    assert Position(1, 1) == config.span().start
    assert Position(2, 2) == getattr(config.key_span("eagle_config"), "start", None)
    assert getattr(config.node("eagle_config", "x"), "value", None) == 1
    ids = DraftConfig.parse("c.json", b'{"target_layer_ids": [1]}').ids_at("target_layer_ids")
    assert ids is not None and ids.values == (1,)


@pytest.mark.parametrize("text", [b"", b"[1]", b'{"target_layer_ids": [1, 2', b"\xff\xfe{\x00", b"[" * 5000])
def test_a_config_in_an_editor_never_fails(text: bytes) -> None:
    """Half a document gives half a config."""
    config = DraftConfig.parse("c.json", text)
    assert config.document.errors or not config.data
    assert [(1, 2)] * (b"target" in text) == [ids.values for ids in config.layer_ids]


def test_a_draft_is_read_from_a_file_or_its_directory(tmp_path: Path) -> None:
    """Both name the config; a directory without one is refused in a sentence."""
    (tmp_path / "config.json").write_text(json.dumps(DFLASH))
    assert read_draft(tmp_path, "d").path == "d/config.json"
    assert read_draft(tmp_path / "config.json", "d/config.json").layer_ids[0].values == (1, 9)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnreadableInput, match=r"^d/empty is a directory without a config\.json"):
        read_draft(tmp_path / "empty", "d/empty")
