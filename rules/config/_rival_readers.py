"""Ids at a place where one function of an engine looks, and the one whose ids are captured does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._messages import joined_with_and, key_phrase
from .._source import related

if TYPE_CHECKING:
    from eaglelint.survey.facts import EngineFacts, KeyRead, Reader

__all__ = ["rival_readers"]


def rival_readers(rule: Rule, facts: Facts) -> Iterator[Finding]:
    """One finding for each function that decides on the captures and looks in fewer places than another."""
    for engine in facts.engines:
        for reader in engine.readers:
            missed = _missed(engine, reader) if reader.decides else {}
            if missed:
                yield _finding(rule, engine, reader, missed)


def _missed(engine: EngineFacts, reader: Reader) -> dict[tuple[str, ...], list[tuple[Reader, KeyRead]]]:
    """The key paths of keys that this function knows, at which only another one looks."""
    mine = {read.path for read in reader.reads}
    keys = {path[-1] for path in mine}
    found: dict[tuple[str, ...], list[tuple[Reader, KeyRead]]] = {}
    for other in engine.readers:
        for read in other.reads:
            if other is not reader and read.path[-1] in keys and read.path not in mine:
                found.setdefault(read.path, []).append((other, read))
    return found


def _finding(
    rule: Rule, engine: EngineFacts, reader: Reader, missed: dict[tuple[str, ...], list[tuple[Reader, KeyRead]]]
) -> Finding:
    rivals = [rival for group in missed.values() for rival in group]
    others = joined_with_and(dict.fromkeys(other.name for other, _ in rivals))
    looks = joined_with_and(dict.fromkeys(key_phrase(read.path) for read in reader.reads))
    return rule.finding(
        f"{reader.name}, whose ids are captured, looks in {looks}; ids in "
        f"{joined_with_and(map(key_phrase, missed), 'or')}, where {others} "
        f"{'look' if len(rivals) > 1 else 'looks'}, are never captured",
        reader.place.span,
        confidence="certain",
        severity="warning",
        annotation="decides which layers are captured",
        related=tuple(row for _, read in rivals for row in related("also read", read.place)),
        help="Write the ids where every reader looks, or in all places.",
        identity=(engine.label, reader.name),
    )
