"""Whatever bytes lie beside a config: the readers give a sentence or a value, never another error."""

from __future__ import annotations

import io
import json
import os
import struct
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eaglelint.artifacts.checkpoint import read_checkpoint
from eaglelint.artifacts.document import Document
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.artifacts.launch import read_launch
from eaglelint.artifacts.pickle_reader import BrokenPickle, read_pickle
from eaglelint.artifacts.safetensors_header import read_header
from eaglelint.artifacts.target import TargetConfig
from eaglelint.artifacts.tokenizer import compare_tokenizers, read_tokenizer
from eaglelint.exceptions import EaglelintError
from eaglelint.project.discovery import discover
from eaglelint.project.pipelines import PipelineInput
from eaglelint.registry import all_rules
from eaglelint.rule import Facts
from eaglelint.scan import Options, scan_pipelines
from tests.checkpoints import header_bytes, write_safetensors
from tests.torch_files import legacy_bytes, state_dict_pickle, write_zip

scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
NAMES = ["fc.weight", "fc.bias", "midlayer.self_attn.q_proj.weight", "layers.0.self_attn.k_proj.weight", "lm_head.weight",
         "embed_tokens.weight", "d2t", "t2d", "norm.weight", "fc_norm.0.weight", "a.b"]  # fmt: skip
sizes = st.integers(0, 6)
entries = st.fixed_dictionaries({
    "dtype": st.sampled_from(["BF16", "F32", "I64", "BOOL", "F8_E4M3", "F4", "X9"]),
    "shape": st.lists(sizes, max_size=3),
    "data_offsets": st.tuples(sizes, sizes).map(lambda pair: sorted(x * 8 for x in pair)),
})  # fmt: skip
headers = st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=6), entries | values, max_size=6)

KEYS = [
    "architectures", "model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
    "head_dim", "vocab_size", "draft_vocab_size", "target_hidden_size", "num_aux_hidden_states", "eagle_config",
    "dflash_config", "rope_theta", "rope_scaling", "rope_parameters", "max_position_embeddings", "layer_types",
    "sliding_window", "tie_word_embeddings", "torch_dtype", "quantization_config", "mask_token_id", "fc_norm",
    "norm_before_fc", "use_aux_hidden_state", "eagle_aux_hidden_state_layer_ids", "target_layer_ids",
    "transformer_layer_config", "speculators_model_type", "factor", "rope_type", "quant_method", "ignore",
]  # fmt: skip
likely = st.sampled_from(
    [0, 1, 3, 4096, 12288, True, False, None, "float16", "eagle3", "dflash", "yarn", "DFlashDraftModel"]
)
config_values = st.recursive(
    likely | scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=20,
)
CLASSES = ["LlamaForCausalLMEagle3", "LlamaForCausalLM", "DFlashDraftModel", "PEagleDraftModel", "X"]
configs = st.builds(
    lambda members, classes: {**members, **classes},
    st.dictionaries(st.sampled_from(KEYS), config_values, max_size=14),
    st.sampled_from([{}, *({"architectures": [name]} for name in CLASSES)]),
)


@settings(deadline=None, derandomize=True)
@given(st.binary(max_size=200))
def test_any_bytes_as_a_header(data: bytes) -> None:
    read_header(io.BytesIO(data), len(data), "m")


@settings(deadline=None, derandomize=True)
@given(headers, st.binary(max_size=64))
def test_any_header(header: dict[str, Any], data: bytes) -> None:
    """A tensor that is believed has a type, a shape and a place."""
    file = header_bytes(header) + data
    found = read_header(io.BytesIO(file), len(file), "m")
    for tensor in found.tensors:
        assert all(length >= 0 for length in tensor.shape)
        assert tensor.start is not None
    assert found.tensors or found.problems or not set(header) - {"__metadata__"}


@settings(deadline=None, derandomize=True)
@given(st.binary(max_size=300))
def test_any_bytes_as_a_pickle(data: bytes) -> None:
    try:
        read_pickle(io.BytesIO(data))
    except BrokenPickle as error:
        assert str(error)


@settings(deadline=None, derandomize=True)
@given(st.integers(0, 400), st.binary(min_size=1, max_size=4))
def test_a_state_dict_with_other_bytes_in_it(position: int, data: bytes) -> None:
    """Near misses of what torch writes, in both layouts."""
    pickle = bytearray(state_dict_pickle({"fc.weight": ("HalfStorage", [2, 6]), "d2t": ("LongStorage", [3])}))
    pickle[position % len(pickle) : position % len(pickle) + len(data)] = data
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        write_zip(directory / "pytorch_model.bin", bytes(pickle), {"0": bytes(24), "1": bytes(24)})
        assert read_checkpoint(directory / "config.json", "config.json") is not None
        (directory / "pytorch_model.bin").write_bytes(legacy_bytes(bytes(pickle)))
        assert read_checkpoint(directory / "config.json", "config.json") is not None


