"""Undoable mutation, so that both sides of an unknown condition can be tried and compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eaglelint.source.world import World

__all__ = ["CacheDict", "CacheList", "Heap", "Lazily", "Mark", "Redo", "is_held"]

_MISSING = object()

Redo = list[tuple[Any, Any, Any]]
Container = list[Any] | set[Any]


class CacheDict(dict[Any, Any]):
    """What can be computed again: attributes read from __init__, counters of names."""


@dataclass(frozen=True, slots=True)
class Lazily:
    """A place in a cache that holds an object: what two paths did to theirs can differ."""

    key: Any


class CacheList(list[Any]):
    """A list of notes about a run, which is not part of its outcome."""


Mark = tuple[int, int]
"""A moment to go back to: how long the log was, and a time, before which containers were made that existed then."""


class Heap:
    """A log of changes to dicts, lists and sets. Whatever the interpreter mutates, it mutates through here."""

    def __init__(self) -> None:
        self._log: list[tuple[Any, Any, Any]] = []
        self._born: dict[int, tuple[int, Any]] = {}
        self._objects: dict[int, Any] = {}
        self._places: dict[Any, Any] = {}
        self._names: dict[int, tuple[Any, Any]] = {}
        self._time = 0
        self.world = World()

    def mark(self) -> Mark:
        self._time += 1
        return len(self._log), self._time

    def born(self, container: Any, *, of_object: bool = False) -> Any:
        """Note that a container is new: going back to a time before it leaves it as it is, for nobody there has it."""
        self._born[id(container)] = (self._time, container)
        if of_object:
            self._objects[id(container)] = container
        return container

    def cache(self) -> dict[Any, Any]:
        """A dict whose changes are undone like all others, but make no difference between two outcomes."""
        return CacheDict()

    def set(self, container: dict[Any, Any], key: Any, value: Any) -> None:
        if id(container) in self.world.held:
            self.world.changing(container, key)
        self._log.append((container, key, container.get(key, _MISSING)))
        container[key] = value

    def delete(self, container: dict[Any, Any], key: Any) -> None:
        if id(container) in self.world.held:
            self.world.changing(container, key)
        self._log.append((container, key, container.get(key, _MISSING)))
        container.pop(key, None)

    def touch(self, container: Container) -> None:
        """Call before changing a list or set in place."""
        if id(container) in self.world.held:
            self.world.changing(container, None)
        self._log.append((container, _MISSING, list(container)))

    def rollback(self, mark: Mark) -> Redo:
        """Undo everything since ``mark``; returns what ``replay`` needs to do it again."""
        redo: Redo = []
        undone = self._log[mark[0] :]
        if not undone:
            return redo
        del self._log[mark[0] :]
        born = self._born
        for container, key, old in reversed(undone):
            birth = born.get(id(container))
            if birth is not None and birth[0] >= mark[1] and birth[1] is container:
                continue  # it keeps what the undone path left in it, to be compared and taken up with that path
            if id(container) in self.world.held:
                self.world.changing(container, None if key is _MISSING else key)
            if key is _MISSING:
                redo.append((container, key, list(container)))
                _refill(container, old)
            else:
                redo.append((container, key, container.get(key, _MISSING)))
                if old is _MISSING:
                    container.pop(key, None)
                else:
                    container[key] = old
        redo.reverse()
        return redo

    def replay(self, redo: Redo) -> None:
        for container, key, new in redo:
            if key is _MISSING:
                self.touch(container)
                _refill(container, new)
            elif new is _MISSING:
                self.delete(container, key)
            else:
                self.set(container, key, new)

    def net(self, redo: Redo, mark: Mark) -> dict[tuple[Any, Any], Any]:
        """The final value of every place that existed at ``mark`` and was changed since."""
        final: dict[tuple[Any, Any], Any] = {}
        for container, key, new in redo:
            if type(container) is CacheList or self._is_younger(container, mark):
                continue
            if type(container) is CacheDict:
                if hasattr(new, "lazy"):
                    final[self.name_of(container), Lazily(key)] = new
                continue
            place = (self.name_of(container), "" if key is _MISSING else key)
            self._places[place] = container
            final[place] = None if new is _MISSING else new
        return final

    def places_changed(self, mark: Mark) -> frozenset[tuple[int, Any]]:
        """The places that existed at ``mark`` and were changed since; of a list or set the whole."""
        changes = self._of_older(self._log[mark[0] :], mark)
        return frozenset((id(container), None if key is _MISSING else key) for container, key, _ in changes)

    def items_changed(self, mark: Mark) -> tuple[Redo, Redo] | None:
        """The items of older dicts that were changed since ``mark``, as they were and as they are.

        None where a list or set was changed, or a dict that only this path has.
        """
        first = self._items(self._log[mark[0] :], mark)
        if first is None:
            return None
        before = [change for change in first if not is_held(*change)]
        return before, _as_they_are(before)

    def items_to_change(self, redos: list[Redo], mark: Mark) -> Redo | None:
        """The items of older dicts that these changes are about, as they are; None where they change anything else."""
        first = self._items([change for redo in redos for change in redo], mark)
        return None if first is None else _as_they_are(first)

    def _items(self, changes: Redo, mark: Mark) -> Redo | None:
        """The first change of each item of an older dict; None where anything else is changed."""
        first: dict[tuple[int, Any], tuple[Any, Any, Any]] = {}
        for container, key, value in self._of_older(changes, mark):
            if key is _MISSING or self.is_new(container):
                return None
            first.setdefault((id(container), key), (container, key, value))
        return list(first.values())

    def _of_older(self, changes: Redo, mark: Mark) -> Redo:
        """Those of containers that existed at ``mark``, without caches."""
        return [
            change
            for change in changes
            if not isinstance(change[0], CacheDict | CacheList) and not self._is_younger(change[0], mark)
        ]

    def settle(self, containers: list[Any], mark: Mark) -> None:
        """Keep new containers beyond the path that made them: from now on they are as old as any, and as they are."""
        for container in containers:
            self._born.pop(id(container), None)
        settled = {id(container) for container in containers}
        self._log[mark[0] :] = [entry for entry in self._log[mark[0] :] if id(entry[0]) not in settled]

    def container(self, place: tuple[Any, Any]) -> Any:
        """What a place of a net is in."""
        return self._places[place]

    def is_attribute(self, place: tuple[Any, Any]) -> bool:
        """Whether a place of a net is an attribute of an object."""
        container = self._places[place]
        return self._objects.get(id(container)) is container

    def name(self, container: Any, name: Any) -> None:
        """Give a container a name, under which its changes are noted, so that they compare with those of its like."""
        self._names[id(container)] = (name, container)

    def name_of(self, container: Any) -> Any:
        """The name of a container, its identity where it has none."""
        named = self._names.get(id(container))
        return named[0] if named is not None and named[1] is container else id(container)

    def is_new(self, container: Any) -> bool:
        """Whether a container belongs to the path that made it."""
        birth = self._born.get(id(container))
        return birth is not None and birth[1] is container

    def _is_younger(self, container: Any, mark: Mark) -> bool:
        birth = self._born.get(id(container))
        return birth is not None and birth[1] is container and birth[0] >= mark[1]


def _as_they_are(items: Redo) -> Redo:
    return [(container, key, container.get(key, _MISSING)) for container, key, _ in items]


def is_held(container: Any, key: Any, value: Any) -> bool:
    """Whether a dict holds just that value under a key."""
    return container.get(key, _MISSING) is value


def _refill(container: Any, items: list[Any]) -> None:
    if isinstance(container, list):
        container[:] = items
    else:
        container.clear()
        container.update(items)
