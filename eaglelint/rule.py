"""What a rule is: metadata and a pure function from the facts of one pipeline to findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.artifacts.target import TargetConfig
from eaglelint.finding import Edit, Finding, Related, Severity, Confidence, Span
from eaglelint.wiring import Wiring

__all__ = ["Check", "Facts", "Rule"]


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a rule may look at: one draft, the target it speaks for, and the wirings at both ends.

    ``training`` is extracted from code or declared with ``--trained-by``; ``None`` where neither is known.
    ``servings`` holds one wiring for each engine that the draft is served by.
    """

    draft: DraftConfig | None
    target: TargetConfig | None
    training: Wiring | None
    servings: tuple[Wiring, ...]


Check = Callable[["Rule", Facts], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that is forbidden, named after the bad pattern.

    Attributes:
        code: Family and number, ``CAP002``; never used again for something else.
        name: kebab-case, reads "allow NAME".
        summary: One line for lists.
        severity: What a finding is unless the rule says otherwise for the case at hand.
        check: Finds it in the facts of one pipeline.
    """

    code: str
    name: str
    summary: str
    severity: Severity
    check: Check

    def finding(
        self,
        message: str,
        span: Span,
        *,
        confidence: Confidence,
        severity: Severity | None = None,
        annotation: str = "",
        related: tuple[Related, ...] = (),
        help: str | None = None,
        edits: tuple[Edit, ...] = (),
        identity: tuple[str, ...] = (),
    ) -> Finding:
        """A finding of this rule; ``identity`` is what stays the same when lines move."""
        return Finding(
            self.code,
            self.name,
            severity or self.severity,
            confidence,
            message,
            span,
            annotation,
            related,
            help,
            edits,
            identity,
        )
