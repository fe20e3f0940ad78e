"""Attributes that ``__init__`` sets together: computed once, and as they are in the end."""

from __future__ import annotations

import pytest

from eaglelint.source.calls import construct
from eaglelint.source.lookup import get_attribute, global_value
from eaglelint.source.machine import Machine
from tests.source.conftest import Sources, call_main

MADE_TOGETHER = """
def make(sizes):
    return [1, 2, 3], sizes[0]

class Thing:
    def __init__(self):
        self.items, self.start = make([4])
        {rest}

    def move(self):
        {method}

def main():
    thing = Thing()
    return [len(thing.items), thing.start]
"""


@pytest.mark.parametrize(
    ("rest", "method", "found", "times"),
    [
        ("assert self.start >= 0", "pass", [3, 4], 1),
        ("self.end = self.start + 1", "pass", [3, 4], 1),
        ("self.start += 1", "pass", [3, 5], 2),
        ("self.start = 9", "pass", [3, 9], 2),
        ("self.move()", "self.start = 7", [3, 7], 2),
    ],
)
def test_an_attribute_that_came_up_with_another_one(
    sources: Sources, rest: str, method: str, found: list[int], times: int
) -> None:
    """It is kept where nothing sets it again; else it is what is set last."""
    tree = sources({"program.py": MADE_TOGETHER.format(rest=rest, method=method)})
    machine, calls = Machine(tree), []
    machine.entering = {"program.make": calls.append}
    assert (call_main(tree, machine), len(calls)) == (found, times)


def test_it_is_kept_for_the_other_paths(sources: Sources) -> None:
    """One of which asks for the list first and one for the number alone."""
    tree = sources({"program.py": MADE_TOGETHER.format(rest="assert self.start >= 0", method="pass")})
    machine, calls = Machine(tree), []
    machine.entering = {"program.make": calls.append}
    module = tree.module("program")
    assert module is not None
    cls = global_value(machine, module, "Thing")
    thing = construct(machine, cls, (), {})
    for names in (("items", "start"), ("start",), ("items",)):
        mark = machine.heap.mark()
        for name in names:
            get_attribute(machine, thing, name)
        machine.heap.rollback(mark)
    assert (get_attribute(machine, thing, "start"), len(calls)) == (4, 1)
