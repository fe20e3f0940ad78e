"""The README names every rule, by its code alone or in a range, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from eaglelint.registry import all_rules

README = Path(__file__).parents[1] / "README.md"


def named(cell: str) -> list[str]:
    """The codes in a cell like ``CAP008, NRM003 – 005``."""
    found: list[str] = []
    family, through = "", False
    for word in re.findall(r"[A-Z]{3}\d{3}|\d{3}|–", cell):
        if word == "–":
            through = True
            continue
        family = word[:-3] or family
        first = int(found[-1][-3:]) + 1 if through else int(word[-3:])
        found += [f"{family}{number:03}" for number in range(first, int(word[-3:]) + 1)]
        through = False
    return found


def test_every_rule_stands_in_the_table() -> None:
    table = README.read_text("utf-8").partition("| code | rule | forbids |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")]
    assert {code for cell in cells for code in named(cell)} == {rule.code for rule in all_rules()}


def test_every_name_in_the_table_is_that_of_a_rule_in_its_row() -> None:
    table = README.read_text("utf-8").partition("| code | rule | forbids |")[2].partition("\n\n")[0]
    names = {rule.code: rule.name for rule in all_rules()}
    for line in table.splitlines():
        if line.startswith("| "):
            _, codes, words, *_ = line.split("|")
            assert set(words.replace("…", "").replace(",", " ").split()) <= {names[code] for code in named(codes)}, line
