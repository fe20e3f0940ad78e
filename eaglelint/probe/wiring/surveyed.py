"""Findings on an engine's own tree, without a draft: the classes that they name, run with their default lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from eaglelint.artifacts.target import TargetConfig
from eaglelint.derive import ServingRequest
from eaglelint.finding import Finding, Probe
from eaglelint.probe.wiring.judge import ServedRun, run_end, unrun, wiring_verdict
from eaglelint.rule import Facts, Served
from eaglelint.serving import open_source
from eaglelint.serving_end import End
from eaglelint.survey.classes import SURVEY_LAYERS
from eaglelint.wiring import Wiring

__all__ = ["surveyed_verdicts"]

_OF_TREES = frozenset({"VAL001", "VAL002", "VAL003"})
_NOBODY = Facts(None, None, None, ())


def surveyed_verdicts(
    spec: str,
    findings: Sequence[Finding],
    *,
    execute: bool,
    left: Callable[[], float],
    untried: Probe,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[Finding, Probe]:
    """What running the classes of one engine says of the findings on it that speak of what a state holds.

    Args:
        spec: The engine's tree, ``sglang@PATH``.
        findings: Of any rules; the others are left out.
        execute: Whether scanned code may be run.
        left: Seconds that are left; nothing is begun once there are none.
        untried: What is said of a finding that is not tried for that reason.
        progress: Told what is being done.
    """
    handle = open_source(spec, root=Path.cwd())
    verdicts: dict[Finding, Probe] = {}
    runs: dict[tuple[str, bool], ServedRun] = {}
    for finding in findings:
        if finding.code not in _OF_TREES or finding.identity[:1] != (handle.label,):
            continue
        name = re.split(r", | and ", finding.identity[1])[0]
        binding = handle.engine.target_class(handle.source, name)
        if binding is None:
            continue
        request = ServingRequest(binding, SURVEY_LAYERS, TargetConfig.synthetic(SURVEY_LAYERS).data)
        told = Wiring("serving", f"{handle.label} ({name})", (), "unknown", handle.engine.name, target_class=name)
        why = unrun(Served(told), End(handle, request, told, None), execute=execute)
        if why is None and left() <= 0:
            verdicts[finding] = untried
            continue
        key = (name, finding.code == "VAL003")
        if why is not None:
            runs[key] = ServedRun(Served(told), None, why=why)
        elif key not in runs:
            wiring = handle.wiring(request)
            end = End(handle, request, wiring, None)
            runs[key] = run_end(Served(wiring), end, [finding], seconds=left(), progress=progress)
        said = wiring_verdict(finding, _NOBODY, [runs[key]])
        if said is not None and said.verdict == "refuted":  # it may be of other ids than these
            said = replace(said, verdict="inconclusive")
        if said is not None:
            verdicts[finding] = said
    return verdicts
