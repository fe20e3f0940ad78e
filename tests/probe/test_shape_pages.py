"""The shape probe on the pages of the SHP rules: what a page calls wrong raises, what it calls right passes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eaglelint.cli.app import app
from eaglelint.registry import all_rules, rule_page
from eaglelint.rule_page import Example, parse_page
from tests.page_projects import write_project

EXAMPLES = [
    pytest.param(example, id=f"{rule.code}-{example.section}-{example.title}")
    for rule in all_rules()
    if rule.code.startswith("SHP")
    for example in parse_page(rule_page(rule)).examples
    if "--launch" not in example.command  # how an engine is started is nothing that a draft's shapes could bear out
]


@pytest.mark.parametrize("device", ["meta", "cpu"])
@pytest.mark.parametrize("example", EXAMPLES)
def test_the_page_is_borne_out(example: Example, device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project with findings fails, and each of its findings is confirmed; one without passes."""
    write_project(example, tmp_path)
    monkeypatch.chdir(tmp_path)
    command = ["probe", *example.command[1:], "--device", device, "--format", "json"]
    result = CliRunner().invoke(app, command)
    document = json.loads(result.stdout)
    assert result.exit_code == (1 if example.expected else 0), result.output
    assert {outcome["result"] for outcome in document["outcomes"]} == {"failed" if example.expected else "passed"}
    shapes = [finding["probe"] for finding in document["findings"] if finding["code"].startswith("SHP")]
    expected = [finding for finding in example.expected if finding.code.startswith("SHP")]
    assert [probed["verdict"] for probed in shapes] == ["confirmed"] * len(expected)
