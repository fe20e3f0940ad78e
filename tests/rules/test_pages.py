"""Every rule's page is its test: each project on it is scanned, and the findings are exactly those it promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eaglelint.registry import all_rules, rule_page
from eaglelint.rule import Rule
from eaglelint.rule_page import SECTIONS, Example, parse_page
from tests.page_projects import check_example

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
    check_example(example, tmp_path, monkeypatch)
