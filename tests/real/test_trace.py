"""Traces in released engines, against what a person read there (trace.toml)."""

from __future__ import annotations

import io
import json
import tokenize
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from eaglelint.serving import open_source
from eaglelint.survey.joined_none import joined_while_none
from eaglelint.trace import Trace, trace
from tests.real.packages import SGLANG_0_5_9, SGLANG_0_5_23, VLLM_0_33_0, Package, package_directory

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

pytestmark = pytest.mark.real

ROWS: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("trace.toml").read_text())["row"]
PACKAGES = {(package.name, package.version): package for package in (SGLANG_0_5_9, SGLANG_0_5_23, VLLM_0_33_0)}


def base(package: Package) -> Path:
    directory = package_directory(package)
    return directory / "srt" if package.name == "sglang" else directory


def answer(row: dict[str, Any]) -> Trace:
    root = base(PACKAGES[row["engine"], row["version"]])
    return trace(row["symbol"], [root / name for name in row["files"]], end=row.get("to"), relative_to=root)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['engine']}-{row['version']}-{row['symbol']}")
def test_the_way_is_the_one_that_was_read(row: dict[str, Any]) -> None:
    """Each place of the way leads to the next, over any number of steps; and no line that has the symbol is left out."""
    found = answer(row)
    items = found.occurrences
    assert row.get("lines") is None or {item.line for item in items if item.name == row["symbol"]} >= set(row["lines"])
    reached = {index for index, item in enumerate(items) if f"{item.path}:{item.line} {item.name}" == row["way"][0]}
    for place in row["way"][1:]:
        seen = set(reached)
        pending = list(reached)
        while pending:
            for flow in items[pending.pop()].flows:
                if flow.to not in seen:
                    seen.add(flow.to)
                    pending.append(flow.to)
        reached = {index for index in seen if f"{items[index].path}:{items[index].line} {items[index].name}" == place}
        assert reached, f"{place} is not reached"


def test_what_is_known_of_the_states() -> None:
    """From the capture in the model over both ways to join: which states, their shape, and what a mode leaves open."""
    (row,) = [row for row in ROWS if row.get("to") == "aux_pruned_states"]
    items = answer(row | {"symbol": "aux_hidden_states", "to": None}).occurrences
    found = {(item.line, item.kind): item.value for item in items}
    (pruned,) = [item.value for item in items if (item.line, item.name) == (446, "aux_pruned_states")]
    states = "[h[i] for i in self.layers_to_capture], each [{}, H] (hidden_states + residual before layer i)"
    joined = "h[i] for i in self.layers_to_capture, joined along dimension -1: [{}, n·H] with n layers in self.layers_to_capture, 3 by default"
    for place in ((2726, "mutation"), (2728, "mutation"), (2778, "returned"), (2928, "passed"), (292, "parameter")):
        assert found[place] == states.format("tokens"), place
    assert pruned == states.format("last_index")
    assert found[531, "returned"] == states.format("…")  # every token with FULL, the last ones with LAST
    assert found[553, "assignment"] == joined.format("tokens")
    assert found[562, "assignment"] == joined.format("…")
    assert found[588, "returned"] is None  # or the final states, without a draft that captures


def test_json_of_a_whole_engine_follows_its_schema() -> None:
    """All fields that a large trace has."""
    schema = json.loads((files("eaglelint.schemas") / "trace.schema.json").read_text())
    root = base(SGLANG_0_5_9)
    jsonschema.validate(trace("layers_to_capture", [root], relative_to=root).to_json(), schema)


def test_the_states_that_are_still_none_are_reported_and_mended_later() -> None:
    """SGLang 0.5.9 joins None for input logprobs with LAST; 0.5.23 fills the states on that path."""
    row = ROWS[0]
    (item,) = [item for item in answer(row).occurrences if (item.line, item.kind) == (562, "passed")]
    assert item.may_be_none is not None
    assert set(item.may_be_none) >= {
        "logits_metadata.forward_mode is EXTEND, MIXED, DRAFT_EXTEND or SPLIT_PREFILL",
        "logits_metadata.extend_return_logprob",
        "logits_metadata.capture_hidden_mode is LAST",
        "aux_hidden_states is not None",
    }
    told = [item.line for item in answer(ROWS[1]).occurrences if item.may_be_none is not None and item.line > 860]
    assert told == []


@pytest.mark.parametrize(
    ("package", "expected"),
    [
        (SGLANG_0_5_9, ["srt/layers/logits_processor.py:562 aux_pruned_states"]),
        (SGLANG_0_5_23, []),
        (VLLM_0_33_0, []),
    ],
    ids=str,
)
def test_the_rule_finds_that_join_and_no_other(package: Package, expected: list[str]) -> None:
    """In whole engines, of all joins in files that speak of captured states."""
    root = package_directory(package)
    handle = open_source(f"{package.name}@{root.parent}", root=root, display_root=root)
    tree = handle.source.tree
    found = joined_while_none(handle.source.package, tree.relative_to, tree.snapshot)
    assert [f"{item.place} {item.name}" for item in found] == expected


@pytest.mark.parametrize("word", ["aux_pruned_states", "layers_to_capture", "capture_hidden_mode"])
def test_no_name_of_a_whole_engine_is_left_out(word: str) -> None:
    """All that Python's tokenizer finds in SGLang 0.5.9 is listed."""
    root = base(SGLANG_0_5_9)
    listed = {(item.path, item.line, item.column) for item in trace(word, [root], relative_to=root).occurrences}
    missing = []
    for file in root.rglob("*.py"):
        text = file.read_text("utf-8", "replace")
        if word in text:
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                place = (file.relative_to(root).as_posix(), token.start[0], token.start[1] + 1)
                if token.type == tokenize.NAME and token.string == word and place not in listed:
                    missing.append(place)
    assert missing == []
