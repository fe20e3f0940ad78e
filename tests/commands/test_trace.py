"""``eaglelint trace``: its formats, and its words where something is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from tests.commands.conftest import Outcome

Run = Callable[..., Outcome]
SOURCE = """\
def prune(aux):
    kept = [a for a in aux] if aux is not None else None
    return kept


def store(aux, cat):
    kept = prune(aux)
    return cat(kept, dim=-1)
"""


def undocumented(value: Any, schema: dict[str, Any]) -> set[str]:
    """Keys of a document that its schema does not describe."""
    if isinstance(value, list):
        return {key for item in value for key in undocumented(item, schema.get("items", {}))}
    if not isinstance(value, dict):
        return set()
    described = schema.get("properties", {})
    unknown = {key for key in value if not described.get(key, {}).get("description")}
    return unknown.union(*(undocumented(item, described.get(key, {})) for key, item in value.items()))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(SOURCE)
    return tmp_path


def test_json_follows_its_schema(run: Run, project: Path) -> None:
    """The document alone is on standard output; flows_to are indices into the occurrences."""
    result = run("trace", "kept", "--format", "json", cwd=project)
    document = json.loads(result.stdout)
    schema = json.loads((files("eaglelint.schemas") / "trace.schema.json").read_text())
    jsonschema.validate(document, schema)
    assert undocumented(document, schema) == set()
    items = document["occurrences"]
    assert [(i["path"], i["line"], i["column"]) for i in items if i["name"] == "kept"] == [
        ("model.py", 2, 5),
        ("model.py", 3, 12),
        ("model.py", 7, 5),
        ("model.py", 8, 16),
    ]
    by_place = {(item["line"], item["name"]): item for item in items}
    assert items[by_place[3, "kept"]["flows_to"][0]] == by_place[7, "kept"]
    assert by_place[8, "kept"]["may_be_none"] == ["aux is None"]
    assert result.code == 0


def test_the_tree_shows_renaming_place_and_code(run: Run, project: Path) -> None:
    """One tree in the order of the flow."""
    result = run("trace", "kept", "model.py", cwd=project)
    assert (
        result.stdout.splitlines()[0] == "kept: 4 places in 1 file, 4 more under other names (1 files looked through)"
    )
    assert "may be None here: aux is None" in result.stdout
    assert "model.py:8:16" in result.stdout
    assert result.code == 0


def test_mermaid_draws_every_place(run: Run, project: Path) -> None:
    """A flowchart with a node for each place and quoted labels."""
    text = run("trace", "kept", "--format", "mermaid", cwd=project).stdout
    assert text.startswith("flowchart TD\n")
    assert text.count("· assignment ·") == 3
    assert all(line.count('"') % 2 == 0 for line in text.splitlines())


def test_svg_is_a_drawing_of_its_own(run: Run, project: Path) -> None:
    """It parses, needs nothing from elsewhere, and follows light and dark."""
    text = run("trace", "kept", "--format", "svg", cwd=project).stdout
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "prefers-color-scheme" in text
    assert "href" not in text
    assert "@import" not in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], "nothing occurs nowhere in the code of 1 files"),
        (["kept", "missing.py"], "missing.py does not exist"),
        (["kept", "--mode", "FULL"], "no enum in the files has a member FULL"),
        (["a b"], "is no symbol"),
    ],
)
def test_mistakes_get_a_sentence(run: Run, project: Path, words: list[str], message: str) -> None:
    """Exit code 2 and a sentence."""
    result = run("trace", *words, cwd=project)
    assert result.code == 2
    assert message in result.stderr


MODES = """\
from enum import Enum


class Mode(Enum):
    NULL = 0
    LAST = 1
    FULL = 2


def store(aux, mode, cat):
    if mode is Mode.FULL:
        kept = cat(aux, dim=-1)
    elif mode is Mode.LAST:
        kept = cat([a[-1] for a in aux], dim=-1)
    else:
        kept = None
    return kept


def run(aux, mode: Mode, cat):
    stored = store(aux, mode, cat)
    return stored
"""


@pytest.fixture
def modes(tmp_path: Path) -> Path:
    (tmp_path / "modes.py").write_text(MODES)
    return tmp_path


def lines_of(run: Run, directory: Path, *words: str) -> list[tuple[int, str]]:
    result = run("trace", *words, "--format", "json", cwd=directory)
    assert result.code == 0, result.stderr
    return [(item["line"], item["name"]) for item in json.loads(result.stdout)["occurrences"]]


def test_from_and_to_keep_the_ways_between_two_places(run: Run, modes: Path) -> None:
    """A place is a name or a line; what lies beside the way is left out."""
    assert lines_of(run, modes, "kept", "--to", "stored") == [
        (12, "kept"), (14, "kept"), (16, "kept"), (17, "kept"), (21, "stored"),
    ]  # fmt: skip
    assert lines_of(run, modes, "kept", "--from", "modes.py:20") == [
        (10, "aux"), (12, "kept"), (12, "aux"), (14, "kept"), (14, "a"), (14, "a"), (14, "aux"), (17, "kept"),
        (20, "aux"), (21, "aux"),
    ]  # fmt: skip
    result = run("trace", "stored", "--to", "aux", cwd=modes)
    assert (result.code, result.stderr.strip()) == (
        2, "eaglelint: The value does not reach aux, as far as it can be followed.",
    )  # fmt: skip


@pytest.mark.parametrize(("mode", "lines"), [("FULL", [10, 12]), ("LAST", [10, 14]), ("Mode.NULL", [10])])
def test_a_mode_keeps_what_it_reaches(run: Run, modes: Path, mode: str, lines: list[int]) -> None:
    """By the member's name, with its enum or without."""
    found = lines_of(run, modes, "modes.py:store:aux", "--mode", mode)
    assert [line for line, name in found if name == "aux" and line < 20] == lines


def test_mermaid_links_the_places_that_json_links(run: Run, modes: Path) -> None:
    """One arrow for each step of the flow, from node to node, in the order of the occurrences."""
    document = json.loads(run("trace", "kept", "--to", "stored", "--format", "json", cwd=modes).stdout)
    steps = {(at, end) for at, item in enumerate(document["occurrences"]) for end in item["flows_to"]}
    text = run("trace", "kept", "--to", "stored", "--format", "mermaid", cwd=modes).stdout
    arrows = re.findall(r"^\s*n(\d+) (?:-->|-\.->)(?:\|[^|]*\|)? n(\d+)$", text, re.MULTILINE)
    assert {(int(start), int(end)) for start, end in arrows} == steps
    assert len(steps) == 4
