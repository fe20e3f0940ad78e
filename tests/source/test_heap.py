"""Undoing and redoing changes: both sides of a condition are tried on the same state."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eaglelint.source.heap import Heap

keys = st.sampled_from("abc")
values = st.integers(0, 9)
changes = st.lists(
    st.one_of(
        st.tuples(st.just("set"), keys, values),
        st.tuples(st.just("delete"), keys, values),
        st.tuples(st.just("append"), keys, values),
        st.tuples(st.just("clear"), keys, values),
        st.tuples(st.just("add"), keys, values),
    ),
    max_size=12,
)


def apply(heap: Heap, state: tuple[dict[str, int], list[int], set[int]], change: tuple[str, str, int]) -> None:
    mapping, sequence, collection = state
    kind, key, value = change
    if kind == "set":
        heap.set(mapping, key, value)
    elif kind == "delete":
        heap.delete(mapping, key)
    elif kind == "append":
        heap.touch(sequence)
        sequence.append(value)
    elif kind == "clear":
        heap.touch(sequence)
        sequence.clear()
    else:
        heap.touch(collection)
        collection.add(value)


def copied(state: tuple[dict[str, int], list[int], set[int]]) -> Any:
    return dict(state[0]), list(state[1]), set(state[2])


@given(changes, changes)
def test_rollback_restores_and_replay_redoes(before: list[Any], after: list[Any]) -> None:
    """Rolled back, everything is as it was at the mark; replayed, it is as it was before the rollback."""
    heap = Heap()
    state: tuple[dict[str, int], list[int], set[int]] = ({"a": 0}, [1], {2})
    for change in before:
        apply(heap, state, change)
    mark, expected = heap.mark(), copied(state)
    for change in after:
        apply(heap, state, change)
    changed = copied(state)
    redo = heap.rollback(mark)
    assert copied(state) == expected
    heap.replay(redo)
    assert copied(state) == changed
    heap.rollback(mark)
    assert copied(state) == expected


def test_changes_to_what_is_new_do_not_count() -> None:
    """A list made after the mark is part of the result, not of what a path leaves behind."""
    heap = Heap()
    old: list[int] = []
    mark = heap.mark()
    new = heap.born([])
    for container in (old, new):
        heap.touch(container)
        container.append(1)
    redo = heap.rollback(mark)
    assert [place[0] for place in heap.net(redo, mark)] == [id(old)]
