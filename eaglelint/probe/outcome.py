"""What a probe saw of one subject: a draft, a dump, an engine's class. Plain data, without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Outcome", "Result"]

Result = Literal["passed", "failed", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run.

    Attributes:
        probe: Which probe: ``shape``, ``dump``, ``wiring``.
        subject: What was tried, as messages name it.
        result: ``failed`` where it does not fit, or is not what it should be; ``inconclusive`` where it could not be
            tried.
        summary: What was seen, in a sentence.
        rows: What was measured, a line each.
        data: The same for programs.
    """

    probe: str
    subject: str
    result: Result
    summary: str
    rows: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The outcome as schemas/probe.schema.json describes it."""
        return {
            "probe": self.probe,
            "subject": self.subject,
            "result": self.result,
            "summary": self.summary,
            "rows": list(self.rows),
            "data": dict(self.data),
        }
