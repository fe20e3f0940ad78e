"""Published draft configs beside their targets: exactly the findings that stand in expected.toml, each with a reason."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from eaglelint.artifacts.draft import read_draft
from eaglelint.draft_schemas import SCHEMAS, draft_validator, schema_for
from eaglelint.project.pipelines import PipelineInput
from eaglelint.registry import all_rules
from eaglelint.scan import Options, gather

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((HERE / "expected.toml").read_text("utf-8"))

# Configs that their schema refuses, and with right.
AT_FAULT = {
    "Qwen3.6-35B-A3B-DFlash__shipped_fixture": ["'architectures' is a required property"],
    "shanjiaz__dflash-test": ["'mask_token_id' is a required property", "None is not of type 'array'"],
}

each_draft = pytest.mark.parametrize("name", EXPECTED)


def config(name: str) -> Path:
    return HERE / "drafts" / f"{name}.json"


def target(name: str) -> Path | None:
    said = EXPECTED[name]["target"]
    return {"unknown": None, "itself": config(name)}.get(said, HERE / "targets" / f"{said}.json")


def test_every_config_is_expected() -> None:
    """None is left out, and each says where it is from."""
    assert {path.stem for path in (HERE / "drafts").glob("*.json")} == set(EXPECTED)
    assert [name for name in EXPECTED if not (HERE / "drafts" / f"{name}.source.txt").read_text("utf-8").strip()] == []


@each_draft
def test_the_findings(name: str) -> None:
    """Code, severity and line of each, and no other."""
    facts, problems, *_ = gather(PipelineInput(name, config(name), target(name)), Options())
    found = [
        (finding.code, finding.severity, finding.span.start.line)
        for rule in all_rules()
        for finding in rule.check(rule, facts)
    ]
    expected = [(item["code"], item["severity"], item["line"]) for item in EXPECTED[name].get("findings", ())]
    assert (sorted(found), problems) == (sorted(expected), ())


def test_each_finding_is_argued() -> None:
    reasons = [item["why"] for draft in EXPECTED.values() for item in draft.get("findings", ())]
    assert reasons and all(len(reason) > 20 for reason in reasons)


@each_draft
def test_the_schema(name: str) -> None:
    """Each config is valid for the schema of its layout, but for those that are at fault."""
    draft = read_draft(config(name), name)
    validator = draft_validator(schema_for(draft.kind, draft.dialect))
    assert sorted(error.message for error in validator.iter_errors(draft.data)) == AT_FAULT.get(name, [])


# What a schema has to refuse in a config that it takes as it is.
WRONG: list[tuple[str, tuple[str, ...], Any]] = [
    ("SpecForge__qwen3-235B-A22B-eagle3", ("hidden_size",), "4096"),
    ("SpecForge__qwen3-235B-A22B-eagle3", ("eagle_config", "eagle_aux_hidden_state_layer_ids"), [1, 1, 90]),
    ("SpecForge__qwen3-235B-A22B-eagle3", ("eagle_config", "eagle_aux_hidden_state_layer_ids"), "1,46,90"),
    ("SpecForge__qwen3-8b-dflash", ("dflash_config",), {"target_layer_ids": [1, 9]}),
    ("SpecForge__qwen3-8b-dflash", ("dflash_config",), {"mask_token_id": 5}),
    ("SpecForge__qwen3-8b-dspark", ("dflash_config",), {"mask_token_id": 5}),
    ("AngelSlim__qwen3-8b-eagle3", ("draft_vocab_size",), 0),
    ("danielhanchen__EAGLE-llama2-chat-7B", ("model", "num_hidden_layers"), 0),
    ("speculators__Qwen3-30B-A3B-dflash", ("speculators_model_type",), "dflash3"),
    ("BLR2__Qwen3.5-9B-Eagle3-ShareGPT", ("rope_parameters",), {"rope_type": "yarn"}),
]


@pytest.mark.parametrize(("name", "key_path", "value"), WRONG)
def test_the_schema_refuses(name: str, key_path: tuple[str, ...], value: Any) -> None:
    draft = read_draft(config(name), name)
    holder = draft.data
    for key in key_path[:-1]:
        holder = holder[key]
    holder[key_path[-1]] = value
    validator = draft_validator(schema_for(draft.kind, draft.dialect))
    assert not validator.is_valid(draft.data)


@pytest.mark.parametrize("name", [*SCHEMAS, "draft-common"])
def test_an_editor_can_show_it(name: str) -> None:
    """Each schema is one, and each of its properties has a title and says what it is."""
    from jsonschema import Draft202012Validator

    from eaglelint.draft_schemas import _load

    document = _load(name)
    Draft202012Validator.check_schema(document)
    assert document["title"] and document["description"]
    bare = [
        key for key, value in _properties(document) if "$ref" not in value and not {"title", "description"} <= {*value}
    ]
    assert bare == []


def _properties(schema: Any) -> list[tuple[str, dict[str, Any]]]:
    """Every property that a schema describes; conditions that name one again do not describe it."""
    found = []
    for key, value in schema.get("properties", {}).items():
        found += [(key, value), *_properties(value)]
    for value in schema.get("$defs", {}).values():
        found += _properties(value)
    return found
