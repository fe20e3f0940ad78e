"""Findings that a project has decided to live with: comments in its code, and settings for files that hold none."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eaglelint.exceptions import WrongUsage
from eaglelint.finding import Finding, Severity
from eaglelint.overlay import read_bytes
from eaglelint.project.discovery import display_path, path_matcher
from eaglelint.registry import all_rules, rules_meant
from eaglelint.rule import Rule

__all__ = ["Ignore", "Suppressed", "ignores_in", "silence", "with_severities"]

_COMMENT = re.compile(r"#\s*eaglelint:\s*ignore(?P<names>\[[^\]]*\])?[ \t]*(?P<reason>.*)")
# Files whose comments begin with "#"; JSON has none.
_COMMENTED = frozenset({".py", ".toml", ".yaml", ".yml"})
_MOST_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Ignore:
    """A comment ``# eaglelint: ignore[CAP002, ignored-ids] reason``.

    Attributes:
        line: Where it stands, from 1.
        applies_to: The line that it speaks of: its own, or the next where nothing else stands on its own.
        names: Codes and names as written.
    """

    line: int
    applies_to: int
    names: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Suppressed:
    """A finding that is not reported; ``in_source`` where a comment says so, else the settings."""

    finding: Finding
    in_source: bool
    reason: str = ""


def with_severities(findings: Iterable[Finding], severities: Mapping[str, Severity]) -> tuple[Finding, ...]:
    """The findings with the severities that the settings give their rules.

    Raises:
        WrongUsage: A key is no rule.
    """
    wanted = {rule.code: severity for word, severity in severities.items() for rule in rules_meant(word)}
    return tuple(
        replace(finding, severity=wanted[finding.code]) if finding.code in wanted else finding for finding in findings
    )


def silence(
    findings: Sequence[Finding],
    per_file: Mapping[str, Sequence[str]],
    root: Path,
    code: Iterable[Path],
    rules: Sequence[Rule],
) -> tuple[tuple[Finding, ...], tuple[Suppressed, ...], tuple[str, ...]]:
    """Take out what comments and settings silence.

    Args:
        findings: All of a scan.
        per_file: Rules to ignore by glob; globs are relative to ``root``.
        code: Files that the scan read, whose comments should silence something.
        rules: The rules that ran; a comment that names another one may well be needed.

    Returns:
        What is left; what was taken out; sentences on comments that silence nothing or name no rule.

    Raises:
        WrongUsage: The settings name no rule.
    """
    globs = [
        (path_matcher([pattern], root), {rule.code for word in words for rule in rules_meant(word)})
        for pattern, words in per_file.items()
    ]
    paths = dict.fromkeys([finding.span.path for finding in findings] + [display_path(path) for path in code])
    comments = {path: _comments_of(Path(path)) for path in paths}
    used: set[tuple[str, int]] = set()
    kept, suppressed = [], []
    for finding in findings:
        path = finding.span.path
        comment = next(
            (
                ignore
                for ignore in comments[path]
                if ignore.applies_to == finding.span.start.line and {finding.code, finding.name} & set(ignore.names)
            ),
            None,
        )
        if comment is not None:
            used.add((path, comment.line))
            suppressed.append(Suppressed(finding, True, comment.reason))
        elif any(finding.code in codes and matches(Path(path)) for matches, codes in globs):
            suppressed.append(Suppressed(finding, False))
        else:
            kept.append(finding)
    notes = [
        note
        for path, ignores in comments.items()
        for ignore in ignores
        if (path, ignore.line) not in used and (note := _unused(path, ignore, rules))
    ]
    return tuple(kept), tuple(suppressed), tuple(notes)


def _unused(path: str, ignore: Ignore, rules: Sequence[Rule]) -> str | None:
    """What to say of a comment that silenced nothing; nothing where a rule of its that did not run may need it."""
    where = f"{path}:{ignore.line}"
    if not ignore.names:
        return f"{where}: this comment names no rule and silences nothing. Write ignore[CAP002], with the rule's code."
    known = {word: rule for rule in all_rules() for word in (rule.code, rule.name)}
    for name in ignore.names:
        if name not in known:
            try:
                rules_meant(name)
            except WrongUsage as error:
                return f"{where}: {error}"
            return f"{where}: {name} names several rules. Name each by its code."
    if all(known[name] in rules for name in ignore.names):
        return f"{where}: ignore[{', '.join(ignore.names)}] silences nothing any more. Take the comment out."
    return None


def _comments_of(path: Path) -> tuple[Ignore, ...]:
    if path.suffix not in _COMMENTED:
        return ()
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return ()
        data = read_bytes(path)
    except (OSError, ValueError):
        return ()
    if b"eaglelint:" not in data:
        return ()
    return ignores_in(data.decode("utf-8", "replace"), python=path.suffix == ".py")


def ignores_in(text: str, *, python: bool) -> tuple[Ignore, ...]:
    """The comments of a text; in Python only where Python sees a comment, not in a string."""
    lines = text.split("\n")
    found = []
    for number, column in _comment_starts(text, lines, python):
        match = _COMMENT.search(lines[number - 1], column)
        if match is None:
            continue
        alone = not lines[number - 1][:column].strip()
        names = tuple(name for name in re.split(r"[\s,]+", (match["names"] or "")[1:-1]) if name)
        found.append(Ignore(number, number + 1 if alone else number, names, match["reason"].strip()))
    return tuple(found)


def _comment_starts(text: str, lines: Sequence[str], python: bool) -> Iterator[tuple[int, int]]:
    if python:
        try:
            tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline)]
        except (tokenize.TokenError, SyntaxError):
            tokens = None
        if tokens is not None:
            yield from (token.start for token in tokens if token.type == tokenize.COMMENT)
            return
    for number, line in enumerate(lines, 1):
        match = _COMMENT.search(line)
        if match is not None and (match.start() == 0 or line[match.start() - 1].isspace()):
            yield number, match.start()
