"""The documentation's site: every rule's address is one of its pages, and a link that leads nowhere stops the build."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest

from eaglelint.links import DOCUMENTATION, rule_url
from eaglelint.registry import all_rules
from tools.site.broken import broken_links
from tools.site.pages import LINK, site_pages


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return site_pages()


def test_the_address_of_each_rule_is_its_page(pages: dict[str, str]) -> None:
    """What findings lead to is what the site has."""
    for rule in all_rules():
        path = rule_url(rule.name).removeprefix(DOCUMENTATION).rstrip("/")
        assert pages[f"{path}.md"].startswith(f"# {rule.name} ({rule.code})\n")


def test_pages_lead_to_pages(pages: dict[str, str]) -> None:
    """Each relative link of a page is another page of the site."""
    leads = {
        (place, match["target"])
        for place, text in pages.items()
        if not place.startswith("files/")
        for match in LINK.finditer(text)
        if ":" not in match["target"] and not match["target"].startswith("#")
    }
    assert len(leads) > len(all_rules())
    assert [
        (place, target)
        for place, target in sorted(leads)
        if os.path.normpath(PurePosixPath(place).parent / target.partition("#")[0]) not in pages
        and target != "self"  # of Python code in the text
    ] == []


def test_the_commands_are_those_of_the_help(pages: dict[str, str]) -> None:
    """Commands, subcommands and options, with brackets as they are meant."""
    page = pages["commands.md"]
    assert "## eaglelint engines show\n" in page
    assert "- `--launch <path>`: A script with the command that starts the engine" in page
    assert "layer-output (id i is h\\[i+1])" in page
    assert "Write \\[tool.eaglelint]" in page


def test_links_that_lead_nowhere_are_told(tmp_path: Path) -> None:
    """A missing page, a missing anchor, a missing picture, and a font from elsewhere."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/index.html").write_text('<h2 id="here">x</h2>')
    (tmp_path / "index.html").write_text(
        '<link rel="stylesheet" href="https://fonts.example/x.css"><a href="rules/#here">a</a><a href="rules/#gone">b</a>'
        '<a href="nowhere/">c</a><img src="no.png"><a href="https://example.com/">d</a><a href="#no">e</a>'
    )
    assert broken_links(tmp_path) == [
        "index.html: https://fonts.example/x.css is fetched from elsewhere.",
        "index.html: rules/#gone leads to no anchor.",
        "index.html: nowhere/ leads to no file.",
        "index.html: #no leads to no anchor.",
        "index.html: no.png leads to no file.",
    ]
