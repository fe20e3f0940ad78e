"""One run: both sides of an unknown condition, what they leave behind, and the bounds of it all."""

from __future__ import annotations

from typing import Any

import pytest

from eaglelint.source.machine import Budget, BudgetExceeded, Machine, Outcome, Raised, TooLong
from eaglelint.source.same import NotJoinable, join, same
from eaglelint.source.tree import SourceTree
from eaglelint.source.values import Branch, Instance, Tensor, Unknown
from tests.source.conftest import call_main

A, B = ("f", "a"), ("f", "b")


@pytest.fixture
def machine() -> Machine:
    return Machine(SourceTree(()))


def decide(machine: Machine, key: tuple[str, str]) -> bool:
    return bool(machine.decide(key, (f"when not {key[1]}", f"when {key[1]}"), None))


def test_paths_that_agree_are_one(machine: Machine) -> None:
    """Three conditions, one value, no change: one outcome."""
    outcomes = machine.explore(lambda: [decide(machine, ("f", name)) for name in "abc"] and 5, None)
    assert [outcome.value for outcome in outcomes] == [5]


def test_paths_that_differ_stay_apart(machine: Machine) -> None:
    """By what they return, each with the choices that lead there, the first choices first."""
    outcomes = machine.explore(lambda: [1] if decide(machine, A) else [2], None)
    assert [(o.value, [d.text for d in o.decisions]) for o in outcomes] == [([2], ["when not a"]), ([1], ["when a"])]


def test_paths_that_leave_something_behind(machine: Machine) -> None:
    """A change to what was there before tells two paths apart; nothing of either stays until one is taken."""
    kept: list[int] = [0]

    def run() -> None:
        machine.heap.touch(kept)
        kept.append(1 if decide(machine, A) else 2)

    outcomes = machine.explore(run, None)
    assert (len(outcomes), kept) == (2, [0])
    machine.explore(lambda: machine.take(outcomes, ("f", "outcome"), None), None)
    assert kept == [0]


def test_flags_that_paths_leave_differently(machine: Machine) -> None:
    """One outcome: neither the flag that one of them sets nor the one that both set is known from there on."""
    thing = machine.new_instance(Instance(None, name="thing"))

    def run() -> None:
        side = decide(machine, A)
        machine.heap.set(thing.attrs, "both", side)
        if side:
            machine.heap.set(thing.attrs, "one", 1.5)

    outcomes = machine.explore(run, None)
    assert len(outcomes) == 1
    assert (thing.attrs["both"], thing.attrs["one"]) == (Unknown(), Unknown())


def test_new_containers_tell_paths_apart_by_what_they_hold(machine: Machine) -> None:
    """A list that each path makes for itself is compared as the path left it."""

    def run() -> list[int]:
        made: list[int] = machine.heap.born([])
        machine.heap.touch(made)
        made.append(1 if decide(machine, A) else 2)
        return made

    assert [outcome.value for outcome in machine.explore(run, None)] == [[2], [1]]


def test_one_condition_is_one_choice(machine: Machine) -> None:
    """Asked twice on a path, it has one answer; so two questions give two outcomes, not four."""
    outcomes = machine.explore(lambda: [decide(machine, A), decide(machine, A)], None)
    assert [outcome.value for outcome in outcomes] == [[False, False], [True, True]]


def test_choices_hold_in_inner_calls(machine: Machine) -> None:
    """A call inside a path knows what the path has chosen."""

    def run() -> list[Any]:
        first = decide(machine, A)
        inner = machine.explore(lambda: decide(machine, A), None)
        return [first, *(outcome.value for outcome in inner)]

    assert [outcome.value for outcome in machine.explore(run, None)] == [[False, False], [True, True]]


def test_a_path_that_raises_serves_nothing(machine: Machine) -> None:
    """Beside one that returns, it is left out; inside try it counts; alone it is the outcome."""

    def run() -> int:
        if decide(machine, A):
            raise Raised("ValueError", "no", None)
        return 1

    assert [outcome.value for outcome in machine.explore(run, None)] == [1]
    machine.catching = 1
    assert [outcome.raised is None for outcome in machine.explore(run, None)] == [True, False]
    machine.catching = 0
    with pytest.raises(Raised):
        machine.take(machine.explore(fail, None), A, None)


def fail() -> None:
    raise Raised("KeyError", "x", None)


def test_trying_out_leaves_nothing(machine: Machine) -> None:
    """The result and the changes are told, and undone; a fork or an exception gives up."""
    kept: dict[str, int] = {}

    def run() -> int:
        machine.heap.set(kept, "a", 1)
        return 7

    attempt = machine.try_out(run)
    assert attempt is not None
    assert (attempt[0], attempt[2], kept) == (7, {(id(kept), "a"): 1}, {})
    assert machine.try_out(lambda: decide(machine, A)) is None
    assert machine.try_out(fail) is None


def test_memory_belongs_to_the_choices_that_went_into_it(machine: Machine) -> None:
    """What was computed without a choice holds on all paths, the rest on paths of the same choices."""
    found = []

    def run() -> bool:
        chosen = decide(machine, B)
        for key, compute in (("plain", lambda: 1), ("chosen", lambda: decide(machine, B))):
            if machine.recall(key) is None:
                value, basis = machine.on_basis(compute)
                machine.remember(key, ("value", value), basis)
                found.append((key, chosen))
        return chosen

    machine.explore(run, None)
    assert found == [("plain", False), ("chosen", False), ("chosen", True)]


