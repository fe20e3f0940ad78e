"""Formulas in the target's depth and conditions on a list of ids, as profiles have them: ``N//2-1``, ``first == 1``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["CONDITION_PATTERN", "FORMULA_PATTERN", "IdsCondition", "depth_formula"]

FORMULA_PATTERN = r"-?\d+|(?:\d+\*)?N(?://\d+)?(?:[+-]\d+)?"
CONDITION_PATTERN = rf"(first|last|max|min|count|any) (==|<|>=) ({FORMULA_PATTERN})"

_FORMULA = re.compile(r"(?:(\d+)\*)?N(?://(\d+))?([+-]\d+)?")
_CONDITION = re.compile(CONDITION_PATTERN)
_OF: dict[str, Callable[[Sequence[int]], int]] = {
    "first": lambda ids: ids[0],
    "last": lambda ids: ids[-1],
    "max": max,
    "min": min,
    "count": len,
}
_TESTS: dict[str, Callable[[int, int], bool]] = {"==": operator.eq, "<": operator.lt, ">=": operator.ge}


def depth_formula(text: str) -> Callable[[int], int]:
    """What a formula gives for a target of N layers.

    Raises:
        ValueError: It is no formula.
    """
    if re.fullmatch(r"-?\d+", text):
        constant = int(text)
        return lambda _: constant
    found = _FORMULA.fullmatch(text)
    if found is None or found.group(2) == "0":
        raise ValueError(f"{text!r} is no formula in N")
    times, divisor, offset = int(found.group(1) or 1), int(found.group(2) or 1), int(found.group(3) or 0)
    return lambda depth: depth * times // divisor + offset


@dataclass(frozen=True, slots=True)
class IdsCondition:
    """A condition on the ids and N under which a setter treats them in a way of its own."""

    text: str

    def __post_init__(self) -> None:
        if _CONDITION.fullmatch(self.text) is None:
            raise ValueError(f"{self.text!r} is no condition on a list of ids")

    def holds(self, ids: Sequence[int], num_layers: int) -> bool:
        """Whether it holds for these ids, of which there is at least one."""
        found = _CONDITION.fullmatch(self.text)
        assert found is not None
        test, bound = _TESTS[found.group(2)], depth_formula(found.group(3))(num_layers)
        if found.group(1) == "any":
            return any(test(value, bound) for value in ids)
        return test(_OF[found.group(1)](ids), bound)

    def __str__(self) -> str:
        return self.text
