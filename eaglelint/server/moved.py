"""What is known of an earlier text, moved along with what was typed since: for as long as the new one is checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from difflib import SequenceMatcher

from eaglelint.finding import Finding, Position, Span
from eaglelint.server.check import Checked

__all__ = ["moved"]


def moved(known: Checked, before: str, after: str) -> Checked:
    """The findings of a document where they stand in its new text. Edits are left out: they were made for the old one.

    Args:
        known: What a check of ``before`` found.
        before: The text that was checked.
        after: The text now.
    """
    if before == after:
        return known
    place = _mover(before.split("\n"), after.split("\n"))

    def span(old: Span) -> Span:
        if old.path != known.path:
            return old
        return Span(old.path, place(old.start, True), None if old.end is None else place(old.end, False))

    def finding(old: Finding) -> Finding:
        related = tuple(replace(row, span=span(row.span)) for row in old.related)
        return replace(old, span=span(old.span), related=related, edits=())

    return replace(known, findings=tuple(map(finding, known.findings)), syntax=(), facts=())


_Mover = Callable[[Position, bool], Position]
"""Where a place is now; the flag says that it is the start of something, which moves with what it starts."""


def _mover(before: list[str], after: list[str]) -> _Mover:
    """Lines that are the same move as they are; between them places move along in the text that was changed."""
    shorter = min(len(before), len(after))
    head = _most(shorter, lambda count: before[:count] == after[:count])
    tail = _most(shorter - head, lambda count: before[len(before) - count :] == after[len(after) - count :])
    middle = SequenceMatcher(None, before[head : len(before) - tail], after[head : len(after) - tail])
    gaps = []
    for kind, old_start, old_end, new_start, new_end in middle.get_opcodes():
        if kind != "equal":
            old, new = before[head + old_start : head + old_end], after[head + new_start : head + new_end]
            gaps.append((head + old_start, head + old_end, head + new_start, head + new_end, _within(old, new)))

    def place(position: Position, start: bool) -> Position:
        line, shift = position.line - 1, 0
        for old_start, old_end, new_start, new_end, within in gaps:
            if line < old_start:
                break
            if line < old_end:
                found = within(Position(line - old_start + 1, position.column), start)
                moved_line = min(found.line + new_start, len(after))
                return Position(moved_line, min(found.column, len(after[moved_line - 1]) + 1))
            shift = new_end - old_end
        return Position(position.line + shift, position.column)

    return place


def _within(old_lines: list[str], new_lines: list[str]) -> _Mover:
    """Places in a text of which a stretch was replaced by another."""
    before, after = "\n".join(old_lines), "\n".join(new_lines)
    shorter = min(len(before), len(after))
    head = _most(shorter, lambda count: before[:count] == after[:count])
    tail = _most(shorter - head, lambda count: before[len(before) - count :] == after[len(after) - count :])
    begin = _place(before, head)
    old_end, new_end = _place(before, len(before) - tail), _place(after, len(after) - tail)

    def place(position: Position, start: bool) -> Position:
        if position < begin or (position == begin and not (start and begin == old_end)):
            return position
        if position < old_end:
            return min(position, new_end)
        column = position.column + (new_end.column - old_end.column if position.line == old_end.line else 0)
        return Position(position.line + new_end.line - old_end.line, column)

    return place


def _most(limit: int, holds: Callable[[int], bool]) -> int:
    """The largest number up to a limit for which something holds that holds for all smaller ones."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def _place(text: str, offset: int) -> Position:
    return Position(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
