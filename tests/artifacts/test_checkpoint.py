"""Checkpoints by their headers: what is there, in which file, and what is said of files that are broken."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from eaglelint.artifacts.checkpoint import Checkpoint, read_checkpoint
from eaglelint.artifacts.embeddings import EMBEDDING, read_beside
from tests.checkpoints import header_bytes, write_safetensors
from tests.torch_files import legacy_bytes, state_dict_pickle, write_zip

FC = {"fc.weight": ("BF16", [4, 12])}


def read(directory: Path) -> Checkpoint:
    found = read_checkpoint(directory / "config.json", "draft/config.json")
    assert found is not None
    return found


def test_one_file(tmp_path: Path) -> None:
    """Name, type, shape and file of each tensor."""
    write_safetensors(tmp_path / "model.safetensors", FC)
    found = read(tmp_path)
    assert found.path == "draft/model.safetensors"
    tensor = found.tensors["fc.weight"]
    assert (tensor.dtype, tensor.shape, tensor.path) == ("BF16", (4, 12), "draft/model.safetensors")
    assert str(tensor) == "fc.weight BF16 [4, 12]"
    assert (found.complete, found.problems, found.notes) == (True, (), ())


def test_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "optimizer.pt").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("")
    assert read_checkpoint(tmp_path / "config.json", "draft/config.json") is None
    assert read_checkpoint(tmp_path / "missing" / "config.json", "draft/config.json") is None


def shards(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "a.safetensors", FC)
    write_safetensors(tmp_path / "b.safetensors", {"norm.weight": ("BF16", [4])})
    index = {"weight_map": {"fc.weight": "a.safetensors", "norm.weight": "b.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))


def test_shards(tmp_path: Path) -> None:
    """The index says which files; each tensor knows its own."""
    shards(tmp_path)
    found = read(tmp_path)
    assert found.path == "draft/model.safetensors.index.json"
    assert {name: tensor.path for name, tensor in found.tensors.items()} == {
        "fc.weight": "draft/a.safetensors",
        "norm.weight": "draft/b.safetensors",
    }
    assert found.complete


def test_a_shard_that_was_not_downloaded(tmp_path: Path) -> None:
    """Its names are still known, and nothing is said to be missing."""
    shards(tmp_path)
    (tmp_path / "b.safetensors").unlink()
    found = read(tmp_path)
    assert (found.complete, found.problems) == (False, ())
    assert (found.name_of("norm.weight"), found.find("norm.weight")) == ("norm.weight", None)
    assert found.notes == (
        "draft/model.safetensors.index.json: 1 of 2 files that it names do not lie beside it, such as b.safetensors",
    )


def test_an_index_that_names_other_files(tmp_path: Path) -> None:
    shards(tmp_path)
    write_safetensors(tmp_path / "b.safetensors", {"other.weight": ("BF16", [4])})
    (problem,) = read(tmp_path).problems
    assert "norm.weight does not stand in b.safetensors" in problem


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("[]", "has no weight_map"),
        ('{"weight_map": {"a": 1}}', "has no weight_map"),
        ('{"weight_map": {"a": "../b.safetensors"}}', "names a file outside of its directory"),
        ('{"weight_map": {"a": ""}}', "names a file outside of its directory"),
        ("[" * 1000, "more brackets"),
    ],
)
def test_a_broken_index(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(text)
    found = read(tmp_path)
    assert words in found.problems[0]
    assert not found.complete


def test_names_below_a_prefix(tmp_path: Path) -> None:
    """The outermost of several; two as far out say nothing."""
    tensors = dict.fromkeys(
        ["model.norm.weight", "model.layers.0.norm.weight", "a.fc.weight", "b.fc.weight"], ("BF16", [4])
    )
    write_safetensors(tmp_path / "model.safetensors", tensors)
    found = read(tmp_path)
    assert (found.name_of("norm.weight"), found.name_of("fc.weight")) == ("model.norm.weight", None)


def test_the_values_of_a_map(tmp_path: Path) -> None:
    """Read by offset, behind other tensors and below a prefix."""
    tensors = {**FC, "model.d2t": ("I64", [3], [0, 5, -2]), "t2d": ("BOOL", [4], [1, 0, 0, 1])}
    write_safetensors(tmp_path / "model.safetensors", tensors)
    found = read(tmp_path)
    assert list(found.map_of("d2t") or ()) == [0, 5, -2]
    assert list(found.map_of("t2d") or ()) == [1, 0, 0, 1]
    assert found.map_of("fc.weight") is None


def test_a_git_lfs_pointer(tmp_path: Path) -> None:
    """A checkout without the weights is no fault of the draft."""
    text = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n"
    (tmp_path / "model.safetensors").write_text(text)
    found = read(tmp_path)
    assert (found.problems, found.complete) == ((), False)
    assert found.notes == (
        "draft/model.safetensors is a Git LFS pointer: the weights were not downloaded (git lfs pull)",
    )


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}

# name: the bytes of the file, a part of the sentence
BROKEN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is no safetensors file: it has 0 bytes"),
    "a length of 2^63": (struct.pack("<Q", 2**63) + b"{}", "says that its header has 9223372036854775808 bytes, and 2"),
    "a length beyond the end": (struct.pack("<Q", 99) + b"{}", "is cut short or no safetensors file"),
    "no JSON": (header_bytes(b"{nothing}"), "it is not JSON"),
    "a list": (header_bytes(b"[]"), "it does not begin with {"),
    "not UTF-8": (header_bytes(b'{"\xff": 1}'), "it is not UTF-8"),
    "deep": (header_bytes(b'{"a":' * 90_000), "nested too deeply"),
    "too many": (header_bytes(b'{"a":[' + b"{}," * 110_000 + b"{}]}"), "more than 100,000 tensors"),
    "twice": (header_bytes(b'{"a": {}, "b": {}, "a": {}}'), "a stands in it twice"),
    "no entry": (header_bytes({"a": 3}), "a is no object"),
    "no dtype": (header_bytes({"a": {**ENTRY, "dtype": 3}}), "a has no dtype"),
    "a negative shape": (header_bytes({"a": {**ENTRY, "shape": [-1]}}), "a has no shape"),
    "a huge shape": (header_bytes({"a": {**ENTRY, "shape": [2**64]}}), "a has no shape"),
    "backwards": (header_bytes({"a": {**ENTRY, "data_offsets": [8, 0]}}), "a ends before it begins"),
    "cut short": (header_bytes({"a": ENTRY}) + b"1234", "the file is cut short: its tensors take 8 bytes, and 4"),
    "too long": (header_bytes({"a": ENTRY}) + b"0" * 9, "1 bytes at its end belong to no tensor"),
    "overlap": (
        header_bytes({"a": ENTRY, "b": {**ENTRY, "data_offsets": [4, 12]}}) + b"0" * 12,
        "the values of b overlap those before it",
    ),
    "a gap": (header_bytes({"a": {**ENTRY, "data_offsets": [4, 12]}}) + b"0" * 12, "4 bytes before a belong"),
    "another size": (header_bytes({"a": {**ENTRY, "shape": [3]}}) + b"0" * 8, "takes 8 bytes where that has 12"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file(case: str, tmp_path: Path) -> None:
    """Each gives one sentence that names the file."""
    data, words = BROKEN[case]
    (tmp_path / "model.safetensors").write_bytes(data)
    (problem,) = read(tmp_path).problems
    assert problem.startswith("draft/model.safetensors")
    assert words in problem


def test_a_header_that_is_longer_than_what_is_read(tmp_path: Path) -> None:
    """The file is as long as it says, and still nothing of that size is taken into memory."""
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", 2**33))
        file.truncate(2**33 + 8)
    (problem,) = read(tmp_path).problems
    assert "more than 16 MiB are not read" in problem


SHAPES = {"fc.weight": ("BFloat16Storage", [4, 12]), "d2t": ("LongStorage", [3])}


@pytest.mark.parametrize("wrapped_in", [None, "state_dict", "model"])
def test_a_file_of_torch(wrapped_in: str | None, tmp_path: Path) -> None:
    """Shapes from the pickle, values from the stored members, also below a trainer's own dictionary."""
    pickle = state_dict_pickle(SHAPES, wrapped_in=wrapped_in)
    write_zip(tmp_path / "pytorch_model.bin", pickle, {"0": bytes(96), "1": struct.pack("<3q", 4, 5, 6)})
    found = read(tmp_path)
    assert {str(tensor) for tensor in found.tensors.values()} == {"fc.weight BF16 [4, 12]", "d2t I64 [3]"}
    assert list(found.map_of("d2t") or ()) == [4, 5, 6]
    assert (found.problems, found.complete) == ((), True)


