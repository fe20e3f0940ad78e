"""The JSON documents keep to the schemas that are published with them."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from eaglelint.finding import Finding, Span
from eaglelint.report.json import render_json, report_document, wiring_document
from eaglelint.report.summary import summarise
from eaglelint.wiring import Condition, Evidence, Fault, Slot, Wiring

WIRING = Wiring(
    "serving",
    "sglang 0.5.9",
    (Slot("stream", 0), Slot("norm", 61), Slot("unknown")),
    "conditional",
    engine="sglang",
    engine_version="0.5.9",
    target_class="DeepseekV2ForCausalLM",
    draft_kind="eagle3",
    layer_ids=(-1, 60),
    num_layers=61,
    label=Slot("norm", 61),
    conditions=(Condition("when can_run_tbo", (Slot("partial", 3),), Span.at("model.py", 5)), Condition("else")),
    assumptions=("one pipeline rank",),
    evidence=(Evidence("model.py", 12, "appends before the layer", 0), Evidence("model.py", 20, "concatenates")),
    faults=(Fault("IndexError: list index out of range", "model.py", 7, 1),),
    ids_from=("eagle_config", "eagle_aux_hidden_state_layer_ids"),
)


def schema(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((files("eaglelint.schemas") / f"{name}.schema.json").read_text("utf-8"))
    return loaded


def valid(name: str, document: object) -> bool:
    Draft202012Validator(schema(name)).validate(document)
    return True


def test_the_report_keeps_to_its_schema(mismatch: Finding) -> None:
    """With and without an end, related places and wirings."""
    bare = replace(mismatch, span=Span.at("a.json", 1), related=(), help=None, edits=())
    document = report_document([mismatch, bare], [WIRING], summarise([mismatch, bare]).to_json(), "0.1.0")
    assert valid("report", json.loads(render_json(document)))


def test_a_finding_as_json(mismatch: Finding) -> None:
    """Every part of a finding arrives, the label of a related place too."""
    finding = report_document([mismatch], [], {}, "0.1.0")["findings"][0]
    assert finding["location"] == {
        "path": "draft/config.json",
        "start": {"line": 3, "column": 41},
        "end": {"line": 3, "column": 43},
    }
    assert [row["label"] for row in finding["related"]] == ["trained", "served"]
    assert finding["edits"][0]["text"] == "[2, 30, 58]"
    assert finding["fingerprint"] == mismatch.fingerprint


def test_an_insertion_ends_where_it_begins(mismatch: Finding) -> None:
    """An edit always has both ends."""
    edit = replace(mismatch.edits[0], span=Span.at("a.json", 2, 5))
    row = report_document([replace(mismatch, edits=(edit,))], [], {}, "0.1.0")["findings"][0]["edits"][0]
    assert row["start"] == row["end"] == {"line": 2, "column": 5}


@pytest.mark.parametrize("layer_ids", [(), (1, 2), "default", None])
def test_wirings_keep_to_their_schema(layer_ids: Any) -> None:
    """Whatever the ids are, and where nothing is known."""
    unknown = Wiring("training", "dump.py", (), "unknown", reason="no capture was found")
    assert valid("wiring", wiring_document([replace(WIRING, layer_ids=layer_ids), unknown]))


def test_any_text_can_be_printed(mismatch: Finding) -> None:
    """A lone surrogate from a scanned file does not end in an encoding error."""
    hostile = report_document([replace(mismatch, message="\ud800 ⊕")], [], {}, "0.1.0")
    assert json.loads(render_json(hostile).encode("ascii"))["findings"][0]["message"] == "\ud800 ⊕"


@pytest.mark.parametrize("name", ["report", "wiring", "trace"])
def test_every_field_is_described(name: str) -> None:
    """A schema is documentation: each property has a title and a description."""

    def undescribed(node: Any, path: str) -> list[str]:
        if isinstance(node, list):
            return [found for index, item in enumerate(node) for found in undescribed(item, f"{path}/{index}")]
        if not isinstance(node, dict):
            return []
        missing = [
            f"{path}/{key}"
            for key, value in node.get("properties", {}).items()
            if not {"title", "description"} <= value.keys()
        ]
        return missing + [found for key, value in node.items() for found in undescribed(value, f"{path}/{key}")]

    document = schema(name)
    Draft202012Validator.check_schema(document)
    assert undescribed(document, name) == []


def test_one_wiring_in_two_schemas() -> None:
    """A wiring in a report is the same as a wiring alone."""
    report, wiring = schema("report"), schema("wiring")
    for name in wiring["$defs"]:
        assert wiring["$defs"][name] == report["$defs"][name]
