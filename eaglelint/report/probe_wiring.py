"""What the wiring probe saw: a table of an engine's target classes, as text, JSON, and Markdown for the docs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eaglelint.probe.wiring.engine import ClassProbe

__all__ = ["count", "render_json", "render_markdown", "render_text"]

Found = Sequence[tuple[str, "tuple[ClassProbe, ...]"]]


def render_json(found: Found) -> str:
    """One document for all engines."""
    engines = [{"engine": label, "classes": [probe.to_json() for probe in probes]} for label, probes in found]
    return json.dumps({"schema_version": 1, "probe": "wiring", "engines": engines}, indent=2)


def render_text(found: Found, *, details: bool) -> str:
    """A line for each class and the count; with ``details`` what was assumed, tried and denied."""
    lines: list[str] = []
    for label, probes in found:
        width = max((len(probe.target_class) for probe in probes), default=0)
        for probe in probes:
            lines.append(f"{probe.target_class:<{width}}  {probe.verdict:<9}  {probe.why}")
            lines += [f"  it tried {attempt}" for attempt in probe.attempts]
            if details:
                lines += _details(probe)
        lines.append(f"{label}: {count(probes)}")
        denied = dict.fromkeys(item for probe in probes for item in probe.enforced)
        lines.append(f"Scanned code was run with {'; '.join(denied)}." if denied else "Nothing was run.")
    return "\n".join(lines)


def _details(probe: ClassProbe) -> list[str]:
    lines = []
    if probe.observed is not None:
        lines += [f"  assumed: {text}" for text in probe.observed.assumptions]
        lines += [f"  {condition.text}: {condition.slots}" for condition in probe.observed.conditions]
    else:
        lines += [f"  passed over: {part} ({reason})" for part, reason in probe.stood_in]
    lines.append(f"  derived: {probe.derived.status} {probe.derived}")
    return lines


def count(probes: Iterable[ClassProbe]) -> str:
    """``30 target classes: 29 ran and captured states, 29 as derived; 1 stops, ... as derived; 0 disagree, 0 open``."""
    probes = list(probes)
    verdicts = Counter(probe.verdict for probe in probes)
    ran = sum(probe.ran for probe in probes)
    same = sum(probe.ran for probe in probes if probe.verdict == "agrees")
    return (
        f"{len(probes)} target classes: {ran} ran and captured states, {same} as derived; "
        f"{verdicts['agrees'] - same} stop or capture nothing, as derived; "
        f"{verdicts['disagrees']} disagree, {verdicts['open']} open"
    )


def render_markdown(label: str, probes: Iterable[ClassProbe]) -> str:
    """The table of one engine for the docs."""
    probes = list(probes)
    lines = [f"## {label}", "", f"{count(probes)}.", ""]
    lines += ["| class | seen | derived | verdict | parts passed over |", "|---|---|---|---|---|"]
    for probe in probes:
        seen = _cell(str(probe.observed)) if probe.observed is not None and probe.observed.slots else "–"
        derived = f"{probe.derived.status} {probe.derived}" if probe.derived.slots else probe.derived.status
        verdict = (
            probe.verdict if probe.observed is not None and probe.observed.slots else f"{probe.verdict}: {probe.why}"
        )
        lines.append(
            f"| `{probe.target_class}` | {seen} | {_cell(derived)} | {_cell(verdict)} | {len(probe.stood_in) or ''} |"
        )
    return "\n".join([*lines, ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