def test_an_older_file_of_torch(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(legacy_bytes(state_dict_pickle(SHAPES)))
    found = read(tmp_path)
    assert {str(tensor) for tensor in found.tensors.values()} == {"fc.weight BF16 [4, 12]", "d2t I64 [3]"}


def test_no_pickle_is_executed(tmp_path: Path) -> None:
    """What a pickle would call is not called."""
    marker = tmp_path / "executed"
    pickle = b"cos\nsystem\n(X" + struct.pack("<I", len(f"touch {marker}")) + f"touch {marker}".encode() + b"tR."
    write_zip(tmp_path / "pytorch_model.bin", pickle)
    assert "holds no tensors that can be read without unpickling" in read(tmp_path).problems[0]
    assert not marker.exists()


def test_a_loose_file_may_be_anything(tmp_path: Path) -> None:
    """What no engine asks for by name is noted, not a problem."""
    (tmp_path / "mask_embedding.pt").write_bytes(b"whatever")
    found = read(tmp_path)
    assert found.problems == ()
    assert "cannot be read as a file of torch.save" in found.notes[0]


def rows(seed: int) -> list[float]:
    return [((index * 7919 + seed * 104_729) % 1009) / 1009 - 0.5 for index in range(16 * 64)]


@pytest.mark.parametrize(("dtype", "least"), [("F32", 0.999), ("BF16", 0.99), ("F16", 0.999)])
def test_embeddings_that_are_alike(dtype: str, least: float, tmp_path: Path) -> None:
    """Whatever type each is stored in."""
    write_safetensors(tmp_path / "d" / "model.safetensors", {"embed_tokens.weight": (dtype, [16, 64], rows(1))})
    write_safetensors(tmp_path / "t" / "model.safetensors", {"model.embed_tokens.weight": ("F32", [16, 64], rows(1))})
    found = read_beside(read(tmp_path / "d"), read(tmp_path / "t"), EMBEDDING)
    assert found is not None
    assert (len(found.rows), min(found.cosines) > least) == (8, True)


def test_embeddings_of_other_widths_are_not_compared(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "d" / "model.safetensors", {"embed_tokens.weight": ("F32", [16, 32], rows(1)[:512])})
    write_safetensors(tmp_path / "t" / "model.safetensors", {"embed_tokens.weight": ("F32", [16, 64], rows(1))})
    assert read_beside(read(tmp_path / "d"), read(tmp_path / "t"), EMBEDDING) is None
