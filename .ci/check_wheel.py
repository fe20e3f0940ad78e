"""Checks an installed wheel from inside its clean environment: what a user has who never saw the checkout."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import sysconfig
from pathlib import Path

SITE = Path(sysconfig.get_path("purelib"))
COMMAND = Path(sysconfig.get_path("scripts")) / "eaglelint"


def run(*arguments: str) -> str:
    return subprocess.run([COMMAND, *arguments], check=True, capture_output=True, text=True).stdout


def problems() -> list[str]:
    """One sentence for each thing that is wrong."""
    found = [f"The wheel installs a top-level '{name}'." for name in ("rules", "schemas") if (SITE / name).exists()]
    found += [
        f"The wheel lacks eaglelint/{name}."
        for name in (
            "py.typed",
            "rules/__init__.py",
            "schemas/report.schema.json",
            "engines/profiles/sglang-0.5.9.json",
        )
        if not (SITE / "eaglelint" / name).is_file()
    ]
    modules = {p.with_suffix("") for p in (SITE / "eaglelint/rules").rglob("*.py") if not p.name.startswith("_")}
    pages = {page.with_suffix("") for page in (SITE / "eaglelint/rules").rglob("*.md")}
    found += [f"The rule {path.name} has no page, or the page no rule." for path in sorted(modules ^ pages)]
    found += [f"The core installs {name}." for name in ("torch", "pygls") if importlib.util.find_spec(name)]

    from eaglelint import __version__
    from eaglelint.registry import all_rules

    if __version__ not in run("--version"):
        found.append("`eaglelint --version` does not print the version.")
    listed = run("rules")
    found += [f"`eaglelint rules` does not list {rule.code}." for rule in all_rules() if rule.code not in listed]
    if len(all_rules()) != len(modules):
        found.append(f"The wheel holds {len(modules)} rules and finds {len(all_rules())}.")
    return found


if __name__ == "__main__":
    sys.exit("\n".join(problems()) or None)
