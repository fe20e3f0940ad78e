"""What the generator is told: names, looks, and the pages in their order."""

from __future__ import annotations

import json
from collections.abc import Iterable

from eaglelint.links import DOCUMENTATION
from eaglelint.registry import all_rules
from tools.site.pages import HOW_TO, STYLE_SHEET, rule_family

__all__ = ["zensical_toml"]


def zensical_toml(site_dir: str) -> str:
    """The generator's settings; no font, script or picture comes from elsewhere."""
    return "\n".join(
        [
            "[project]",
            'site_name = "eaglelint"',
            'site_description = "Is a draft model served the hidden states it was trained on?"',
            f"site_url = {json.dumps(DOCUMENTATION)}",
            f"site_dir = {json.dumps(site_dir)}",
            f"nav = [{', '.join(_navigation())}]",
            f"extra_css = [{json.dumps(STYLE_SHEET)}]",
            "[project.theme]",
            "font = false",
            'features = ["navigation.indexes", "navigation.top", "content.code.copy", "toc.follow"]',
            *_palette("default", "slate", "weather-night", "Dark"),
            *_palette("slate", "default", "weather-sunny", "Light"),
            "[project.markdown_extensions.pymdownx.highlight]",
            "pygments_lang_class = true",
            "[project.markdown_extensions.pymdownx.superfences]",
            "[project.markdown_extensions.tables]",
            "[project.markdown_extensions.toc]",
            "permalink = true",
            "",
        ]
    )


def _palette(scheme: str, other: str, icon: str, name: str) -> Iterable[str]:
    media = "dark" if scheme == "slate" else "light"
    return (
        "[[project.theme.palette]]",
        f'media = "(prefers-color-scheme: {media})"',
        f'scheme = "{scheme}"',
        f'toggle.icon = "material/{icon}"',
        f'toggle.name = "{name} ({other})"',
    )


def _navigation() -> Iterable[str]:
    families: dict[str, list[str]] = {}
    for rule in all_rules():
        families.setdefault(rule_family(rule), []).append(_entry(f"{rule.code} {rule.name}", f"rules/{rule.name}.md"))
    rules = ['"rules/index.md"', *(_section(family, entries) for family, entries in families.items())]
    yield _entry("eaglelint", "index.md")
    yield _section("How to", [json.dumps(f"how-to/{path.name}") for path in HOW_TO])
    yield _section("Rules", rules)
    yield _section("Reference", [_entry("Commands", "commands.md"), _entry("Settings", "settings.md"), '"schemas.md"'])
    yield _section("Where it runs", ['"editors.md"', '"ci.md"', '"probe.md"'])
    evidence = ("reports", "findings-in-engines", "probe-wiring", "hostile-input", "benchmarks")
    yield _section("Evidence", [json.dumps(f"{name}.md") for name in evidence])
    yield _section("Project", [_entry("Changes", "changelog.md"), '"contributing.md"'])


def _entry(title: str, path: str) -> str:
    return f"{{{json.dumps(title)} = {json.dumps(path)}}}"


def _section(title: str, entries: Iterable[str]) -> str:
    return f"{{{json.dumps(title)} = [{', '.join(entries)}]}}"
