"""Sources of engines that stay open: from one pipeline of a scan to the next, and in a server from scan to scan."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eaglelint.serving import EngineHandle

__all__ = ["OpenSources", "open_sources", "sharing_sources"]


@dataclass(slots=True)
class OpenSources:
    """What is open, by what names it; ``lasting`` where files may change while it stays open."""

    lasting: bool = False
    handles: dict[Hashable, EngineHandle] = field(default_factory=dict)


_OPEN: ContextVar[OpenSources | None] = ContextVar("eaglelint open sources", default=None)


def open_sources() -> OpenSources:
    """Where an opened source is looked for, and kept."""
    return _OPEN.get() or OpenSources()


@contextmanager
def sharing_sources(sources: OpenSources | None = None) -> Iterator[None]:
    """While this lasts, a source that is opened again is the one that was opened before.

    Args:
        sources: What is open already; for a server, which gives them to each of its scans.
    """
    if sources is None and _OPEN.get() is not None:
        yield
        return
    token = _OPEN.set(sources or OpenSources())
    try:
        yield
    finally:
        _OPEN.reset(token)
