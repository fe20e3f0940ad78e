"""Units of work that are remembered: a result, and the answers of the file system that it rests on."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, TypeVar

from eaglelint import __version__
from eaglelint.cache.codec import decode, encode
from eaglelint.cache.store import Store
from eaglelint.source.snapshot import UNSETTLED, Dependency, Snapshot, fingerprint

__all__ = ["Unit", "active_store", "cache_directory", "caching", "keep_in", "remember"]

_T = TypeVar("_T")
_STORE: ContextVar[Store | None] = ContextVar("eaglelint cache", default=None)


def cache_directory() -> Path | None:
    """Where results are kept: never in what is scanned, which is only read.

    ``EAGLELINT_CACHE_DIR``, else the user's directory for caches; ``None`` where the user has no home.
    """
    named = os.environ.get("EAGLELINT_CACHE_DIR")
    if named:
        return Path(named).absolute()
    try:
        if sys.platform == "win32":
            base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
            return base / "eaglelint" / "Cache"
        if os.environ.get("XDG_CACHE_HOME", "").startswith("/"):
            return Path(os.environ["XDG_CACHE_HOME"]) / "eaglelint"
        return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "eaglelint"
    except RuntimeError:
        return None


@contextmanager
def caching(directory: Path | None) -> Iterator[None]:
    """While this lasts, ``remember`` keeps results in that directory; with ``None`` it keeps nothing."""
    open_already = _STORE.get()
    if directory is not None and open_already is not None and open_already.directory == directory:
        yield  # who opened it, closes it
        return
    store = Store(directory) if directory is not None else None
    token = _STORE.set(store)
    try:
        yield
    finally:
        _STORE.reset(token)
        if store is not None:
            store.close()


def active_store() -> Store | None:
    """Where ``remember`` keeps results now; a snapshot finds there which files were not touched."""
    return _STORE.get()


def keep_in(directory: Path | None) -> None:
    """Let ``remember`` keep results in that directory for the rest of this process: a server, or one that helps."""
    _STORE.set(Store(directory) if directory is not None else None)


class Unit(Generic[_T]):
    """A piece of work with a result that can be kept.

    Args:
        what: The name of the work.
        parts: All that the result depends on besides files and eaglelint itself: plain data.
        snapshot: Through which the work reads files, and nowhere else.
        notes: Sentences on files that could not be read, by the name that ``display`` gives the file: kept with the
            result and brought back with it.
    """

    def __init__(
        self,
        what: str,
        parts: Any,
        snapshot: Snapshot,
        *,
        notes: dict[str, str] | None = None,
        display: Callable[[Path], str] = Path.as_posix,
    ) -> None:
        self._store = _STORE.get()
        self._snapshot = snapshot
        self._notes = notes if notes is not None else {}
        self._display = display
        self._key = _key(what, parts) if self._store is not None else None

    def recall(self) -> tuple[_T] | None:
        """The result of an earlier run from which nothing that it read has changed, in a tuple; None without one."""
        if self._store is None or self._key is None:
            return None
        for body in self._store.bodies(self._key):
            unit = _parse(body)
            if unit is None or not _holds(unit, self._snapshot):
                continue
            try:
                value: _T = decode(unit["value"])
            except (ValueError, TypeError, AttributeError):
                continue
            self._snapshot.note(dependency for dependency, _ in _dependencies(unit))
            self._notes.update(unit["notes"])
            return (value,)
        return None

    def run(self, compute: Callable[[], _T]) -> _T:
        """Do the work, and keep the result."""
        if self._store is None or self._key is None:
            return compute()
        with self._snapshot.noting() as rests:
            result = compute()
        answers = {dependency: self._snapshot.answers[dependency] for dependency in sorted(rests)}
        if UNSETTLED in answers.values():
            return result
        names = {self._display(Path(path)) for what, path, _ in answers if what == "file"} if self._notes else set()
        try:
            value = encode(result)
        except TypeError:
            return result
        found = [[*dependency, answer] for dependency, answer in answers.items()]
        unit = {
            "rests": found,
            "states": _states(answers, self._snapshot),
            "notes": {name: text for name, text in self._notes.items() if name in names},
            "value": value,
        }
        variant = blake2b(_json(found), digest_size=16).digest()
        self._store.put(self._key, variant, _json(unit))
        return result


def remember(
    what: str,
    parts: Any,
    snapshot: Snapshot,
    compute: Callable[[], _T],
    *,
    notes: dict[str, str] | None = None,
    display: Callable[[Path], str] = Path.as_posix,
) -> _T:
    """The result of ``compute``, kept or now; see ``Unit``."""
    unit: Unit[_T] = Unit(what, parts, snapshot, notes=notes, display=display)
    found = unit.recall()
    return unit.run(compute) if found is None else found[0]


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True, default=_plain).encode()


def _plain(value: Any) -> Any:
    """A frozen dataclass among the parts of a key: its name and its fields."""
    if not is_dataclass(value) or isinstance(value, type):
        raise TypeError(type(value).__name__)
    return [type(value).__name__, *(getattr(value, field.name) for field in fields(value))]


def _key(what: str, parts: Any) -> bytes | None:
    """None where the parts are no plain data, or nested too deeply: then nothing is kept."""
    try:
        text = _json([_installation(), what, parts])
    except (TypeError, ValueError, RecursionError):
        return None
    return blake2b(text, digest_size=16).digest()


@cache
def _installation() -> str:
    """A fingerprint of eaglelint itself, whose code decides on results, and of what it reads source with."""
    found = [__version__, sys.version, platform.python_implementation(), str(sys.flags.optimize)]
    package = Path(__file__).resolve().parent.parent
    for path in sorted(package.rglob("*")):
        if path.suffix in (".py", ".toml", ".json"):
            found += [path.relative_to(package).as_posix(), fingerprint(path.read_bytes())]
    libcst = find_spec("libcst")
    if libcst is not None and libcst.origin is not None:
        version = Path(libcst.origin).with_name("_version.py")
        found.append(version.read_text("utf-8") if version.is_file() else libcst.origin)
    return fingerprint("\0".join(found).encode())


def _parse(body: bytes) -> dict[str, Any] | None:
    try:
        unit = json.loads(body)
    except ValueError:
        return None
    wanted = {"rests", "states", "notes", "value"}
    return unit if isinstance(unit, dict) and unit.keys() >= wanted else None


def _dependencies(unit: Mapping[str, Any]) -> Iterator[tuple[Dependency, str]]:
    for what, path, name, answer in unit["rests"]:
        yield (what, path, name), answer


def _holds(unit: Mapping[str, Any], snapshot: Snapshot) -> bool:
    """Whether every question that the result rests on has the same answer now."""
    states: dict[str, str] = unit["states"]
    for dependency, answer in _dependencies(unit):
        what, path, _ = dependency
        if what == "defined" and dependency not in snapshot.answers and snapshot.state(path) == states.get(path):
            snapshot.answers[dependency] = answer  # no file in there has changed
        if snapshot.answer(dependency) != answer:
            return False
    return True


def _states(answers: Mapping[Dependency, str], snapshot: Snapshot) -> dict[str, str]:
    return {path: snapshot.state(path) for path in {path for what, path, _ in answers if what == "defined"}}
