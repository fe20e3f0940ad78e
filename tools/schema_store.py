"""The schemas of draft configs as SchemaStore takes them: ``python -m tools.schema_store DIRECTORY``.

There each schema is one file that refers to no other and has an address as its ``$id``. A catalogue's entry names it;
no pattern of file names is claimed, for a draft's config is called config.json like every other.
"""

from __future__ import annotations

import argparse
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from eaglelint.draft_schemas import SCHEMAS

__all__ = ["ADDRESS", "bundled", "catalogue"]

ADDRESS = "https://www.schemastore.org/"
_COMMON = "draft-common.schema.json"


def bundled(name: str) -> dict[str, Any]:
    """One of ``SCHEMAS`` with what it refers to among its own definitions."""
    schema, common = (
        json.loads((files("eaglelint.schemas") / file).read_text("utf-8")) for file in (f"{name}.schema.json", _COMMON)
    )
    schema["$defs"] = {**common["$defs"], **schema.get("$defs", {})}
    return {**_inside(schema), "$id": f"{ADDRESS}eaglelint-{name}.json"}


def catalogue() -> list[dict[str, str]]:
    """The entries of src/api/json/catalog.json."""
    schemas = ((name, bundled(name)) for name in SCHEMAS)
    return [
        {"name": schema["title"], "description": schema["description"], "url": schema["$id"]} for _, schema in schemas
    ]


def _inside(part: Any) -> Any:
    """References to the common definitions as references within the file."""
    if isinstance(part, list):
        return [_inside(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        key: value.removeprefix(_COMMON) if key == "$ref" and isinstance(value, str) else _inside(value)
        for key, value in part.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="a checkout of SchemaStore, or any directory")
    directory: Path = parser.parse_args().directory
    written = {f"src/schemas/json/eaglelint-{name}.json": bundled(name) for name in SCHEMAS}
    for path, content in {**written, "catalog-entries.json": catalogue()}.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
