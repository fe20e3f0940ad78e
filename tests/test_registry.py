"""The registry finds every rule once and says what it does not know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from eaglelint import registry
from eaglelint.exceptions import WrongUsage
from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

ROOT = Path(__file__).parents[1]


def finds_nothing(rule: Rule, facts: Facts) -> Iterator[Finding]:
    yield from ()


def rule(code: str, name: str) -> Rule:
    return Rule(code, name, "A summary.", "error", finds_nothing)


def module(name: str, **members: object) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update(members)
    return made


MISMATCH = rule("CAP002", "boundary-mismatch")
ORDER = rule("CAP010", "order-lost")
WIDTH = rule("SHP001", "fc-width")


@pytest.fixture
def three_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "all_rules", lambda: (MISMATCH, ORDER, WIDTH))


def test_every_rule_module_is_found() -> None:
    """A family without an ``__init__.py`` would hide its rules; each module and its page lie side by side."""
    modules = {path for path in (ROOT / "rules").rglob("*.py") if not path.name.startswith("_")}
    found = {
        ROOT.joinpath(*registry.module_of(rule).split(".")[1:]).with_suffix(".py") for rule in registry.all_rules()
    }
    assert found == modules
    assert {path.with_suffix(".py") for path in (ROOT / "rules").rglob("*.md")} == modules


def test_rules_come_in_the_order_of_their_codes() -> None:
    """Lists, reports and documentation agree on one order."""
    codes = [rule.code for rule in registry.all_rules()]
    assert codes == sorted(codes)


@pytest.mark.parametrize("other", [replace(WIDTH, code="CAP002"), replace(WIDTH, name="boundary-mismatch")])
def test_two_rules_cannot_share_a_code_or_a_name(other: Rule) -> None:
    """Both are used in settings and suppressions, so both mean one rule."""
    with pytest.raises(RuntimeError, match=r"^b and a are both called (CAP002|boundary-mismatch)\.$"):
        registry._gather([module("a", RULE=MISMATCH), module("b", RULE=other)])


def test_a_module_without_a_rule_is_an_error() -> None:
    """A misspelt ``RULE`` must not lose a rule in silence."""
    with pytest.raises(RuntimeError, match="has no RULE"):
        registry._gather([module("a", RULES=MISMATCH)])


@pytest.mark.usefixtures("three_rules")
@pytest.mark.parametrize(
    ("select", "ignore", "expected"),
    [
        ([], [], [MISMATCH, ORDER, WIDTH]),
        (["CAP"], [], [MISMATCH, ORDER]),
        (["cap00"], [], [MISMATCH]),
        (["fc-width", "CAP010"], [], [ORDER, WIDTH]),
        (["fc-width,CAP010"], [], [ORDER, WIDTH]),
        ([], ["CAP, fc-width,"], []),
        ([], ["order-lost"], [MISMATCH, WIDTH]),
        (["CAP002"], ["CAP"], []),
    ],
)
def test_select_and_ignore(select: list[str], ignore: list[str], expected: list[Rule]) -> None:
    """Codes, names and beginnings of codes; to ignore is stronger."""
    assert registry.select_rules(select, ignore) == tuple(expected)


@pytest.mark.usefixtures("three_rules")
@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("boundary-missmatch", "Did you mean 'boundary-mismatch'?"),
        ("CPA002", "Did you mean 'CAP002'?"),
        ("CPA", "Did you mean 'CAP'?"),
        ("", "`eaglelint rules` lists them all."),
    ],
)
def test_an_unknown_word_is_answered_with_the_nearest(word: str, advice: str) -> None:
    """A typing error in the settings must not switch a check off."""
    for option in ("select", "ignore"):
        with pytest.raises(WrongUsage) as raised:
            registry.select_rules(**{option: [word]})
        assert str(raised.value).endswith(advice)


@pytest.mark.usefixtures("three_rules")
def test_find_rule() -> None:
    """By code in any case, or by name."""
    assert registry.find_rule("cap002") is registry.find_rule("boundary-mismatch") is MISMATCH
    with pytest.raises(WrongUsage, match="There is no rule 'CAP'"):
        registry.find_rule("CAP")