def test_memory_of_what_belongs_to_one_request(machine: Machine) -> None:
    """What was read of an attribute that the request gave, or noted, is computed again for the next one."""
    config = machine.new_instance(Instance(None, name="config"))
    read = []
    for ids in ([1], [2]):
        machine.begin()
        mark = machine.heap.mark()
        machine.heap.set(config.attrs, "ids", ids)
        machine.give(mark)
        for key, compute in (("ids", lambda: machine.read_attribute(config.attrs, "ids")), ("other", lambda: 7)):
            for _ in range(2):
                if machine.recall(key) is None:
                    value, basis = machine.on_basis(compute)
                    machine.remember(key, value, basis)
                    read.append(value)
        machine.heap.rollback(mark)
    assert read == [[1], 7, [2]]


def test_what_a_remembered_call_changed_is_done_again(machine: Machine) -> None:
    """An item of a dict that was there before, from the same beginning; from another one nothing is remembered."""
    table: dict[str, int] = {}

    def count() -> list[Outcome]:
        computed.append(1)
        return machine.explore(lambda: machine.heap.set(table, "n", table.get("n", 0) + 1), None)

    def call() -> None:
        machine.outcomes_of("call", count, "call")

    computed: list[int] = []
    found = []
    for _ in range(2):
        mark = machine.heap.mark()
        call()
        found.append((dict(table), len(computed)))
        call()
        found.append((dict(table), len(computed)))
        machine.heap.rollback(mark)
    assert table == {}
    assert found == [({"n": 1}, 1), ({"n": 2}, 2), ({"n": 1}, 2), ({"n": 2}, 2)]


def test_budgets(machine: Machine) -> None:
    """Steps of a run, steps of one value, outcomes of one call: each has its end."""
    machine.budget = Budget(steps=10, outcomes=4)
    with pytest.raises(TooLong):
        machine.within(3, lambda: [machine.step() for _ in range(5)])
    with pytest.raises(BudgetExceeded, match="more than 4 different outcomes"):
        machine.explore(lambda: [decide(machine, ("f", name)) for name in "abcdef"], None)
    with pytest.raises(BudgetExceeded, match="more than 10 steps"):
        for _ in range(20):
            machine.step()


def test_a_value_that_takes_too_long_leaves_nothing(machine: Machine) -> None:
    """Its changes are undone with it."""
    kept: list[int] = []

    def run() -> None:
        machine.heap.touch(kept)
        kept.append(1)
        for _ in range(5):
            machine.step()

    with pytest.raises(TooLong):
        machine.within(3, run)
    assert kept == []


def test_deep_calls_end(sources: Any) -> None:
    """Endless recursion is given up, not a crash."""
    tree = sources({"program.py": "def f(n):\n    return f(n + 1)\n\ndef main():\n    return f(0)\n"})
    found = call_main(tree)
    assert isinstance(found, Unknown)
    assert found.why == "the call of f takes too long to follow"


# --- sameness ------------------------------------------------------------------------------------------------------


TENSOR = Tensor.of(Branch(0, 0, "mlp"))


@pytest.mark.parametrize(
    ("left", "right", "alike"),
    [
        ([1, 2], [1, 2], True),
        ([1, 2], (1, 2), False),
        (1, True, False),
        ({"a": [1]}, {"a": [1]}, True),
        ({"a": 1}, {"b": 1}, False),
        (Unknown("one"), Unknown("another"), True),
        (TENSOR, Tensor.of(Branch(0, 0, "mlp")), True),
        (TENSOR, Tensor.of(Branch(1, 0, "mlp")), False),
        (Instance(None, name="x", attrs={"a": 1}), Instance(None, name="x", attrs={"a": 1}), True),
        (Instance(None, name="x", attrs={"a": 1}), Instance(None, name="x", attrs={"a": 2}), False),
        (Instance(None, name="x"), Instance(None, name="y"), False),
    ],
)
def test_same(left: Any, right: Any, alike: bool) -> None:
    """By what values mean; two unknown ones agree."""
    assert (same(left, right), same(right, left)) == (alike, alike)


def test_same_on_circles() -> None:
    """Objects that hold themselves."""
    one, two = Instance(None, name="x"), Instance(None, name="x")
    one.attrs["me"], two.attrs["me"] = one, two
    assert same(one, two)


@pytest.mark.parametrize(
    ("left", "right"), [(True, False), ("a", "b"), (1.0, 2.0), (None, "x"), (Unknown(), True), ((1, True), (1, False))]
)
def test_plain_values_become_unknown(left: Any, right: Any) -> None:
    """What cannot carry a state or steer a loop does not keep two paths apart."""
    joined = join(left, right)
    assert isinstance(joined[1] if isinstance(joined, tuple) else joined, Unknown)


@pytest.mark.parametrize(
    ("left", "right"), [(1, 2), ([1], [2]), (TENSOR, None), (TENSOR, Unknown()), ((1,), (1, 2)), ({1: 2}, {1: 3})]
)
def test_values_that_matter_do_not_join(left: Any, right: Any) -> None:
    """Numbers, lists and states keep the paths apart."""
    with pytest.raises(NotJoinable):
        join(left, right)