@settings(deadline=None, derandomize=True)
@given(st.integers(0, 2000), st.binary(min_size=1, max_size=6))
def test_an_archive_with_other_bytes_in_it(position: int, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "pytorch_model.bin"
        write_zip(path, state_dict_pickle({"fc.weight": ("HalfStorage", [2, 6])}), {"0": bytes(24)})
        archive = bytearray(path.read_bytes())
        archive[position % len(archive) : position % len(archive) + len(data)] = data
        path.write_bytes(bytes(archive))
        assert read_checkpoint(Path(name) / "config.json", "config.json") is not None


PICKLES = {
    "nested": b"(" * 100_000 + b".",
    "tuples of tuples": b"(t" + b"0(t\x86" * 3 + b"2\x86" * 5000 + b".",
    "a key that takes forever to hash": b"}(t" + b"2\x86" * 300 + b"K\x01s.",
    "a text of 4 GiB": b"X\xff\xff\xff\xffabc.",
    "a text of 2^63": b"\x8d" + struct.pack("<Q", 2**63) + b"abc.",
    "a huge integer": b"\x8b\xff\xff\xff\x7f" + bytes(9) + b".",
    "digits": b"L" + b"9" * 100_000 + b"L\n.",
    "no end": b"N" * 600_000,
}


@pytest.mark.parametrize("case", PICKLES)
def test_a_pickle_made_to_hurt(case: str) -> None:
    """Refused, or read, within bounds."""
    tracemalloc.start()
    try:
        read_pickle(io.BytesIO(PICKLES[case]))
    except BrokenPickle as error:
        assert str(error)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 * 2**20


HEADERS = {
    "a length of 2^63": struct.pack("<Q", 2**63),
    "sixteen MiB of lists": struct.pack("<Q", 2**24) + b"{" + b"[" * (2**24 - 1),
    "sixteen MiB of numbers": struct.pack("<Q", 2**24) + (b'{"a":[' + b"0," * 2**23)[: 2**24],
    "sixteen MiB of one text": struct.pack("<Q", 2**24) + (b'{"' + b"a" * (2**24))[: 2**24 - 6] + b'": 1}  ',
}


@pytest.mark.parametrize("case", HEADERS)
def test_a_header_made_to_hurt(case: str) -> None:
    data = HEADERS[case]
    tracemalloc.start()
    found = read_header(io.BytesIO(data), len(data), "m")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.problems
    assert peak < 64 * 2**20


@settings(deadline=None, derandomize=True)
@given(values)
def test_any_tokenizer(data: Any) -> None:
    with tempfile.TemporaryDirectory() as name:
        one, other = Path(name) / "a", Path(name) / "b"
        for directory, written in ((one, data), (other, {"model": data, "added_tokens": data})):
            directory.mkdir()
            for file in ("tokenizer.json", "tokenizer_config.json"):
                (directory / file).write_text(json.dumps(written))
        read_tokenizer(one / "config.json", "a/config.json")
        compare_tokenizers(one / "config.json", other / "config.json", "a/config.json", "b/config.json")


@settings(max_examples=200, deadline=None, derandomize=True)
@given(configs, configs, headers)
def test_any_config_beside_any_header(draft: dict[str, Any], target: dict[str, Any], header: dict[str, Any]) -> None:
    """No rule fails, each finding is inside of a file and says something."""
    config = DraftConfig.parse("draft/config.json", json.dumps(draft).encode())
    try:
        of = TargetConfig.from_document(Document.parse("target/config.json", json.dumps(target).encode()))
    except EaglelintError:
        of = None
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "model.safetensors").write_bytes(header_bytes(header) + bytes(64))
        checkpoint = read_checkpoint(Path(name) / "config.json", "draft/config.json")
    facts = Facts(config, of, None, (), checkpoint=checkpoint, target_checkpoint=checkpoint)
    for rule in all_rules():
        for finding in rule.check(rule, facts):
            assert finding.message and finding.span.start.line >= 1
            assert len(finding.message) < 2000


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    "name", ["model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "tokenizer.json", "serve.sh"]
)
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(name: str, tmp_path: Path) -> None:
    """Opening it would never return."""
    os.mkfifo(tmp_path / name)
    config = tmp_path / "config.json"
    found = read_checkpoint(config, "config.json")
    assert found is None or "is not a regular file" in found.problems[0]
    assert compare_tokenizers(config, config, "config.json", "config.json") is None
    assert discover([tmp_path]).launches == ()
    with pytest.raises(EaglelintError):
        read_launch(tmp_path / name, name)


def test_a_target_without_width(tmp_path: Path) -> None:
    """A width of 0 beside an fc: what a fuzz run found divides by none."""
    (tmp_path / "draft").mkdir()
    (tmp_path / "target").mkdir()
    (tmp_path / "draft" / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLMEagle3"]}))
    (tmp_path / "target" / "config.json").write_text(json.dumps({"hidden_size": 0, "num_hidden_layers": 8}))
    write_safetensors(tmp_path / "draft" / "model.safetensors", {"fc.weight": ("BF16", (16, 48))})
    pipeline = PipelineInput("draft", tmp_path / "draft", tmp_path / "target")
    result = scan_pipelines([pipeline], all_rules(), Options())
    assert result.problems == ()
    assert "TRN003" not in {finding.code for finding in result.findings}
