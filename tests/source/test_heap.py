"""The heap undoes and redoes changes: whatever was done, in whatever order."""

from __future__ import annotations

import random
from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from eaglelint.source.heap import CacheList, Heap


class World:
    """Containers, and changes to them at random."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.heap = Heap()
        self.dicts: list[dict[Any, Any]] = [{}, {"a": 1}]
        self.lists: list[list[Any]] = [[], [1, 2]]
        self.sets: list[set[Any]] = [set(), {3}]

    def state(self) -> Any:
        return deepcopy((self.dicts, self.lists, self.sets))

    def change(self, times: int) -> None:
        for _ in range(times):
            key, value = self.random.choice("abc"), self.random.randrange(9)
            match self.random.randrange(6):
                case 0:
                    self.heap.set(self.random.choice(self.dicts), key, value)
                case 1:
                    self.heap.delete(self.random.choice(self.dicts), key)
                case 2:
                    chosen = self.random.choice(self.lists)
                    self.heap.touch(chosen)
                    chosen.append(value)
                case 3:
                    chosen = self.random.choice(self.lists)
                    self.heap.touch(chosen)
                    chosen.reverse()
                case 4:
                    grown = self.random.choice(self.sets)
                    self.heap.touch(grown)
                    grown.add(value)
                case 5:
                    emptied = self.random.choice(self.sets)
                    self.heap.touch(emptied)
                    emptied.clear()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 12), min_size=1, max_size=4))
def test_back_and_forth(seed: int, steps: list[int]) -> None:
    """Rolling back restores each mark exactly, replaying restores what was there; nested as deep as one likes."""
    world = World(seed)
    marks = []
    for step in steps:
        marks.append((world.heap.mark(), world.state()))
        world.change(step)
    end = world.state()
    undone = []
    for mark, before in reversed(marks):
        undone.append(world.heap.rollback(mark))
        assert world.state() == before
    for redo in reversed(undone):
        world.heap.replay(redo)
    assert world.state() == end
    world.heap.rollback(marks[0][0])
    assert world.state() == marks[0][1]


def test_what_a_path_made_stays_as_it_left_it() -> None:
    """A list that did not exist at the mark is nobody's there; going back leaves it, to be compared."""
    heap = Heap()
    old: list[int] = []
    mark = heap.mark()
    new = heap.born([])
    for container in (old, new):
        heap.touch(container)
        container.append(1)
    redo = heap.rollback(mark)
    assert (old, new) == ([], [1])
    heap.replay(redo)
    assert (old, new) == ([1], [1])
    assert heap.net(redo, mark) == {(id(old), ""): [1]}


def test_a_later_mark_knows_it() -> None:
    """It was there then, and so it is restored."""
    heap = Heap()
    made = heap.born([])
    mark = heap.mark()
    heap.touch(made)
    made.append(1)
    heap.rollback(mark)
    assert made == []


def test_kept_containers_are_restored_on_every_path() -> None:
    """What is remembered for other paths keeps the contents it was made with, and loses what comes after."""
    heap = Heap()
    mark = heap.mark()
    made = heap.born([])
    heap.touch(made)
    made.append("made")
    heap.settle([made], mark)
    heap.touch(made)
    made.append("later")
    heap.rollback(mark)
    assert made == ["made"]


def test_notes_do_not_count() -> None:
    """Caches and trails are undone, but make no difference between two paths."""
    heap = Heap()
    trail: list[int] = CacheList()
    cache = heap.cache()
    mark = heap.mark()
    heap.touch(trail)
    trail.append(1)
    heap.set(cache, "a", 1)
    assert heap.items_changed(mark) == ([], [])
    redo = heap.rollback(mark)
    assert (trail, cache, heap.net(redo, mark)) == ([], {}, {})
