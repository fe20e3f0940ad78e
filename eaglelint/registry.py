"""The one door to the rules: finds the modules of ``eaglelint.rules`` and chooses by code, prefix or name."""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from types import ModuleType

from eaglelint.exceptions import WrongUsage
from eaglelint.rule import Rule

__all__ = ["all_rules", "find_rule", "module_of", "rule_page", "rules_meant", "select_rules"]

_PREFIX = re.compile(r"[A-Z]{1,3}\d{0,3}")


def all_rules() -> tuple[Rule, ...]:
    """Every rule, in the order of the codes.

    Raises:
        RuntimeError: A rule module has no ``RULE``, or two share a code or a name.
    """
    return tuple(rule for rule, _ in _registered().values())


def find_rule(code_or_name: str) -> Rule:
    """The rule with this code (in any case) or name.

    Raises:
        WrongUsage: There is none; the message proposes the nearest.
    """
    for rule in all_rules():
        if code_or_name.upper() == rule.code or code_or_name == rule.name:
            return rule
    raise WrongUsage(f"There is no rule '{code_or_name}'.{_nearest(code_or_name)}")


def select_rules(select: Sequence[str] = (), ignore: Sequence[str] = ()) -> tuple[Rule, ...]:
    """The rules to run; each word is a code, a name or the beginning of a code (``CAP``).

    Args:
        select: The rules wanted; all when empty.
        ignore: The rules left out; stronger than ``select``.

    Raises:
        WrongUsage: A word means no rule.
    """
    rules = all_rules()
    wanted = {rule.code for word in select for rule in rules_meant(word)} if select else {rule.code for rule in rules}
    unwanted = {rule.code for word in ignore for rule in rules_meant(word)}
    return tuple(rule for rule in rules if rule.code in wanted - unwanted)


def rules_meant(word: str) -> tuple[Rule, ...]:
    """The rules that a word means: a name, a code, or the beginning of codes; several with commas between them.

    Raises:
        WrongUsage: It means none; the message proposes the nearest.
    """
    words = [part for part in re.split(r"[,\s]+", word) if part]
    if len(words) > 1:
        meant = {rule.code for part in words for rule in rules_meant(part)}
        return tuple(rule for rule in all_rules() if rule.code in meant)
    word = words[0] if words else word
    rules = tuple(rule for rule in all_rules() if rule.name == word)
    if not rules and _PREFIX.fullmatch(word.upper()):
        rules = tuple(rule for rule in all_rules() if rule.code.startswith(word.upper()))
    if not rules:
        raise WrongUsage(f"'{word}' is no rule's code or name, and no rule's code begins with it.{_nearest(word)}")
    return rules


def rule_page(rule: Rule) -> str:
    """The text of the page beside the rule's module: its documentation and its test."""
    package, _, stem = module_of(rule).rpartition(".")
    return (files(package) / f"{stem}.md").read_text(encoding="utf-8")


def module_of(rule: Rule) -> str:
    """The full name of the module that a rule was found in: ``eaglelint.rules.capture.boundary_mismatch``."""
    return _registered()[rule.code][1]


@functools.cache
def _registered() -> Mapping[str, tuple[Rule, str]]:
    package = importlib.import_module("eaglelint.rules")
    names = (
        module.name
        for module in pkgutil.walk_packages(package.__path__, "eaglelint.rules.", onerror=_reraise)
        if not module.ispkg and not module.name.rpartition(".")[2].startswith("_")
    )
    return _gather(importlib.import_module(name) for name in names)


def _gather(modules: Iterable[ModuleType]) -> Mapping[str, tuple[Rule, str]]:
    """Rules and the modules they stand in, by code; what would make a rule unreachable is an error."""
    found: dict[str, tuple[Rule, str]] = {}
    owners: dict[str, str] = {}
    for module in modules:
        rule = getattr(module, "RULE", None)
        if not isinstance(rule, Rule):
            raise RuntimeError(f"{module.__name__} lies among the rules and has no RULE.")
        for word in (rule.code, rule.name):
            if word in owners:
                raise RuntimeError(f"{module.__name__} and {owners[word]} are both called {word}.")
            owners[word] = module.__name__
        found[rule.code] = (rule, module.__name__)
    return dict(sorted(found.items()))


def _reraise(name: str) -> None:
    """Without this, walk_packages passes over a family that cannot be imported, and its rules are lost in silence."""
    importlib.import_module(name)


def _nearest(word: str) -> str:
    rules = all_rules()
    families = sorted({rule.code.rstrip("0123456789") for rule in rules})
    known = {text.lower(): text for text in (*families, *(r.code for r in rules), *(r.name for r in rules))}
    matches = difflib.get_close_matches(word.lower(), known, n=1)
    return f" Did you mean '{known[matches[0]]}'?" if matches else " `eaglelint rules` lists them all."
