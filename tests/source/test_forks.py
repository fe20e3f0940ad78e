"""Conditions that are not known: what is run for them once, and what they do not keep apart."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import libcst as cst
import pytest

from eaglelint.source.calls import call_value, run_here
from eaglelint.source.liveness import read_after
from eaglelint.source.machine import Machine, Raised
from eaglelint.source.same import NotJoinable, join
from eaglelint.source.slices import parse_slice
from eaglelint.source.values import Function, Unknown
from eaglelint.source.walk import walk
from tests.source.conftest import Interpret, Sources, call_main

UNKNOWN = Unknown("a part of the batch")


def entered(sources: Sources, source: str, function: str) -> tuple[Any, int]:
    """What ``main`` gives on its paths, and how often a function of the program begins while these are found."""
    tree = sources({"program.py": source})
    machine, calls = Machine(tree), []
    machine.entering = {f"program.{function}": calls.append}
    call_main(tree, machine, (UNKNOWN,))  # goes on with the first of them
    machine = Machine(tree)
    outcomes = machine.explore(lambda: call_main(tree, machine, (UNKNOWN,)), None)
    return [outcome.value for outcome in outcomes], len(calls)


# --- each side is run once -------------------------------------------------------------------------------------------


def test_a_side_that_returns_is_run_once(sources: Sources) -> None:
    """It cannot meet the other side, so it is not tried out first; the calls on the way to a later one are."""
    source = """
    def work(number):
        return [number]

    def main(batch):
        if batch.first:
            return work(1)
        if batch.second:
            return work(2)
        return work(3)
    """
    found, calls = entered(sources, source, "work")
    assert (sorted(found), calls) == ([[1], [2], [3]], 3)


@pytest.mark.parametrize("leaving", ["return [1]", "break", "continue"])
def test_a_side_that_leaves_by_another_statement(sources: Sources, leaving: str) -> None:
    """Both ways are gone, to their ends."""
    source = f"""
    def main(batch):
        found = []
        for number in range(2):
            if batch.first:
                {leaving}
            found.append(number)
        return found
    """
    found, _ = entered(sources, source, "main")
    assert sorted(found) == sorted([[0, 1], [1] if leaving == "return [1]" else []])


def test_guards_in_nested_conditions(sources: Sources) -> None:
    """A side with a guard in it is not tried out to its end, as what is nested in it would be at each level."""
    depth = 9
    source = "def main(batch):\n    size = [0]\n" + "".join(
        "    " * (level + 1) + f"if batch.a{level}:\n" + "    " * (level + 2) + f"if batch.b{level}:\n"
        + "    " * (level + 3) + "raise ValueError\n" + "    " * (level + 2) + f"size = [{level}]\n"
        for level in range(depth)
    ) + "    return size\n"  # fmt: skip
    tree = sources({"program.py": source})
    machine = Machine(tree)
    outcomes = machine.explore(lambda: call_main(tree, machine, (UNKNOWN,)), None)
    assert sorted(outcome.value[0] for outcome in outcomes) == sorted([0, *range(depth)])[1:]
    assert machine.steps < 40 * depth**2


def test_a_choice_deep_inside_calls(sources: Sources) -> None:
    """What one call forks over, each call around it forks over: they know what is chosen, and do not find it anew."""

    def steps(depth: int) -> int:
        calls = "".join(f"def call_{level}(batch):\n    return call_{level + 1}(batch)\n" for level in range(depth))
        leaf = f"def call_{depth}(batch):\n    if batch.first:\n        return [1]\n    return [2]\n"
        tree = sources({"program.py": f"{calls}{leaf}def main(batch):\n    return call_0(batch)\n"})
        machine = Machine(tree)
        outcomes = machine.explore(lambda: call_main(tree, machine, (UNKNOWN,)), None)
        assert sorted(outcome.value for outcome in outcomes) == [[1], [2]]
        return machine.steps

    assert steps(12) < 5 * steps(6)


def test_what_is_entered_around_a_forward_pass(sources: Sources) -> None:
    """Streams and flags: which of them keeps no paths apart."""
    source = """
    from contextlib import contextmanager, nullcontext

    @contextmanager
    def stream(batch):
        yield

    def work(batch):
        return [1]

    def main(batch):
        if batch.first:
            around = stream(batch)
        else:
            around = nullcontext()
        with around:
            return work(batch)
    """
    tree = sources({"program.py": source})
    machine, calls = Machine(tree, num_layers=2), []
    machine.entering = {"program.work": calls.append}
    assert call_main(tree, machine, (UNKNOWN,)) == [1]
    assert len(calls) == 1


def test_a_function_that_is_run_here_forks_with_who_asks(sources: Sources) -> None:
    """What is done with the first path's answer is done before the others are found; a call finds all of them first."""
    tree = sources({"program.py": "def gate(batch):\n    if batch.first:\n        return 1\n    return 2\n"})
    module = tree.module("program")
    assert module is not None
    gate = Function(module, module.index.functions["gate"])

    def steps(ask: Any) -> list[tuple[Any, int]]:
        """The answers on the paths, and after how many steps each was there."""
        machine, answers = Machine(tree), []
        machine.explore(lambda: answers.append((ask(machine), machine.steps)), None)
        return answers

    here = steps(lambda machine: run_here(machine, gate, (UNKNOWN,)))
    called = steps(lambda machine: call_value(machine, gate, (UNKNOWN,), {}, None))
    assert sorted(answer for answer, _ in here) == sorted(answer for answer, _ in called) == [1, 2]
    assert here[0][1] < called[0][1]


