"""Files are written all or none, and what is written is a text that scans clean."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from eaglelint.artifacts.document import Document, read_json
from eaglelint.exceptions import UnreadableInput
from eaglelint.finding import Edit, Finding, Safety
from eaglelint.fix import Change, make_edits, unified_diff, write_changes
from eaglelint.scan import ScanResult

Next = Callable[[Document], tuple[str, Safety] | None]


def scan_of(path: Path, step: Next) -> Callable[[], ScanResult]:
    """A scan of one JSON file with the value ``x``; ``step`` says what it should be instead."""

    def scan() -> ScanResult:
        document = read_json(path, str(path))
        wanted = step(document)
        if wanted is None:
            return ScanResult()
        text, safety = wanted
        span = document.span("x")
        edit = Edit(safety, span, text, "")
        return ScanResult((Finding("CAP002", "boundary-mismatch", "error", "certain", "", span, edits=(edit,)),))

    return scan


def count_to(last: int, safety: Safety = "safe") -> Next:
    def step(document: Document) -> tuple[str, Safety] | None:
        value = document.data["x"]
        return None if value >= last else (str(value + 1), safety)

    return step


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_bytes(b'{\r\n  "x": 0, // no comment is lost\r\n}'.replace(b" // no comment is lost", b' "y":  1'))
    return path


def test_edits_are_made_until_none_is_left(config: Path) -> None:
    """An edit that makes room for another is followed by it, and the file is written only when asked."""
    before = config.read_bytes()
    fixed = make_edits(scan_of(config, count_to(3)))
    assert (fixed.result.findings, fixed.changes) == (
        (),
        (Change(str(config), before, before.replace(b'"x": 0', b'"x": 3'), 3),),
    )
    assert config.read_bytes() == before
    write_changes(fixed.changes)
    assert config.read_bytes() == before.replace(b'"x": 0', b'"x": 3')
    assert make_edits(scan_of(config, count_to(3))).changes == ()


def test_unsafe_edits_are_made_once(config: Path) -> None:
    """What an unsafe edit rests on was said of the old text; without permission none is made at all."""
    assert make_edits(scan_of(config, count_to(3, "unsafe"))).changes == ()
    (change,) = make_edits(scan_of(config, count_to(3, "unsafe")), unsafe=True).changes
    assert (b'"x": 1' in change.after, change.count) == (True, 1)


def test_edits_that_undo_each_other_write_nothing(config: Path) -> None:
    """Two rules that disagree end in a sentence."""
    with pytest.raises(UnreadableInput, match="undo each other"):
        make_edits(scan_of(config, lambda document: (str(1 - document.data["x"]), "safe")))


def test_an_edit_that_breaks_the_file_is_not_made(config: Path) -> None:
    """A text that does not parse any more never reaches the disk."""
    before = config.read_bytes()

    def scan() -> ScanResult:
        try:
            return scan_of(config, lambda document: ("]", "safe"))()
        except UnreadableInput as error:
            return ScanResult(problems=(str(error),))

    with pytest.raises(UnreadableInput, match="would break"):
        make_edits(scan)
    assert config.read_bytes() == before


def test_a_file_that_changed_meanwhile_is_left_alone(config: Path, tmp_path: Path) -> None:
    """Neither it nor its companions are written."""
    other = tmp_path / "other.json"
    other.write_bytes(b"1")
    changes = [Change(str(other), b"1", b"2", 1), Change(str(config), b"{}", b"{1}", 1)]
    with pytest.raises(UnreadableInput, match="changed while it was scanned: nothing was written"):
        write_changes(changes)
    assert (other.read_bytes(), sorted(path.name for path in tmp_path.iterdir())) == (
        b"1",
        ["config.json", "other.json"],
    )


def test_all_or_none(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the second file cannot be replaced, the first holds again what it held."""
    other = tmp_path / "other.json"
    other.write_bytes(b"1")
    replace = os.replace

    def failing(source: Path, destination: Path) -> None:
        if destination == config:
            raise OSError(28, "No space left on device")
        replace(source, destination)

    monkeypatch.setattr(os, "replace", failing)
    before = config.read_bytes()
    with pytest.raises(UnreadableInput, match="No space left on device"):
        write_changes([Change(str(other), b"1", b"2", 1), Change(str(config), before, b"{}", 1)])
    assert (other.read_bytes(), config.read_bytes(), len(list(tmp_path.iterdir()))) == (b"1", before, 2)


def test_permissions_and_links_stay(config: Path, tmp_path: Path) -> None:
    """The file behind a link is written, and keeps its mode."""
    config.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(config)
    write_changes([Change(str(link), config.read_bytes(), b"{}", 1)])
    assert (link.is_symlink(), config.read_bytes(), stat.S_IMODE(config.stat().st_mode)) == (True, b"{}", 0o640)


def test_the_diff_can_be_applied() -> None:
    """Line ends and a missing last newline are told as ``diff -u`` tells them."""
    assert unified_diff([Change("c.json", b'{\r\n "x": 0}', b'{\r\n "x": 1}', 1)]) == (
        "--- a/c.json\n+++ b/c.json\n@@ -1,2 +1,2 @@\n {\r\n"
        '- "x": 0}\n\\ No newline at end of file\n+ "x": 1}\n\\ No newline at end of file\n'
    )
