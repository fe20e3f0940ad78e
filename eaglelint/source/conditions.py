"""What depends on the target's config alone: one condition, wherever and in whatever words it is tested.

A value that the config does not say is unknown, but it is the same unknown each time that it is read. Its expression is
kept with it, so that a path that took one side of ``config.moe`` takes that side again in another function.
"""

from __future__ import annotations

from typing import Any

from eaglelint.source.machine import Machine
from eaglelint.source.values import Unknown

__all__ = ["compared", "condition_of", "decided", "joined", "texts_of", "with_default"]

_SYMBOLS = {
    "Equal": "==",
    "LessThan": "<",
    "LessThanEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanEqual": ">=",
    "Is": "is",
}
_OPPOSITES = {"NotEqual": "Equal", "IsNot": "Is"}
_TRUTH = "truth of "
_PLAIN = (bool, int, float, str)
_LONGEST = 160  # characters of an expression that is worth keeping


def compared(found: Any, name: str, left: Any, right: Any) -> Any:
    """The result of a comparison that is not known, with its expression; ``name`` is libcst's."""
    if not isinstance(found, Unknown):
        return found
    symbol = _SYMBOLS.get(_OPPOSITES.get(name, name))
    if symbol is None:
        return found
    expression = _expression(left, symbol, right)
    if expression and name in _OPPOSITES:
        expression = f"not {expression}"
    return found if expression == found.of else found.named(expression)


def joined(left: Any, word: str, right: Any) -> str:
    """The expression of two operands of ``and`` or ``or``."""
    if isinstance(right, bool) and isinstance(left, Unknown) and left.of and right == (word == "and"):
        return f"{_TRUTH}{left.of}"  # another value may be, but as true as it
    return _expression(left, word, right)


def with_default(found: Any, default: Any) -> Any:
    """What ``getattr`` gives where the config may lack the key."""
    if not isinstance(found, Unknown) or not found.of:
        return found
    return found.named(f"{found.of} (else {default!r})" if _is_plain(default) else "")


def condition_of(value: Any) -> tuple[str, bool]:
    """The expression whose truth decides a value's, and whether it is the opposite; "" where there is none."""
    if not isinstance(value, Unknown) or not value.of:
        return "", False
    code = value.of.removeprefix(_TRUTH)
    return code.removeprefix("not "), code.startswith("not ")


def texts_of(code: str) -> tuple[str, str]:
    """How a condition reads that does not hold, and one that does."""
    return f"when not {code}" if " " not in code.removeprefix("the target's ") else f"when not ({code})", f"when {code}"


def decided(machine: Machine, value: Any) -> bool | None:
    """The side that this path has taken where it was tested before."""
    code, negated = condition_of(value)
    if not code:
        return None
    texts = texts_of(code)
    for order in (texts, texts[::-1]):
        choice = machine.decided(("", code), order)
        if choice is not None:
            return (order[choice] == texts[1]) != negated
    return None


def _expression(left: Any, between: str, right: Any) -> str:
    if not (isinstance(left, Unknown) or isinstance(right, Unknown)):
        return ""
    sides = [item.of if isinstance(item, Unknown) else repr(item) if _is_plain(item) else "" for item in (left, right)]
    expression = f"({sides[0]} {between} {sides[1]})"
    return expression if all(sides) and len(expression) <= _LONGEST else ""


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, _PLAIN)
