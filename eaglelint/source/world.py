"""What modules hold and a run has changed: what a call can read besides its arguments."""

from __future__ import annotations

from typing import Any

__all__ = ["World"]

_MISSING = object()
_PLAIN = (bool, int, float, str, type(None))


class World:
    """The module variables, class attributes and objects of modules that are not as they were before the run."""

    def __init__(self) -> None:
        self.held: dict[int, Any] = {}  # the containers that belong to it, by identity
        self._before: dict[tuple[int, Any], tuple[Any, Any]] = {}  # the places that were changed: container and state
        self._kept: list[Any] = []  # an identity names a value only as long as the value is there
        self._key: frozenset[Any] | None = frozenset()

    @property
    def key(self) -> frozenset[Any]:
        """All that is changed: two moments with the same key are the same to whoever reads only this."""
        if self._key is None:
            changed = set()
            for place, (container, before) in list(self._before.items()):
                now = self._state(container, place[1])
                if now != before:
                    changed.add((place, now))
                    self.hold(container.get(place[1]) if isinstance(container, dict) else container)
            self._key = frozenset(changed)
        return self._key

    def hold(self, value: Any) -> None:
        """What a module holds, and what that holds, belongs to it from here on."""
        pending = [value]
        while pending:
            item = pending.pop()
            container = getattr(item, "attrs", item)  # an object's: its class is defined on top of this
            if not isinstance(container, list | set | dict) or id(container) in self.held:
                continue
            self.held[id(container)] = container
            pending += container.values() if isinstance(container, dict) else container
            pending.append(getattr(item, "payload", None))

    def changing(self, container: Any, key: Any) -> None:
        """Call before a change of what is held, of an item, or of a list or set as a whole; and after one is undone."""
        place = (id(container), key)
        if place not in self._before:
            self._before[place] = container, self._state(container, key)
        self._key = None

    def _state(self, container: Any, key: Any) -> Any:
        if isinstance(container, dict):
            return self._token(container.get(key, _MISSING))
        return tuple(self._token(item) for item in container)

    def _token(self, value: Any) -> Any:
        if isinstance(value, _PLAIN):
            return type(value), value
        self._kept.append(value)
        return id(value)
