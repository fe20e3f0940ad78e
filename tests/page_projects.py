"""Runs a small project that a page shows, and holds the findings against those that the page promises."""

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

from eaglelint.rule_page import Example, Expected
from tests.checkpoints import tensors_from_text, write_safetensors

__all__ = ["check_example", "write_project"]

Found = dict[str, Any]

PROJECTS = Path(__file__).parent / "rules/projects"


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


def write_project(example: Example, directory: Path) -> None:
    """Write the files of a project; checkpoints have real headers, and holes for values."""
    for place, name in example.includes.items():
        shutil.copytree(PROJECTS / name, directory / place, dirs_exist_ok=True)
    for path, text in example.files.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".safetensors"):
            write_safetensors(file, tensors_from_text(text))
        else:
            file.write_text(text, encoding="utf-8")


def check_example(example: Example, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a project below a directory and scan it: all its findings are promised, and no promise is left open."""
    write_project(example, directory)
    monkeypatch.chdir(directory)

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