# --- what is not kept apart ------------------------------------------------------------------------------------------


def test_a_chain_of_choices_between_objects(sources: Sources) -> None:
    """One path: what the branches keep for themselves is not read behind them, and the last one only raises."""
    choices = "".join(
        f"""
        elif kind == "{number}":
            size_{number} = {number}
            scale = {number}.5"""
        for number in range(12)
    )
    source = f"""
    def work(kind):
        if kind == "none":
            scale = 0.5{choices}
        else:
            raise ValueError(kind)
        return scale

    def main(batch):
        return work(batch.kind)
    """
    found, calls = entered(sources, source, "work")
    assert (found, calls) == ([Unknown()], 1)


def test_a_variable_that_is_read_behind_a_condition(sources: Sources) -> None:
    """It keeps the paths apart, whoever reads it: what follows, the next round, a function inside."""
    for rest in ("return [size]", "for _ in range(2):\n        pass\n    return [lambda: size][0]()"):
        source = f"def main(batch):\n    size = 0\n    if batch.first:\n        size = 1\n    {rest}\n"
        found, _ = entered(sources, source, "main")
        assert sorted(found, key=repr) in ([[0], [1]], [0, 1]), rest
    source = """
    def main(batch):
        seen = []
        for number in range(2):
            if number:
                seen.append(size)
            if batch.first:
                size = 1
            else:
                size = 2
        return seen
    """
    assert sorted(entered(sources, source, "main")[0]) == [[1], [2]]


def test_names_that_are_read_after_a_condition() -> None:
    text = dedent("""\
    def forward(self, x):
        if x.a:
            one = 1
            for _ in range(2):
                if x.b:
                    two = one
        elif x.c:
            three = 3
        try:
            if x.d:
                four = 4
        finally:
            print(four)
        def inner():
            return five
        return six
    """)
    piece = parse_slice("a file", text.splitlines(keepends=True), 1, text.count("\n"))
    found = {}
    for part in piece.body:
        for node in walk(part):
            if isinstance(node, cst.If):
                after = read_after(node, piece)
                found[piece.code(node.test)] = after and after & {"one", "two", "three", "four", "five", "six"}
    outer = {"four", "five", "six"}
    assert found == {"x.a": outer, "x.b": {"one", "two", *outer}, "x.c": outer, "x.d": outer}


# --- a side that raises ----------------------------------------------------------------------------------------------


def test_a_guard_makes_no_path(sources: Sources) -> None:
    """A path that raises does not serve where another one does: the function is run once."""
    source = """
    def work(batch):
        if batch.first:
            raise ValueError("no")
        if not batch.second:
            message = "no"
            raise ValueError(message)
        elif batch.third:
            raise ValueError("no")
        return 5

    def main(batch):
        return work(batch)
    """
    assert entered(sources, source, "work") == ([5], 1)


def test_a_guard_whose_exception_is_caught(sources: Sources) -> None:
    """Then the path that raises serves as well."""
    source = """
    def work(batch):
        if batch.first:
            raise ValueError("no")
        return [5]

    def main(batch):
        try:
            return work(batch)
        except ValueError:
            return [6]
    """
    assert sorted(entered(sources, source, "work")[0]) == [[5], [6]]


def test_a_guard_behind_which_nothing_goes_on(interpret: Interpret) -> None:
    """What raises in any case raises, as what it is."""
    with pytest.raises(Raised, match="TypeError: never"):
        interpret(
            """
            def main(batch):
                if batch.first:
                    raise ValueError("no")
                raise TypeError("never")
            """,
            args=(UNKNOWN,),
        )


# --- rotary embeddings -----------------------------------------------------------------------------------------------


def test_which_rotary_embedding_it_is_keeps_no_paths_apart(sources: Sources) -> None:
    """It turns queries and keys; which norm it is does."""
    source = """
    class RotaryEmbedding: ...
    class YarnRotaryEmbedding: ...
    class RMSNorm: ...
    class GemmaRMSNorm: ...

    def main(batch):
        if batch.first:
            made = RotaryEmbedding()
        elif batch.second:
            made = YarnRotaryEmbedding()
        else:
            made = YarnRotaryEmbedding(2)
        return made
    """
    found, _ = entered(sources, source, "main")
    assert [(value, value.present) for value in found] == [(Unknown(), True)]
    norms = (
        source.replace("= RotaryEmbedding", "= RMSNorm")
        .replace("= Yarn", "= Gemma")
        .replace("RotaryEmbedding(", "RMSNorm(")
    )
    assert len(entered(sources, norms, "main")[0]) > 1


def test_a_rotary_embedding_or_none() -> None:
    with pytest.raises(NotJoinable):
        join(None, [Unknown("a rotary embedding", present=True)])
