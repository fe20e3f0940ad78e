"""The projects on pages about classes of drafts, with what was learned from their engine in the place of its source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eaglelint.engines.profile_file import write_profile
from eaglelint.learn.learn import learn_profile
from eaglelint.registry import all_rules, rule_page
from eaglelint.rule_page import Example, parse_page
from tests.page_projects import write_project

CODES = ("CFG004", "CAT002", "VAL004", "NRM006", "WGT005")
# A profile knows nothing of tensors of a layer that the draft's config does not have, and says nothing.
LEFT_TO_THE_SOURCE = ("WGT005-Example-Two for one place",)
CLASSES = ("LlamaForCausalLM", "LlamaForCausalLMEagle", "LlamaForCausalLMEagle3")
SERVING = "sglang@serving/sglang"


def examples() -> list[Any]:
    pages = {rule.code: parse_page(rule_page(rule)) for rule in all_rules() if rule.code in CODES}
    return [
        pytest.param(example, id=f"{code}-{example.section}-{example.title}")
        for code in CODES
        for example in pages[code].examples
        if SERVING in example.command
    ]


def _verdict(words: list[str]) -> list[Any]:
    """The findings, without how an engine's files are shown."""
    from eaglelint.cli.app import app

    result = CliRunner().invoke(app, [*words, "--output-format", "json"])
    assert result.exit_code in (0, 1), result.output
    return [
        (f["code"], f["severity"], f["confidence"], f["location"]["start"]["line"], f["help"])
        for f in json.loads(result.stdout)["findings"]
    ]


def test_each_rule_has_such_examples() -> None:
    """Without examples the test below would pass by being empty."""
    shown = {parameter.id.partition("-")[0] for parameter in examples()}
    assert shown == set(CODES)


@pytest.mark.parametrize("example", examples())
def test_the_same_verdict(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The same findings with the same confidence, and none where there are none."""
    write_project(example, tmp_path)
    monkeypatch.chdir(tmp_path)
    learned = learn_profile(tmp_path / "serving/sglang", "sglang", processes=1, only=CLASSES)
    write_profile(learned, tmp_path / "learned.json")
    words = [word.replace(SERVING, "sglang@learned.json") for word in example.command]
    assert words != list(example.command)
    silent = any(name in request.node.name for name in LEFT_TO_THE_SOURCE)
    assert _verdict(words) == ([] if silent else _verdict(list(example.command)))
