"""Every rule's page is its test: each project on it is scanned, and the findings are exactly those it promises."""

from __future__ import annotations

import json
import shutil
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from eaglelint.registry import all_rules, rule_page
from eaglelint.rule import Rule
from eaglelint.rule_page import SECTIONS, Example, Expected, parse_page
from tests.checkpoints import tensors_from_text, write_safetensors

Found = dict[str, Any]

PROJECTS = Path(__file__).parent / "projects"

each_rule = pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)


def examples() -> list[Any]:
    """Every project of every page; a page that cannot be read fails in its own test below."""
    found = []
    for rule in all_rules():
        try:
            page = parse_page(rule_page(rule))
        except (OSError, ValueError):
            continue
        found += [
            pytest.param(example, id=f"{rule.code}-{example.section}-{example.title}") for example in page.examples
        ]
    return found


@cache
def report_validator() -> Draft202012Validator:
    return Draft202012Validator(json.loads((files("eaglelint.schemas") / "report.schema.json").read_text("utf-8")))


def promised(finding: Found, expected: Expected) -> bool:
    """Whether a finding is the expected one; what the page leaves open fits everything."""
    start = finding["location"]["start"]
    return (
        (finding["location"]["path"], start["line"]) == (expected.path, expected.line)
        and (finding["severity"], finding["code"]) == (expected.severity, expected.code)
        and expected.column in (None, start["column"])
        and expected.confidence in (None, finding["confidence"])
        and (expected.message is None or expected.message in finding["message"])
    )


def as_expect_line(finding: Found) -> str:
    """A finding as a page would promise it, to be copied from a failed test."""
    location = finding["location"]
    place = f"{location['path']}:{location['start']['line']}:{location['start']['column']}"
    return f"{place} {finding['severity']}[{finding['code']}] {finding['confidence']} ~ {finding['message']}"


def test_there_are_rules() -> None:
    """Without rules the tests below would pass by being empty."""
    assert all_rules()


@each_rule
def test_the_page_is_complete(rule: Rule) -> None:
    """Its own name and code, the five sections, each with text."""
    page = parse_page(rule_page(rule))
    assert (page.code, page.name) == (rule.code, rule.name)
    assert tuple(section.heading for section in page.sections) == SECTIONS
    assert [section.heading for section in page.sections if not section.text] == []


@each_rule
def test_the_page_shows_both_sides(rule: Rule) -> None:
    """At least one project in which the rule speaks and one in which nothing does."""
    shown = parse_page(rule_page(rule)).examples
    assert any(expected.code == rule.code for example in shown for expected in example.expected)
    assert any(not example.expected for example in shown)


@pytest.mark.parametrize("example", examples())
def test_the_project_gives_what_the_page_promises(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All findings of the scan, of whatever rule, and no other."""
    for directory, name in example.includes.items():
        shutil.copytree(PROJECTS / name, tmp_path / directory, dirs_exist_ok=True)
    for path, text in example.files.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".safetensors"):
            write_safetensors(file, tensors_from_text(text))
        else:
            file.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    from eaglelint.cli.app import app

    result = CliRunner().invoke(app, [*example.command, "--output-format", "json"])
    assert result.exit_code in (0, 1), result.output
    report = json.loads(result.stdout)
    report_validator().validate(report)

    unexpected: list[Found] = list(report["findings"])
    missing = []
    for expected in sorted(example.expected, key=_left_open):
        match = next((finding for finding in unexpected if promised(finding, expected)), None)
        if match is None:
            missing.append(expected)
        else:
            unexpected.remove(match)
    assert ([as_expect_line(finding) for finding in unexpected], missing) == ([], [])


def _left_open(expected: Expected) -> int:
    """The most exact promises choose their finding first."""
    return sum(part is None for part in (expected.column, expected.confidence, expected.message))
