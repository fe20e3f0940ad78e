"""Comments and settings silence the findings they name, on the line they speak of, and say so when they silence none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from eaglelint.exceptions import WrongUsage
from eaglelint.finding import Finding, Span
from eaglelint.registry import all_rules, select_rules
from eaglelint.suppress import Ignore, ignores_in, silence, with_severities


def found(path: str, line: int, code: str = "CAP002", name: str = "boundary-mismatch") -> Finding:
    return Finding(code, name, "error", "certain", "", Span.at(path, line))


def lines_of(findings: Sequence[Finding]) -> list[int]:
    return [finding.span.start.line for finding in findings]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_comment_in_python() -> None:
    """At the end of a line it speaks of that line, alone it speaks of the next; a string is no comment."""
    text = (
        "x = 1  # eaglelint: ignore[CAP002] the old convention\n"
        "    # eaglelint:ignore[ignored-ids, CAP001]\n"
        "y = '# eaglelint: ignore[CAP003]'\n"
        "z = 1  # noqa  # eaglelint: ignore[CAP004]\n"
        "# eaglelint: ignore why not\n"
    )
    assert ignores_in(text, python=True) == (
        Ignore(1, 1, ("CAP002",), "the old convention"),
        Ignore(2, 3, ("ignored-ids", "CAP001"), ""),
        Ignore(4, 4, ("CAP004",), ""),
        Ignore(5, 6, (), "why not"),
    )


def test_a_comment_in_yaml_and_in_python_that_does_not_parse() -> None:
    """Both are read line by line."""
    assert ignores_in("ids: [1]  # eaglelint: ignore[CAP002]\n", python=False) == (Ignore(1, 1, ("CAP002",), ""),)
    assert ignores_in("x = (  # eaglelint: ignore[CAP002]\n", python=True) == (Ignore(1, 1, ("CAP002",), ""),)


def test_findings_are_silenced_line_by_line(here: Path) -> None:
    """By code or by name, with the reason kept; other lines and other rules stay."""
    Path("a.py").write_text("x  # eaglelint: ignore[boundary-mismatch] known\nx\nx  # eaglelint: ignore[CAP001]\n")
    kept, suppressed, notes = silence([found("a.py", n) for n in (1, 2, 3)], {}, here, [], all_rules())
    assert lines_of(kept) == [2, 3]
    assert [(row.finding.span.start.line, row.in_source, row.reason) for row in suppressed] == [(1, True, "known")]
    assert notes == ("a.py:3: ignore[CAP001] silences nothing any more. Take the comment out.",)


@pytest.mark.parametrize(
    ("comment", "note"),
    [
        ("ignore", "this comment names no rule and silences nothing. Write ignore[CAP002], with the rule's code."),
        ("ignore[CAP]", "CAP names several rules. Name each by its code."),
        (
            "ignore[boundary-mismach]",
            "'boundary-mismach' is no rule's code or name, and no rule's code begins with it.",
        ),
    ],
)
def test_a_comment_that_names_no_rule(here: Path, comment: str, note: str) -> None:
    """It silences nothing and is told."""
    Path("a.py").write_text(f"x  # eaglelint: {comment}\n")
    kept, _, notes = silence([found("a.py", 1)], {}, here, [], all_rules())
    assert len(kept) == 1
    assert notes[0].startswith(f"a.py:1: {note}")


def test_an_unused_comment_of_scanned_code_is_told(here: Path) -> None:
    """Also where nothing was found in the file; not where the rule that it names did not run."""
    Path("train.py").write_text("x  # eaglelint: ignore[CAP002]\n")
    assert silence([], {}, here, [here / "train.py"], all_rules())[2] == (
        "train.py:1: ignore[CAP002] silences nothing any more. Take the comment out.",
    )
    assert silence([], {}, here, [here / "train.py"], select_rules(["CFG001"]))[2] == ()


def test_files_by_glob(here: Path) -> None:
    """For files that can hold no comment: names anywhere, paths from the directory of the settings."""
    findings = [found("drafts/old/config.json", 1), found("drafts/new/config.json", 2)]
    assert lines_of(silence(findings, {"drafts/old/**": ["CAP"]}, here, [], all_rules())[0]) == [2]
    assert lines_of(silence(findings, {"old": ["boundary-mismatch"]}, here, [], all_rules())[0]) == [2]
    assert lines_of(silence(findings, {"*.json": ["CAP002"]}, here, [], all_rules())[0]) == []
    assert lines_of(silence(findings, {"*.json": ["CFG001"]}, here, [], all_rules())[0]) == [1, 2]
    with pytest.raises(WrongUsage, match="'CAP999' is no rule's code"):
        silence(findings, {"*.json": ["CAP999"]}, here, [], all_rules())


def test_severities() -> None:
    """By code, name or family."""
    (finding,) = with_severities([found("a.py", 1)], {"CAP": "note"})
    assert finding.severity == "note"
    assert with_severities([found("a.py", 1)], {"ignored-ids": "note"}) == (found("a.py", 1),)
    with pytest.raises(WrongUsage, match="'CAP999'"):
        with_severities([], {"CAP999": "note"})
