"""The cache file: sqlite, shared by all scans of a user; whatever is wrong with it, it is a miss and never an error."""

from __future__ import annotations

import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["MAX_BYTES", "Store"]

MAX_BYTES = 64 * 1024 * 1024
"""Above this size the results that were not used for longest are dropped."""

_FORM = 1  # of the tables
_VARIANTS = 4  # results of one unit that are kept, for trees that go back and forth (branches)
_BUSY_MS = 3_000
_RACY_NS = 2_000_000_000  # the coarsest clock of a file system: FAT's
_DAY_NS = 86_400 * 1_000_000_000

_TABLES = """
create table if not exists units (
    key blob not null, variant blob not null, used integer not null, body blob not null, primary key (key, variant)
) without rowid;
create index if not exists units_by_use on units (used);
create table if not exists stamps (
    path blob primary key, size integer, mtime integer, ctime integer, inode integer, mark text, sum blob, used integer
) without rowid;
"""

_STAMP = "path, size, mtime, ctime, inode, mark, sum"

_T = TypeVar("_T")


class Store:
    """Bodies of units by key, and what ``stat`` said of files when they were read.

    Every row carries a checksum over its key, so that a damaged file is a miss. Each process has a connection of its
    own; write-ahead logging lets one write while others read, and a process that is killed leaves whole rows behind.
    """

    def __init__(self, directory: Path, *, max_bytes: int = MAX_BYTES) -> None:
        self.directory = directory
        self.max_bytes = max_bytes
        self._path = directory / "cache.sqlite"
        self._connection: sqlite3.Connection | None = None
        self._pid = 0
        self._unusable = False
        self._today = _now() // _DAY_NS
        self._used: set[tuple[bytes, bytes]] = set()
        self._noted: dict[str, tuple[int, int, int, int, str]] = {}
        self._expected: dict[bytes, tuple[Any, ...]] = {}

    # --- units ---

    def bodies(self, key: bytes) -> list[bytes]:
        """The results that are kept of a unit, the latest first."""
        rows: list[tuple[bytes, int, object]] = self._try(
            lambda db: db.execute(
                "select variant, used, body from units where key = ? order by used desc", (key,)
            ).fetchall(),
            [],
        )
        found: list[bytes] = []
        for variant, used, body in rows:
            text = _opened(key + variant, body)
            if text is None:
                self._try(lambda db, v=variant: _forget(db, key, v), None)  # type: ignore[misc]
                continue
            if used != self._today:
                self._used.add((key, variant))
            found.append(text)
        return found

    def put(self, key: bytes, variant: bytes, body: bytes) -> None:
        """Keep a result, and the stamps that were noted meanwhile."""
        self._write([(key, variant, body)])

    # --- stamps ---

    def known(self, path: str, stat: os.stat_result) -> str | None:
        """The fingerprint of a file that has not been touched since it was read."""
        name = os.fsencode(path)
        row = self._expected.pop(name, None) or self._try(
            lambda db: db.execute(f"select {_STAMP} from stamps where path = ?", (name,)).fetchone(), None
        )
        if row is None or row[1:5] != _seen(stat) or row[6] != _sum(path, row[1:6]):
            return None
        return str(row[5])

    def expect(self, directory: str) -> None:
        """Ask for the fingerprints of all files below a directory at once: one by one they take three times as long."""
        below = os.fsencode(directory) + os.fsencode(os.sep)
        rows: list[tuple[Any, ...]] = self._try(
            lambda db: db.execute(
                f"select {_STAMP} from stamps where path > ? and path < ?", (below, below + b"\xff")
            ).fetchall(),
            [],
        )
        self._expected = {row[0]: row for row in rows}

    def note(self, path: str, stat: os.stat_result, mark: str) -> None:
        """Remember a file's fingerprint, unless it is so new that it could change again and look the same."""
        if max(stat.st_mtime_ns, stat.st_ctime_ns) < _now() - _RACY_NS:
            self._noted[path] = (*_seen(stat), mark)

    # --- the file ---

    def close(self) -> None:
        """Write what is left, keep the size in bounds, and let go of the file; the next use opens it again."""
        if self._noted or self._used:
            self._write([])
        self._let_go()

    def _let_go(self) -> None:
        if self._connection is not None and self._pid == os.getpid():
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None

    def _write(self, units: Sequence[tuple[bytes, bytes, bytes]]) -> None:
        stamps = [(os.fsencode(path), *seen, _sum(path, seen), self._today) for path, seen in self._noted.items()]

        def run(db: sqlite3.Connection) -> None:
            db.execute("begin immediate")
            try:
                for key, variant, body in units:
                    db.execute(
                        "insert or replace into units values (?, ?, ?, ?)",
                        (key, variant, self._today, _sealed(key + variant, body)),
                    )
                    db.execute(
                        "delete from units where key = ?1 and variant not in "
                        "(select variant from units where key = ?1 order by used desc, variant = ?2 desc limit ?3)",
                        (key, variant, _VARIANTS),
                    )
                db.executemany("insert or replace into stamps values (?, ?, ?, ?, ?, ?, ?, ?)", stamps)
                db.executemany(
                    "update units set used = ? where key = ? and variant = ?",
                    [(self._today, *unit) for unit in self._used],
                )
                db.execute("commit")
            except BaseException:
                with suppress(sqlite3.Error):
                    db.execute("rollback")
                raise
            self._bound(db)

        self._try(run, None)
        self._noted.clear()
        self._used.clear()

    def _bound(self, db: sqlite3.Connection) -> None:
        """Drop what was not used for longest while the file is too large."""
        for _ in range(8):
            pages, free, size = (db.execute(f"pragma {name}").fetchone()[0] for name in _SIZES)
            if (pages - free) * size <= self.max_bytes:
                break
            db.execute("begin immediate")
            db.execute(
                "delete from units where (key, variant) in (select key, variant from units order by used "
                "limit max(1, (select count(*) from units) / 2))"
            )
            db.execute("delete from stamps where path in (select path from stamps order by used limit 5000)")
            db.execute("commit")
            db.execute("pragma incremental_vacuum").fetchall()

    def _try(self, run: Callable[[sqlite3.Connection], _T], otherwise: _T) -> _T:
        """Ask the file. One that is damaged is made anew; one that cannot be used is done without."""
        for attempt in range(2):
            try:
                db = self._open()
                return otherwise if db is None else run(db)
            except sqlite3.OperationalError:  # locked for long, not writable, the disk is full
                return otherwise
            except sqlite3.Error:
                self._let_go()
                if attempt:
                    self._unusable = True
                else:
                    for end in ("", "-wal", "-shm"):
                        with suppress(OSError):
                            os.unlink(f"{self._path}{end}")
        return otherwise

    def _open(self) -> sqlite3.Connection | None:
        if self._connection is not None and self._pid == os.getpid():
            return self._connection
        if self._connection is not None:
            _inherited.append(self._connection)  # a fork's: closing it would let go of the parent's locks
            self._connection = None
            self._noted, self._used = {}, set()
        if self._unusable:
            return None
        try:
            self._make_directory()
            db = sqlite3.connect(self._path, timeout=_BUSY_MS / 1000, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.OperationalError):
            self._unusable = True
            return None
        try:
            form = db.execute("pragma user_version").fetchone()[0]
            if form not in (0, _FORM):
                raise sqlite3.DatabaseError(f"tables of form {form}")
            if not form:
                db.execute("pragma auto_vacuum = incremental")
            with suppress(sqlite3.OperationalError):  # another process is just doing it
                db.execute("pragma journal_mode = wal").fetchone()
            db.execute("pragma synchronous = normal")
            if not form:
                db.executescript(f"begin immediate; {_TABLES} pragma user_version = {_FORM}; commit;")
        except sqlite3.OperationalError:
            db.close()
            self._unusable = True
            return None
        except sqlite3.Error:
            db.close()
            raise
        self._connection, self._pid = db, os.getpid()
        return db

    def _make_directory(self) -> None:
        if self.directory.is_dir():
            return
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Backups leave such directories out: bford.info/cachedir
        tag = "Signature: 8a477f597d28d172789f06886806bc55\n# Kept by eaglelint; may be deleted at any time.\n"
        (self.directory / "CACHEDIR.TAG").write_text(tag, encoding="ascii")


_SIZES = ("page_count", "freelist_count", "page_size")
_inherited: list[sqlite3.Connection] = []


def _now() -> int:
    return time.time_ns()


def _forget(db: sqlite3.Connection, key: bytes, variant: bytes) -> None:
    db.execute("delete from units where key = ? and variant = ?", (key, variant))


def _seen(stat: os.stat_result) -> tuple[int, int, int, int]:
    # Inodes of some file systems do not fit sqlite's signed 64 bits.
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino & 0x7FFF_FFFF_FFFF_FFFF


def _sum(path: str, seen: Sequence[object]) -> bytes:
    return blake2b(repr((path, *seen)).encode("utf-8", "surrogateescape"), digest_size=8).digest()


def _sealed(key: bytes, body: bytes) -> bytes:
    packed = zlib.compress(body, 1)
    return blake2b(packed, key=key[:64], digest_size=16).digest() + packed


def _opened(key: bytes, body: object) -> bytes | None:
    if not isinstance(body, bytes) or blake2b(body[16:], key=key[:64], digest_size=16).digest() != body[:16]:
        return None
    try:
        return zlib.decompress(body[16:])
    except zlib.error:
        return None
