"""Which JSON Schema describes a draft's config, for editors, and how to check one against it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from eaglelint.artifacts.draft_kinds import Dialect, DraftKind

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

__all__ = ["SCHEMAS", "draft_validator", "schema_for"]

SCHEMAS = (
    "draft-angelslim",
    "draft-dflash",
    "draft-dspark",
    "draft-eagle",
    "draft-modelopt",
    "draft-sglang",
    "draft-speculators",
)
_COMMON = "draft-common"
_BY_DIALECT: Mapping[Dialect, str] = {
    "speculators": "draft-speculators",
    "modelopt": "draft-modelopt",
    "angelslim": "draft-angelslim",
    "eagle": "draft-eagle",
}


def schema_for(kind: DraftKind, dialect: Dialect) -> str:
    """The name of the schema for a kind of draft in somebody's layout.

    DFlash drafts look alike whoever writes them, speculators excepted. A config of which neither is known is read as
    SafeAILab's, which looks like that of a plain model.
    """
    if dialect == "speculators":
        return _BY_DIALECT[dialect]
    if kind == "dspark":
        return "draft-dspark"
    if kind in ("dflash", "domino"):
        return "draft-dflash"
    if dialect == "unknown":
        return "draft-eagle" if kind in ("unknown", "eagle", "mtp") else "draft-sglang"
    return _BY_DIALECT.get(dialect, "draft-sglang")


@cache
def draft_validator(name: str) -> Draft202012Validator:
    """A validator of one of :data:`SCHEMAS`, with what it refers to."""
    from jsonschema import Draft202012Validator
    from referencing import Registry, Resource

    resources = [(document["$id"], Resource.from_contents(document)) for document in map(_load, (*SCHEMAS, _COMMON))]
    registry: Registry[Any] = Registry().with_resources(resources)
    return Draft202012Validator(_load(name), registry=registry)


@cache
def _load(name: str) -> Any:
    return json.loads((files("eaglelint.schemas") / f"{name}.schema.json").read_text("utf-8"))
