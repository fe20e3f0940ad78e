"""The cache file: what was put is found, whatever else happens to the file; what is wrong with it is a miss."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eaglelint.cache import store as module
from eaglelint.cache.store import Store

KEY, OTHER, VARIANT = b"k" * 16, b"o" * 16, b"v" * 16
HOUR = 3_600_000_000_000


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour from now, when the files of a test are old."""
    now = module._now
    monkeypatch.setattr(module, "_now", lambda: now() + HOUR)


@pytest.fixture(autouse=True)
def _closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each store that a test opens is closed in the end."""
    opened: list[Store] = []
    start = Store.__init__

    def noted(store: Store, directory: Path, **options: int) -> None:
        opened.append(store)
        start(store, directory, **options)

    monkeypatch.setattr(Store, "__init__", noted)
    yield
    for store in opened:
        store.close()


def database(directory: Path) -> sqlite3.Connection:
    return sqlite3.connect(directory / "cache.sqlite")


def test_what_was_put_is_found_by_the_next_process(tmp_path: Path) -> None:
    """Under its key and no other, the latest variant first."""
    first = Store(tmp_path)
    first.put(KEY, VARIANT, b"one")
    first.close()
    second = Store(tmp_path)
    assert (second.bodies(KEY), second.bodies(OTHER)) == ([b"one"], [])


def test_variants_of_a_unit_are_kept_up_to_a_number(tmp_path: Path) -> None:
    """A tree that goes back and forth between branches finds each again; the one just put is never the one to go."""
    store = Store(tmp_path)
    for number in range(6):
        store.put(KEY, bytes([number]) * 16, bytes([number]))
        assert bytes([number]) in store.bodies(KEY)
    assert len(store.bodies(KEY)) == 4


def test_a_damaged_row_is_a_miss(tmp_path: Path) -> None:
    """One bit of the body, or a body under another's key."""
    store = Store(tmp_path)
    store.put(KEY, VARIANT, b"one")
    store.put(OTHER, VARIANT, b"two")
    store.close()
    with database(tmp_path) as db:
        (body,) = db.execute("select body from units where key = ?", (KEY,)).fetchone()
        db.execute("update units set body = ? where key = ?", (body[:-1] + bytes([body[-1] ^ 1]), KEY))
        db.execute("update units set body = ? where key = ?", (body, OTHER))
    db.close()
    again = Store(tmp_path)
    assert (again.bodies(KEY), again.bodies(OTHER)) == ([], [])
    again.put(KEY, VARIANT, b"one")
    assert again.bodies(KEY) == [b"one"]


@pytest.mark.parametrize(
    "content", [b"", b"not a database, but long enough to be looked at" * 100, b"SQLite format 3\0" * 400]
)
def test_a_file_that_is_no_cache_is_made_anew(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "cache.sqlite").write_bytes(content)
    store = Store(tmp_path)
    assert store.bodies(KEY) == []
    store.put(KEY, VARIANT, b"one")
    store.close()
    assert Store(tmp_path).bodies(KEY) == [b"one"]


def test_a_file_of_another_form_is_made_anew(tmp_path: Path) -> None:
    with database(tmp_path) as db:
        db.execute("pragma user_version = 99")
    db.close()
    store = Store(tmp_path)
    store.put(KEY, VARIANT, b"one")
    assert store.bodies(KEY) == [b"one"]


def test_without_a_directory_there_is_no_cache(tmp_path: Path) -> None:
    """Where a file is in the way, nothing is kept and nothing fails."""
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file" / "cache")
    store.put(KEY, VARIANT, b"one")
    assert store.bodies(KEY) == []
    store.close()


def test_the_size_is_bounded(tmp_path: Path) -> None:
    """What does not fit pushes out what was there before; what was put last is there."""
    store = Store(tmp_path, max_bytes=512 * 1024)
    for number in range(200):
        store.put(number.to_bytes(16, "big"), VARIANT, os.urandom(16 * 1024))
    store.close()
    assert (tmp_path / "cache.sqlite").stat().st_size <= 1024 * 1024
    assert store.bodies((199).to_bytes(16, "big")) or store.bodies((198).to_bytes(16, "big"))


WRITER = """
import sys
from pathlib import Path
from eaglelint.cache.store import Store
store = Store(Path(sys.argv[1]))
name = sys.argv[2].encode()
for number in range(int(sys.argv[3])):
    key = number.to_bytes(16, "big")
    store.put(key, name.ljust(16), name + b" " + str(number).encode())
    print(number, flush=True)
"""


def writer(directory: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(directory), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    """Both write to the same keys of a file that neither has made before."""
    running = [writer(tmp_path, name, 40) for name in ("a", "b")]
    assert [(process.communicate(), process.returncode)[1] for process in running] == [0, 0]
    store = Store(tmp_path)
    for number in range(40):
        assert set(store.bodies(number.to_bytes(16, "big"))) == {b"a %d" % number, b"b %d" % number}


def test_a_killed_process_leaves_whole_rows(tmp_path: Path) -> None:
    """All that it had put is found, and the file is still of use."""
    process = writer(tmp_path, "a", 1_000_000)
    assert process.stdout is not None
    put = [int(process.stdout.readline()) for _ in range(30)]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    store = Store(tmp_path)
    assert all(store.bodies(number.to_bytes(16, "big")) == [b"a %d" % number] for number in put)
    store.put(OTHER, VARIANT, b"one")
    assert store.bodies(OTHER) == [b"one"]


def test_a_stamp_is_trusted_once_its_file_is_old(tmp_path: Path, later: None) -> None:
    """Until the file is touched, even if size and time of change are set back to what they were."""
    file = tmp_path / "file"
    file.write_text("one")
    stat = file.stat()
    store = Store(tmp_path / "cache")
    store.note(str(file), stat, "mark")
    store.close()
    assert store.known(str(file), file.stat()) == "mark"
    file.write_text("two")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert file.stat().st_mtime_ns == stat.st_mtime_ns
    assert store.known(str(file), file.stat()) is None


def test_a_stamp_of_a_new_file_is_not_trusted(tmp_path: Path) -> None:
    """It could be written again within the same tick of the file system's clock."""
    file = tmp_path / "file"
    file.write_text("one")
    store = Store(tmp_path / "cache")
    store.note(str(file), file.stat(), "mark")
    store.put(KEY, VARIANT, b"")
    assert store.known(str(file), file.stat()) is None


def test_a_name_that_is_not_utf8(tmp_path: Path, later: None) -> None:
    file = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.py")
    Path(file).write_text("one")
    store = Store(tmp_path / "cache")
    store.note(file, os.stat(file), "mark")
    store.close()
    assert store.known(file, os.stat(file)) == "mark"


def test_stamps_that_were_asked_for_together_are_trusted_no_more_than_one_by_one(tmp_path: Path, later: None) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    names = [tree / "kept.py", tree / "touched.py", Path(os.fsdecode(os.fsencode(tree) + b"/\xff.py"))]
    store = Store(tmp_path / "cache")
    for number, file in enumerate(names):
        file.write_text("one")
        store.note(str(file), file.stat(), f"mark {number}")
    store.close()
    names[1].write_text("two!")
    store.expect(str(tree))
    assert [store.known(str(file), file.stat()) for file in names] == ["mark 0", None, "mark 2"]
