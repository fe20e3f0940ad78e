"""The schemas as SchemaStore takes them say of every published draft what the package's own say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from eaglelint.draft_schemas import SCHEMAS, draft_validator
from tools.schema_store import ADDRESS, bundled, catalogue

DRAFTS = sorted((Path(__file__).parent / "drafts").glob("*.json"))

each_schema = pytest.mark.parametrize("name", SCHEMAS)


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object in a schema."""
    if isinstance(schema, dict):
        yield schema
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from parts(part)


@each_schema
def test_it_stands_alone(name: str) -> None:
    """It is a valid schema, has an address, and refers to definitions of its own only."""
    schema = bundled(name)
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"{ADDRESS}eaglelint-{name}.json"
    references = [part["$ref"] for part in parts(schema) if isinstance(part.get("$ref"), str)]
    assert references != []
    assert [found for found in references if found.removeprefix("#/$defs/") not in schema["$defs"]] == []


@each_schema
def test_it_judges_as_the_package_s_own(name: str) -> None:
    """The same configs are valid, and of the others the same is said."""
    own, alone = draft_validator(name), Draft202012Validator(bundled(name))
    for path in DRAFTS:
        config = json.loads(path.read_text("utf-8"))
        said = [sorted(error.message for error in each.iter_errors(config)) for each in (own, alone)]
        assert said[0] == said[1], path.name


@each_schema
def test_an_editor_can_show_each_key(name: str) -> None:
    """Each key has a description, where it stands or where it refers to; a condition on it may have none."""
    schema = bundled(name)
    keys: dict[str, list[bool]] = {}
    for part in parts(schema):
        for key, value in part.get("properties", {}).items():
            meant = schema["$defs"].get(str(value.get("$ref", "")).removeprefix("#/$defs/"), {})
            keys.setdefault(key, []).append("description" in {**meant, **value})
    assert len(keys) > 5
    assert [key for key, described in keys.items() if not any(described)] == []


def test_the_catalogue_names_each() -> None:
    entries = catalogue()
    assert [entry["url"] for entry in entries] == [f"{ADDRESS}eaglelint-{name}.json" for name in SCHEMAS]
    assert all(entry["name"] and entry["description"] for entry in entries)
