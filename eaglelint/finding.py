"""What eaglelint reports: findings and the places and edits they point at. Frozen, text only, picklable."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

__all__ = [
    "Confidence",
    "Edit",
    "Finding",
    "Position",
    "Probe",
    "Related",
    "Safety",
    "Severity",
    "Span",
    "Verdict",
    "any_from",
    "at_least",
    "unique_fingerprints",
]

Severity = Literal["error", "warning", "note"]
Confidence = Literal["certain", "likely", "possible"]
Safety = Literal["safe", "unsafe", "display"]
Verdict = Literal["confirmed", "refuted", "inconclusive"]


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a text file; line and column are 1-based, columns count characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one file, from ``start`` up to (not including) ``end``."""

    path: str
    start: Position
    end: Position | None = None

    @classmethod
    def at(cls, path: str, line: int, column: int = 1) -> Span:
        return cls(path, Position(line, column))

    def __str__(self) -> str:
        return f"{self.path}:{self.start.line}:{self.start.column}"


@dataclass(frozen=True, slots=True)
class Related:
    """A further place that a finding rests on; ``label`` says its part: trained, served, declared."""

    label: str
    message: str
    span: Span


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of ``span`` by ``text``; only ``safe`` edits keep the meaning intended by both ends."""

    safety: Safety
    span: Span
    text: str
    description: str


@dataclass(frozen=True, slots=True)
class Probe:
    """What a run of real tensors says of a finding, and what was measured."""

    verdict: Verdict
    detail: str

    def __str__(self) -> str:
        return f"{self.verdict}, {self.detail}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, with exactly one primary place.

    ``trace`` is a command that tells the life of the value that the finding speaks of; ``probe`` what trying it showed.
    """

    code: str
    name: str
    severity: Severity
    confidence: Confidence
    message: str
    span: Span
    annotation: str = ""
    related: tuple[Related, ...] = ()
    help: str | None = None
    edits: tuple[Edit, ...] = ()
    identity: tuple[str, ...] = ()
    trace: str | None = None
    probe: Probe | None = None

    @property
    def fingerprint(self) -> str:
        """A name for this finding that survives moved lines.

        Built from the code, the file and ``identity`` (what the rule says makes the finding itself:
        key path, engine, slots), never from line numbers.
        """
        parts = (self.code, self.span.path, *(self.identity or (self.message,)))
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]


def at_least(findings: Iterable[Finding], confidence: Confidence) -> tuple[Finding, ...]:
    """The findings of this confidence or a surer one."""
    order = get_args(Confidence)
    return tuple(finding for finding in findings if order.index(finding.confidence) <= order.index(confidence))


def any_from(findings: Iterable[Finding], severity: Severity) -> bool:
    """Whether a finding is of this severity or a graver one."""
    order = get_args(Severity)
    return any(order.index(finding.severity) <= order.index(severity) for finding in findings)


def unique_fingerprints(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The findings' fingerprints; one that occurs again gets a number, as each must name one finding alone."""
    seen: dict[str, int] = {}
    names = []
    for finding in findings:
        count = seen[finding.fingerprint] = seen.get(finding.fingerprint, 0) + 1
        names.append(finding.fingerprint if count == 1 else f"{finding.fingerprint}-{count}")
    return tuple(names)
