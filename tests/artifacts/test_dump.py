"""Dumps of hidden states, by the header of the first sample and the manifest beside it."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eaglelint.artifacts.dump import read_dump
from eaglelint.artifacts.target import TargetConfig
from tests.checkpoints import write_safetensors
from tests.reports.parts import DRAFT, TARGET
from tests.torch_files import sample_pickle, write_zip


def target() -> TargetConfig:
    from eaglelint.artifacts.document import Document

    return TargetConfig.from_document(Document.parse("target/config.json", json.dumps(TARGET).encode()))


def test_the_first_sample_in_order_of_names(tmp_path: Path) -> None:
    """Below directories too; keys and shapes, no values."""
    write_safetensors(tmp_path / "rows_0" / "data_1.safetensors", {"hidden_state": ("BF16", [1, 9, 4096])})
    write_safetensors(tmp_path / "rows_0" / "data_0.safetensors", {"aux_hidden_state": ("BF16", [1, 9, 12288])})
    dump = read_dump(tmp_path, "dump")
    assert (dump.sample, dump.problems) == ("dump/rows_0/data_0.safetensors", ())
    assert dump.states(target()) == {"aux_hidden_state": (3, "joined")}


def test_a_file_of_torch_save(tmp_path: Path) -> None:
    """A list of states, a tensor, a flag: told apart without unpickling."""
    value = {
        "input_ids": ("LongStorage", [7]),
        "hidden_states": [("BFloat16Storage", [7, 4096])] * 4,
        "hidden_states_prenorm": True,
    }
    write_zip(tmp_path / "0.pt", sample_pickle(value))
    dump = read_dump(tmp_path, "dump")
    assert {key: (len(entry.tensors), entry.shape) for key, entry in dump.entries.items()} == {
        "input_ids": (1, (7,)),
        "hidden_states": (4, (7, 4096)),
    }
    assert dump.norm is not None
    assert (dump.norm.prenorm, dump.norm.key) == (True, "hidden_states_prenorm")
    assert dump.states(target())["hidden_states"] == (4, "listed")


def test_a_layer_axis(tmp_path: Path) -> None:
    """[tokens, layers, features] and [layers, tokens, features] are told apart by the shorter axis."""
    write_safetensors(tmp_path / "0.safetensors", {"a": ("BF16", [512, 4, 4096]), "b": ("BF16", [4, 512, 4096])})
    found = read_dump(tmp_path, "dump").states(target())
    assert found == {"a": (4, "stacked at 1"), "b": (4, "stacked at 0")}


def test_a_manifest(tmp_path: Path) -> None:
    """Layers and the norm, with the place of each."""
    (tmp_path / "manifest.json").write_text('{"layer_ids": [2, 18, 33],\n "prenorm": false}')
    write_safetensors(tmp_path / "0.safetensors", {"hidden_states": ("BF16", [9, 4096])})
    dump = read_dump(tmp_path, "dump")
    assert dump.ids is not None
    assert dump.norm is not None
    assert (dump.ids.values, str(dump.ids.span)) == ((2, 18, 33), "dump/manifest.json:1:15")
    assert (dump.norm.prenorm, str(dump.norm.span)) == (False, "dump/manifest.json:2:13")


LYING = struct.pack("<Q", 2**63) + b"{}"
BROKEN = {
    "a header of 2^63 bytes": ("0.safetensors", LYING, "0.safetensors"),
    "no safetensors at all": ("0.safetensors", b"hello", "0.safetensors"),
    "an archive that is cut short": ("0.pt", b"PK\x03\x04 and no more", "0.pt"),
    "a pickle that is none": ("0.ckpt", b"\x80\x04 nothing", "0.ckpt"),
    "a manifest that is not JSON": ("manifest.json", b'{"layer_ids": [1,', "manifest.json"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_dump_is_a_sentence(name: str, tmp_path: Path) -> None:
    """One that names the file, and no exception."""
    file, data, named = BROKEN[name]
    (tmp_path / file).write_bytes(data)
    dump = read_dump(tmp_path, "dump")
    assert len(dump.problems) == 1
    assert dump.problems[0].startswith(f"dump/{named}")
    assert dump.entries == {}


@pytest.mark.parametrize("path", ["nowhere", "empty"])
def test_no_dump_is_a_sentence(path: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert [problem.split(" ")[0] for problem in read_dump(tmp_path / path, path).problems] == [path]


def test_the_rest_is_still_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lying dump and a script that does not parse: a sentence for each, exit 2, and the findings of the rest."""
    files: dict[str, Any] = {
        "draft/config.json": json.dumps({**DRAFT, "feature_layers": [1]}),
        "target/config.json": json.dumps(TARGET),
        "training/broken.py": "def capture(hidden_states:\n",
        "training/data.py": "def shift(input_ids, hidden_states):\n    return input_ids[:, 1:], hidden_states[:, 1:]\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "0.safetensors").write_bytes(LYING)
    monkeypatch.chdir(tmp_path)

    from eaglelint.cli.app import app

    command = ["scan", "--draft", "draft", "--target", "target", "--training", "training", "--dump", "dump"]
    result = CliRunner().invoke(app, [*command, "--output-format", "json"])
    report = json.loads(result.stdout)
    assert result.exit_code == 2
    assert {finding["code"] for finding in report["findings"]} >= {"CFG002", "TRN001"}
    assert "training/broken.py:1" in result.stderr
    assert "dump/0.safetensors" in result.stderr
