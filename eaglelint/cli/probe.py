"""``eaglelint probe``: try out with real tensors what a scan says."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eaglelint.cli import options as opt

if TYPE_CHECKING:
    from eaglelint.probe.flow import Probed

__all__ = ["probe"]

_RUN = "How it runs"


class ProbeFormat(str, Enum):
    """How outcomes are printed."""

    text = "text"
    json = "json"


class Device(str, Enum):
    """Where tensors live."""

    auto = "auto"
    cuda = "cuda"
    cpu = "cpu"
    meta = "meta"


class Dtype(str, Enum):
    """Types of weights, by their names in a safetensors header."""

    BF16 = "BF16"
    F16 = "F16"
    F32 = "F32"
    F64 = "F64"


def probe(
    paths: opt.Paths = None,
    draft: opt.Draft = None,
    target: opt.Target = None,
    training: opt.Training = None,
    trained_by: opt.TrainedBy = None,
    serving: opt.Serving = None,
    draft_kind: opt.DraftKind = None,
    launch: opt.Launch = None,
    num_layers: opt.NumLayers = None,
    target_class: opt.TargetClass = None,
    assume: opt.Assume = None,
    dump: Annotated[
        Path | None,
        typer.Option(
            "--dump",
            help="Hidden states that were dumped for training, a sample or a directory of them: which states of the "
            "target they are is found by recomputing it (needs --model).",
            rich_help_panel="Inputs",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            help="The target's checkpoint, a directory that transformers can load; --target where that is one.",
            rich_help_panel="Inputs",
        ),
    ] = None,
    device: Annotated[
        Device,
        typer.Option(
            "--device",
            help="auto is meta (shapes alone, no memory) where shapes are enough, else a GPU, else the CPU.",
            rich_help_panel=_RUN,
        ),
    ] = Device.auto,
    dtype: Annotated[
        Dtype | None, typer.Option("--dtype", help="The checkpoint's own if left out.", rich_help_panel=_RUN)
    ] = None,
    tokens: Annotated[
        int | None,
        typer.Option(
            "--tokens",
            min=1,
            max=65_536,
            help="Tokens that are pushed through (4), or recomputed of a dump (128).",
            rich_help_panel=_RUN,
        ),
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(
            "--memory",
            min=0.0,
            help="GiB that the target may take for --dump; the rest is read from disk layer by layer (half of what "
            "the machine has).",
            rich_help_panel=_RUN,
        ),
    ] = None,
    weights: Annotated[
        bool,
        typer.Option("--weights", help="Use the checkpoint's values, mapped from its files.", rich_help_panel=_RUN),
    ] = False,
    budget: Annotated[
        float | None,
        typer.Option("--budget", min=0.0, help="Seconds after which nothing more is begun.", rich_help_panel=_RUN),
    ] = None,
    execute: Annotated[
        bool,
        typer.Option(
            "--execute",
            help="Run the code of --serving ENGINE@PATH itself, its setters and forward passes, in a process without "
            "rights, and compare what it captures with what is derived from it: for the draft, or without one for "
            "every target class.",
            rich_help_panel=_RUN,
        ),
    ] = False,
    layer_ids: Annotated[
        str,
        typer.Option(
            "--layer-ids", help="With --execute and no draft: comma-separated ids, or default.", rich_help_panel=_RUN
        ),
    ] = "default",
    format: Annotated[ProbeFormat, typer.Option("--format", help="Text, or JSON.")] = ProbeFormat.text,
    no_cache: opt.NoCache = False,
) -> None:
    """Confirm or refute a scan's findings with a short run of real tensors (pip install 'eaglelint\\[probe]').

    Exit code 0: all fits. 1: something does not. 2: wrong usage or unreadable input. 3: our own fault.
    """
    from eaglelint.cli.progress import counted_bar, progress_bar
    from eaglelint.exceptions import WrongUsage
    from eaglelint.finding import any_from
    from eaglelint.probe import require
    from eaglelint.probe.flow import DumpOptions, ProbeOptions, probe_scan
    from eaglelint.scan import ScanResult
    from eaglelint.session import Inputs, open_session

    require("torch")
    if execute and serving and draft is None and not paths:
        from eaglelint.cli.probe_wiring import probe_wiring

        probe_wiring(serving, target_class, layer_ids, num_layers, draft_kind, assume, json=format is ProbeFormat.json)
        return
    session = open_session(
        Inputs(
            paths=paths or (),
            draft=draft,
            target=target,
            training=training or (),
            trained_by=trained_by,
            serving=serving or (),
            draft_kind=draft_kind,
            launch=launch,
            num_layers=num_layers,
            target_class=target_class,
            assume=assume or (),
            cache=not no_cache,
        )
    )
    if not session.pipelines and dump is None:
        engine = ", or with --execute an engine's source with --serving sglang@PATH" if execute else ""
        raise WrongUsage(f"There is nothing to probe: no draft was found. Name its config with --draft PATH{engine}.")
    dumped = None
    if dump is not None:
        require("transformers")
        checkpoint = model or target
        if checkpoint is None:
            raise WrongUsage("--dump is held against the target: name its checkpoint with --model PATH.")
        dumped = DumpOptions(dump, checkpoint, device.value, tokens or 128, _bytes(memory))
    options = ProbeOptions(
        device.value, dtype.value if dtype else None, tokens or 4, weights, budget=budget, dump=dumped, execute=execute
    )
    with progress_bar() as progress:
        result = session.scan(progress) if session.pipelines else ScanResult()
    with counted_bar("the target's layers") as counted:
        probed = probe_scan(result, options, counted=counted)
    for problem in result.problems:
        typer.echo(f"error: {problem}", err=True)
    _print(probed, format)
    if result.problems:
        raise typer.Exit(2)
    confirmed = [found for found in probed.findings if found.probe and found.probe.verdict == "confirmed"]
    if probed.failed or any_from(confirmed, session.settings.settings.fail_on):
        raise typer.Exit(1)


def _bytes(gib: float | None) -> int | None:
    return None if gib is None else int(gib * 2**30)


def _print(probed: Probed, format: ProbeFormat) -> None:
    import sys

    from eaglelint.report import probe

    if format is ProbeFormat.json:
        typer.echo(probe.render_json(probed.findings, probed.outcomes))
    else:
        probe.render_text(probed.findings, probed.outcomes, sys.stdout)
