"""Writes docs/reports.md from the cases: ``python -m tests.reports.page``."""

from __future__ import annotations

from pathlib import Path

from eaglelint.registry import find_rule, module_of
from tests.reports.cases import CASES, MISSED, RIGHT
from tests.reports.training import TRAINING

__all__ = ["PAGE", "render"]

PAGE = Path(__file__).parents[2] / "docs" / "reports.md"

_INTRODUCTION = """\
# Public reports and the rules that find them

Made by `python -m tests.reports.page` from `tests/reports/cases.py`, which holds for each report the smallest project that
shows it, and the same project mended. The tests scan both: the rules named here speak on the first, and no rule speaks on
the second. Listed are the reports whose cause stands in files that lie beside a draft: configs, checkpoint headers,
tokenizers, the command that starts the engine; and those (`tests/reports/training.py`) whose cause stands in training code
or in a dump of hidden states.
"""


def render() -> str:
    """The page's text."""
    found = (*CASES, *TRAINING)
    total = len(found) + len(RIGHT) + len(MISSED)
    answered = len(found) + len(RIGHT)
    lines = [
        _INTRODUCTION,
        f"**{answered} of {total}**: {len(found)} are found, {len(RIGHT)} ask about something that is right and stay "
        f"silent, {len(MISSED)} are not found.",
        "",
        "## Found",
        "",
        "| report | what happened | found by |",
        "|---|---|---|",
    ]
    lines += [f"| {_link(case.report)} | {case.what} | {', '.join(map(_rule, case.rules))} |" for case in CASES]
    lines += ["", "## Found in training code and dumps", "", "| report | what happened | found by |", "|---|---|---|"]
    lines += [f"| {_link(case.report)} | {case.what} | {', '.join(map(_rule, case.rules))} |" for case in TRAINING]
    lines += ["", "## Right, and not reported", "", "| report | what was asked | silent |", "|---|---|---|"]
    lines += [f"| {_link(case.report)} | {case.what} | {_rule(case.rule)} |" for case in RIGHT]
    lines += ["", "## Not found", "", "| report | what happened | why not |", "|---|---|---|"]
    lines += [f"| {_link(case.report)} | {case.what} | {case.why} |" for case in MISSED]
    return "\n".join(lines) + "\n"


def _link(report: str) -> str:
    repository, _, number = report.partition(" ")[0].partition("#")
    return f"[{report}](https://github.com/{repository}/issues/{number})"


def _rule(code: str) -> str:
    rule = find_rule(code)
    _, _, family, name = module_of(rule).split(".")
    return f"[{code} {rule.name}](../rules/{family}/{name}.md)"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
