"""The how-to pages are true: each project that they show is scanned, and eaglelint says what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from eaglelint.rule_page import Example, parse_projects
from tests.page_projects import check_example

PAGES = sorted((Path(__file__).parents[1] / "docs/how-to").glob("*.md"))
PROJECTS = [
    pytest.param(project, id=f"{page.stem}-{project.title}")
    for page in PAGES
    for project in parse_projects(page.read_text("utf-8"))
]


@pytest.mark.parametrize("project", PROJECTS)
def test_the_project_gives_what_the_page_says(
    project: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All findings, and no other."""
    check_example(project, tmp_path, monkeypatch)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_what_is_right_and_what_is_not(page: Path) -> None:
    """One project that stays silent and one in which something is found."""
    assert {bool(project.expected) for project in parse_projects(page.read_text("utf-8"))} == {True, False}
