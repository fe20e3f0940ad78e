"""``eaglelint probe --execute``: run an engine's own code in a world of stand-ins, and compare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

__all__ = ["probe_wiring"]

_RANKS = 8
_LAYERS = 8  # deep enough to tell every list of ids apart, shallow enough to run in no time


def probe_wiring(
    serving: Sequence[str],
    target_class: str | None,
    layer_ids: str,
    num_layers: int | None,
    draft_kind: str | None,
    assume: list[str] | None,
    *,
    json: bool,
) -> None:
    """Run the target classes of each engine's source; exit 1 where what is seen differs from what is derived."""
    from eaglelint.artifacts.target import TargetConfig
    from eaglelint.cache.units import cache_directory, caching
    from eaglelint.cli.engines import parse_ids
    from eaglelint.cli.progress import progress_bar
    from eaglelint.deployment import parse_assumptions
    from eaglelint.derive import ServingRequest
    from eaglelint.exceptions import UnreadableInput, WrongUsage
    from eaglelint.probe.wiring.engine import ClassProbe, probe_engine
    from eaglelint.report.probe_wiring import render_json, render_text
    from eaglelint.scan import CAPTURING_KINDS
    from eaglelint.serving import open_source

    kind = draft_kind or "eagle3"
    if kind not in CAPTURING_KINDS:
        raise WrongUsage(f"--draft-kind {kind}: known are {', '.join(CAPTURING_KINDS)}.")
    deployment = parse_assumptions(assume or ())
    if any(name != "tp" for name, _ in deployment.given):
        raise WrongUsage("--assume: --execute runs one stage on one rank, or on the ranks of tp=N.")
    if deployment.number("tp") > _RANKS:
        raise WrongUsage(f"--assume tp: --execute runs at most {_RANKS} ranks.")
    ids, depth = parse_ids(layer_ids), num_layers or _LAYERS
    target = TargetConfig.synthetic(depth).data
    found: list[tuple[str, tuple[ClassProbe, ...]]] = []
    with caching(cache_directory()), progress_bar() as progress:
        for spec in serving:
            handle = open_source(spec, root=Path.cwd())
            bindings = handle.engine.target_classes(handle.source, kind)
            if target_class is not None:
                binding = handle.engine.target_class(handle.source, target_class)
                if binding is None:
                    raise UnreadableInput(f"{handle.label} has no class {target_class}.")
                bindings = [binding]
            requests = [ServingRequest(binding, depth, target, kind, None, ids, deployment) for binding in bindings]
            found.append((handle.label, probe_engine(handle, requests, progress=progress)))
    typer.echo(render_json(found) if json else render_text(found, details=target_class is not None))
    if any(probe.verdict == "disagrees" for _, probes in found for probe in probes):
        raise typer.Exit(1)
