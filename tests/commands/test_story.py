"""The story of the first page: the example is found wrong for the right reason, and its repair makes it clean."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from eaglelint.cli.app import app

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = Path("examples/kimi-k2.5")


@pytest.fixture(scope="module")
def scanned() -> tuple[int, dict[str, Any]]:
    """The exit code and the document of a scan of the example."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(REPOSITORY)
        result = CliRunner().invoke(app, ["scan", str(EXAMPLE), "--output-format", "json"])
    return result.exit_code, json.loads(result.stdout)


def test_one_finding(scanned: tuple[int, dict[str, Any]]) -> None:
    """The mismatch is the only finding; it is an error, certain, and makes the exit code 1."""
    code, document = scanned
    assert code == 1
    assert [(f["code"], f["name"], f["severity"], f["confidence"]) for f in document["findings"]] == [
        ("CAP002", "boundary-mismatch", "error", "certain")
    ]


def test_each_slot_is_named(scanned: tuple[int, dict[str, Any]]) -> None:
    """The message says of all three slots what they were trained on and what they are served."""
    (finding,) = scanned[1]["findings"]
    assert finding["message"].split("; ") == [
        "slot 0 was trained on h[3] and is served h[0] (the embedding)",
        "slot 1 was trained on h[31] and is served h[3]",
        "slot 2 was trained on h[59] and is served h[31]",
    ]


def test_the_repair(scanned: tuple[int, dict[str, Any]]) -> None:
    """One edit is proposed, safe, with the ids that bring what was trained."""
    (finding,) = scanned[1]["findings"]
    assert [(edit["safety"], edit["text"], edit["path"]) for edit in finding["edits"]] == [
        ("safe", "[2, 30, 58]", "examples/kimi-k2.5/draft/config.json")
    ]


def test_both_ends(scanned: tuple[int, dict[str, Any]]) -> None:
    """Both wirings are derived exactly, and of the training the label too."""
    trained, served = scanned[1]["wirings"]
    assert (trained["party"], trained["status"], trained["slots"]) == ("training", "exact", ["h[3]", "h[31]", "h[59]"])
    assert trained["label"] == "norm(h[61])"
    assert (served["party"], served["status"], served["slots"]) == ("serving", "exact", ["h[0]", "h[3]", "h[31]"])
    assert served["engine_version"] == "0.5.9+kimi"


def test_the_document_is_what_the_schema_says(scanned: tuple[int, dict[str, Any]]) -> None:
    """The report validates against schemas/report.schema.json."""
    schema = json.loads((REPOSITORY / "schemas/report.schema.json").read_text("utf-8"))
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    validator(schema).validate(scanned[1])


def test_the_repair_makes_it_clean(
    scanned: tuple[int, dict[str, Any]], run: Callable[..., Any], tmp_path: Path
) -> None:
    """With the edit applied at its place, the same scan finds nothing and exits with 0."""
    copy = tmp_path / "kimi"
    shutil.copytree(REPOSITORY / EXAMPLE, copy)
    assert run("scan", copy).code == 1
    config = copy / "draft/config.json"
    ((edit,),) = [finding["edits"] for finding in scanned[1]["findings"]]
    lines = config.read_text("utf-8").splitlines(keepends=True)
    assert edit["start"]["line"] == edit["end"]["line"]
    row, first, last = edit["start"]["line"] - 1, edit["start"]["column"] - 1, edit["end"]["column"] - 1
    lines[row] = lines[row][:first] + edit["text"] + lines[row][last:]
    config.write_text("".join(lines), "utf-8")
    assert json.loads("".join(lines))["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [2, 30, 58]
    outcome = run("scan", copy)
    assert (outcome.code, "Found no problems" in outcome.stdout) == (0, True)


# --- the first page ------------------------------------------------------------------------------------------------


def _block() -> str:
    """The output that README.md shows, the first text block after the command."""
    page = (REPOSITORY / "README.md").read_text("utf-8")
    found = re.search(r"<!-- readme:main-job -->.*?```text\n(.*?)```", page, re.S)
    assert found is not None
    return found[1]


def _flat(text: str) -> str:
    return " ".join(text.split())


def _places(text: str) -> dict[str, str]:
    """The ``path:line`` of each labelled line; the arrow is the finding's own."""
    found = re.findall(r"^ +(-->|\w+:) +(\S+?:\d+)(?::\d+)?(?= |$)", text, re.M)
    return {label.rstrip(":"): place for label, place in found}


@pytest.fixture(scope="module")
def shown() -> str:
    """What the command of the first page prints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(REPOSITORY)
        patch.delenv("FORCE_COLOR", raising=False)
        return CliRunner().invoke(app, ["scan", str(EXAMPLE)]).stdout


def test_the_first_page_shows_the_message(shown: str) -> None:
    """README.md has the finding's headline word by word, broken over lines or not."""
    headline = shown.splitlines()[0]
    assert headline.startswith("error[CAP002] boundary-mismatch: slot 0 was trained on h[3]")
    assert _flat(_block()).startswith(headline)


def test_the_first_page_shows_the_repair(shown: str) -> None:
    """README.md has the help, the fix, the excerpt and the mark below it as they are printed."""
    lines = shown.splitlines()
    wanted = [line for line in lines if re.match(r" +(help:|fix:|\|)", line)]
    assert len(wanted) == 4
    assert [line for line in wanted if line not in _block().splitlines()] == []


@pytest.mark.parametrize(
    "label",
    [
        "-->",
        "trained",
        "served",
        "captured",
        "joined",
    ],
)
def test_the_first_page_points_where_the_command_does(shown: str, label: str) -> None:
    """Each place of the block in README.md is the one that is printed under the same label."""
    assert _places(shown)[label] == _places(_block())[label]


def test_the_first_page_names_every_place() -> None:
    """No place of the block in README.md escapes the comparison above."""
    assert set(_places(_block())) == {"-->", "trained", "served", "captured", "joined"}
