"""The pages of the settings and of the JSON Schemas, from the schemas themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

__all__ = ["schemas_page", "settings_page"]


def settings_page() -> str:
    """Every key of ``[tool.eaglelint]`` and of its pipelines."""
    schema = _schema("settings.schema.json")
    lines = [
        "# Settings",
        "",
        "They stand in `[tool.eaglelint]` of `pyproject.toml`, or at the top level of `eaglelint.toml`; the nearest "
        "file from the scanned path upwards counts. `eaglelint init` writes a commented start, `eaglelint config show` "
        "prints what holds.",
        "",
        *_keys(schema["properties"], required=()),
    ]
    for name, table in schema["$defs"].items():
        lines += [f"## {name.lower()}", "", table["description"], "", *_keys(table["properties"], table["required"])]
    return "\n".join(lines) + "\n"


def _keys(properties: dict[str, Any], required: Any) -> Iterator[str]:
    yield from ("| key | values | default | what it says |", "|---|---|---|---|")
    for key, part in properties.items():
        default = "required" if key in required else f"`{json.dumps(part.get('default', {}))}`"
        yield f"| `{key}` | {_type(part)} | {default} | {part.get('description', '')} |"
    yield ""


def _type(part: dict[str, Any]) -> str:
    if "$ref" in part:
        return f"[{part['$ref'].rpartition('/')[2].lower()}](#{part['$ref'].rpartition('/')[2].lower()})"
    if "enum" in part:
        return ", ".join(f"`{value}`" for value in part["enum"])
    if "anyOf" in part:
        return " or ".join(_type(option) for option in part["anyOf"] if option.get("type") != "null")
    if part.get("type") == "array":
        return f"list of {_type(part['items'])}"
    if part.get("type") == "object" and isinstance(part.get("additionalProperties"), dict):
        return f"table of {_type(part['additionalProperties'])}"
    return str(part.get("type", ""))


def schemas_page() -> str:
    """The schemas that come with the package, each with what it describes."""
    rows = []
    for file in sorted(files("eaglelint.schemas").iterdir(), key=lambda item: item.name):
        if file.name.endswith(".schema.json"):
            schema = json.loads(file.read_text("utf-8"))
            said = f"{schema.get('title', '')}. {schema.get('description', '')}".strip(". ")
            rows.append(f"| [{file.name}](files/schemas/{file.name}.md) | {said} |")
    return "\n".join(["# JSON Schemas", "", "| schema | describes |", "|---|---|", *rows, ""])


def _schema(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((files("eaglelint.schemas") / name).read_text("utf-8"))
    return loaded
