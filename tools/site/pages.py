"""The pages of the site: each file that is shown, where it goes, and how its links are turned towards the site."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from eaglelint.registry import all_rules, module_of, rule_page
from eaglelint.rule import Rule
from tools.site.commands import commands_page
from tools.site.schemas import schemas_page, settings_page

__all__ = ["HOW_TO", "LINK", "ROOT", "STYLE_SHEET", "rule_family", "site_pages"]

ROOT = Path(__file__).parents[2]
HOW_TO = tuple(sorted((ROOT / "docs/how-to").glob("*.md")))

STYLE_SHEET = "eaglelint.css"
# Findings are sentences: their lines are broken, not scrolled.
_STYLE = ".md-typeset .language-text pre > code { white-space: pre-wrap; overflow-wrap: anywhere; }\n"

_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,})(?P<language>\S*)(?P<rest>.*)")
LINK = re.compile(r"(?P<before>!?\[[^\]]*\]\()(?P<target>[^)\s]+)(?P<after>\))")
_LANGUAGES = {".py": "python", ".lua": "lua", ".toml": "toml", ".json": "json", ".sh": "bash", ".yml": "yaml"}


def rule_family(rule: Rule) -> str:
    """The directory that a rule lies in."""
    return module_of(rule).split(".")[-2]


def site_pages() -> dict[str, str]:
    """Texts by their path in the site: Markdown, and one style sheet."""
    places = _places()
    pages = {
        place: _turned(source, place, (ROOT / source).read_text("utf-8"), places)
        for source, place in places.items()
        if source not in _rule_sources()
    }
    for rule in all_rules():
        place = f"rules/{rule.name}.md"
        pages[place] = _turned(_source_of(rule), place, _with_heading(rule, rule_page(rule)), places)
    pages["rules/index.md"] = _rules_page()
    pages["commands.md"] = commands_page()
    pages["settings.md"] = settings_page()
    pages["schemas.md"] = schemas_page()
    return _with_files(pages) | {STYLE_SHEET: _STYLE}


def _places() -> dict[str, str]:
    """Where each file of the checkout that is a page lies in the site."""
    places = {
        "README.md": "index.md",
        "CHANGELOG.md": "changelog.md",
        "CONTRIBUTING.md": "contributing.md",
        "benchmarks/README.md": "benchmarks.md",
        "editors/vscode/README.md": "vscode.md",
    }
    for file in sorted((ROOT / "docs").rglob("*.md")):
        places[file.relative_to(ROOT).as_posix()] = file.relative_to(ROOT / "docs").as_posix()
    return places | {_source_of(rule): f"rules/{rule.name}.md" for rule in all_rules()}


def _rule_sources() -> set[str]:
    return {_source_of(rule) for rule in all_rules()}


def _source_of(rule: Rule) -> str:
    *_, family, stem = module_of(rule).split(".")
    return f"rules/{family}/{stem}.md"


def _with_heading(rule: Rule, text: str) -> str:
    """A line below the title that says what lists say of the rule."""
    title, _, rest = text.partition("\n")
    return f"{title}\n\n**{rule.severity}** · {rule_family(rule)} · {rule.summary}\n{rest}"


def _rules_page() -> str:
    rows = [
        f"| [{rule.code}]({rule.name}.md) | [{rule.name}]({rule.name}.md) | {rule.severity} | {rule.summary} |"
        for rule in all_rules()
    ]
    return "\n".join(["# Rules", "", "| code | rule | severity | forbids |", "|---|---|---|---|", *rows, ""])


def _turned(source: str, place: str, text: str, places: dict[str, str]) -> str:
    """A page whose links, relative to its file in the checkout, are made relative to its place in the site."""
    return (
        "\n".join(
            row if fenced else LINK.sub(lambda match: _link(match, source, place, places), row)
            for row, fenced in _rows(text)
        )
        + "\n"
    )


def _rows(text: str) -> Iterator[tuple[str, bool]]:
    """Lines, and whether each belongs to a fenced block; what only our tests read in a block's head is worded anew."""
    closing = ""
    for row in text.splitlines():
        fence = _FENCE.fullmatch(row)
        if closing:
            yield row, True
            closing = "" if row.rstrip() == closing else closing
        elif fence is not None:
            closing = fence["fence"]
            yield _fence(fence), True
        else:
            yield row, False


def _fence(fence: re.Match[str]) -> str:
    """The head of a block: a tree that the tests keep elsewhere is a text, and findings are what eaglelint says."""
    language, rest = fence["language"], re.sub(r'\s*include="[^"]*"', "", fence["rest"])
    if language == "expect":
        language, rest = "text", ' title="eaglelint says"'
    return f"{fence['fence']}{language}{rest}"


def _link(match: re.Match[str], source: str, place: str, places: dict[str, str]) -> str:
    target, hash_sign, anchor = match["target"].partition("#")
    if not target or re.match(r"[a-z]+:", target):
        return match[0]
    path = os.path.normpath(PurePosixPath(source).parent / target)
    if (ROOT / path).is_dir():
        path = f"{path}/README.md"
    goal = places.get(path) or f"files/{path}.md"
    relative = os.path.relpath(goal, PurePosixPath(place).parent)
    return f"{match['before']}{relative}{hash_sign}{anchor}{match['after']}"


def _with_files(pages: dict[str, str]) -> dict[str, str]:
    """The pages, and one more for each other file of the checkout that they lead to."""
    shown = {
        os.path.normpath(PurePosixPath(place).parent / match["target"].partition("#")[0])
        for place, text in pages.items()
        for match in LINK.finditer(text)
        if "files/" in match["target"]
    }
    for page in sorted(name for name in shown if name.startswith("files/")):
        path = page.removeprefix("files/").removesuffix(".md")
        file = ROOT / path
        language = _LANGUAGES.get(file.suffix, "text")
        pages[page] = f"# {path}\n\n````{language}\n{file.read_text('utf-8').rstrip()}\n````\n"
    return pages
