"""States that are captured while the sum over tensor-parallel ranks is still to come.

Some layers put their last all-reduce off, to fuse it with the next layer's norm, and mark their result:
``hidden_states._sglang_needs_allreduce_fusion = True``. A model that adds the residual to that result and captures the
sum before the next layer has run captures one rank's share. A syntactic fact: the mark, and a captured sum in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from eaglelint.engines.base import EngineSource
from eaglelint.finding import Position, Span
from eaglelint.survey.facts import ClassFacts, Place, UnreducedCapture

__all__ = ["unreduced_captures"]

_MARK = re.compile(r"^[ \t]*(\w+\.\w*all_?reduce\w*[ \t]*=[ \t]*True)\b", re.M)
_SUM = re.compile(r"\w \+ \w*residual\b|\bresidual \+ \w")


def unreduced_captures(source: EngineSource, classes: Iterable[ClassFacts]) -> Iterator[UnreducedCapture]:
    """Each place that captures a sum with what a layer of the same file may have left unreduced."""
    marks: dict[str, Place | None] = {}
    seen: set[tuple[str, Place]] = set()
    for cls in classes:
        for run in cls.runs:
            for place in run.captures:
                path = place.span.path
                if not _SUM.search(place.code) or (cls.name, place) in seen:
                    continue
                seen.add((cls.name, place))
                if path not in marks:
                    marks[path] = _mark(source, path)
                mark = marks[path]
                if mark is not None:
                    yield UnreducedCapture(cls.name, place, mark)


def _mark(source: EngineSource, path: str) -> Place | None:
    """Where a file says of a state that its all-reduce is put off."""
    file = source.tree.relative_to / path
    if not source.tree.is_file(file):
        return None
    text = source.tree.read(file).decode("utf-8", "replace")
    found = _MARK.search(text)
    if found is None:
        return None
    line = text.count("\n", 0, found.start(1)) + 1
    column = found.start(1) - text.rfind("\n", 0, found.start(1))
    start = Position(line, column)
    return Place(Span(path, start, Position(line, column + len(found[1]))), found[1])
