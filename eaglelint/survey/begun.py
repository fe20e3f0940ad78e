"""What a survey begins at once: a fact that needs no interpreter, found beside the import of it.

Where an engine joins captured states that are None, text and syntax trees tell. A process of its own looks for that
while this one imports what runs code, and finds the target classes, both of which only one process can do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from eaglelint.cache.store import Store
from eaglelint.cache.units import active_store
from eaglelint.forks import begin
from eaglelint.recursion import deep_recursion
from eaglelint.source.snapshot import Dependency, Snapshot
from eaglelint.survey.facts import JoinedWhileNone

__all__ = ["BegunJoins", "begin_joins"]

_MANY = 500  # files: in fewer, looking takes no longer than starting a process
_Result = tuple[tuple[JoinedWhileNone, ...], Mapping[Dependency, str]]


@dataclass(frozen=True, slots=True)
class BegunJoins:
    """The joins in a package, which are being looked for."""

    package: Path
    _result: Callable[[], _Result]

    def take(self, snapshot: Snapshot) -> tuple[JoinedWhileNone, ...]:
        """Wait for them; what of the file system was seen for that, is seen in ``snapshot`` now."""
        found, answers = self._result()
        snapshot.adopt(answers)
        return found


def begin_joins(package: Path, relative_to: Path, snapshot: Snapshot) -> BegunJoins | None:
    """Begin to look for joins; None where that is no gain."""

    def search() -> _Result:
        from eaglelint.survey.joined_none import joined_while_none

        kept = active_store()
        own = None if kept is None else Store(kept.directory)  # a fork opens the file for itself
        snapshot.stamps = own
        try:
            with snapshot.noting() as rests, deep_recursion():
                found = joined_while_none(package, relative_to, snapshot)
        finally:
            snapshot.stamps = kept
            if own is not None:
                own.close()
        return found, {asked: snapshot.answers[asked] for asked in rests}

    if len(snapshot.files(package)) < _MANY:
        return None
    result = begin(search)
    return None if result is search else BegunJoins(package, result)
