"""The last line of a report: how much was found, how much of it has a safe edit, what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from eaglelint.finding import Finding

__all__ = ["Summary", "by_rule", "summarise"]


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of one scan.

    Attributes:
        fixable: Findings with a safe edit.
        suppressed: Findings silenced by a comment or by the settings.
        baselined: Findings that the baseline already knows.
    """

    errors: int = 0
    warnings: int = 0
    notes: int = 0
    fixable: int = 0
    suppressed: int = 0
    baselined: int = 0

    def __str__(self) -> str:
        counts = ((self.errors, "error"), (self.warnings, "warning"), (self.notes, "note"))
        found = ", ".join(_counted(count, noun) for count, noun in counts if count)
        mended = f" ({self.fixable} with a safe edit)" if self.fixable else ""
        hidden = ((self.suppressed, "suppressed"), (self.baselined, "in the baseline"))
        left_out = "".join(f"; {count} {why}" for count, why in hidden if count)
        return f"Found {found or 'no problems'}{mended}{left_out}"

    def to_json(self) -> dict[str, int]:
        """The counts as schemas/report.schema.json describes them."""
        return {
            "errors": self.errors,
            "warnings": self.warnings,
            "notes": self.notes,
            "fixable": self.fixable,
            "suppressed": self.suppressed,
            "baselined": self.baselined,
        }


def summarise(findings: Iterable[Finding], *, suppressed: int = 0, baselined: int = 0) -> Summary:
    """Counts what is reported; the caller says what was left out before."""
    findings = tuple(findings)
    severities = [finding.severity for finding in findings]
    return Summary(
        errors=severities.count("error"),
        warnings=severities.count("warning"),
        notes=severities.count("note"),
        fixable=sum(any(edit.safety == "safe" for edit in finding.edits) for finding in findings),
        suppressed=suppressed,
        baselined=baselined,
    )


def by_rule(findings: Iterable[Finding]) -> Iterator[str]:
    """A line for each rule that spoke, the most frequent first: count, code and name."""
    counts = Counter((finding.code, finding.name) for finding in findings)
    for (code, name), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield f"{count:>5}  {code}  {name}"


def _counted(count: int, singular: str, plural: str | None = None) -> str:
    return f"{count} {singular if count == 1 else plural or singular + 's'}"
