"""What the shape probe's run says of a finding: confirmed, refuted, or neither, with the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eaglelint.finding import Finding, Probe
from eaglelint.probe.shape import ShapeRun

__all__ = ["shape_verdict"]

_STEPS: Mapping[str, frozenset[str]] = {
    "SHP001": frozenset({"fc"}),
    "SHP002": frozenset({"build", "layers", "projection"}),
    "SHP003": frozenset({"heads"}),
    "SHP004": frozenset({"fc", "embedding", "norm"}),
    "SHP006": frozenset({"fc"}),
    "SHP007": frozenset({"mask"}),
    "VOC001": frozenset({"map"}),
    "VOC002": frozenset({"map"}),
    "VOC003": frozenset({"head", "embedding", "map"}),
}
"""The steps of the run at which what a rule says must show, if it is so."""

# Rules whose finding may be of a kind that no run of shapes shows: a map that leads to wrong words fits all the same.
_SILENT = frozenset({"VOC001", "VOC002", "VOC003"})


def shape_verdict(finding: Finding, runs: Sequence[ShapeRun]) -> Probe | None:
    """The verdict of these runs, one for each engine that feeds the draft; ``None`` where they do not speak of it."""
    steps = _STEPS.get(finding.code)
    if steps is None or not runs:
        return None
    shown = [error for run in runs for error in run.errors if error.step in steps]
    if shown:
        return Probe("confirmed", str(shown[0]))
    if finding.code in _SILENT:
        return Probe("inconclusive", "every shape fits, and shapes do not show what tokens mean")
    return Probe("refuted", f"{len(runs[0].steps)} steps of the draft's input path were run and none of them failed")
