"""The options that several commands share, so that inputs are the same everywhere."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Assume",
    "BaselineFile",
    "CapturedBy",
    "Confidence",
    "Draft",
    "DraftKind",
    "Dump",
    "FineTunedFrom",
    "Launch",
    "NoCache",
    "NumLayers",
    "Online",
    "Paths",
    "Serving",
    "Target",
    "TargetClass",
    "TrainedBy",
    "Training",
]

_INPUTS = "Inputs"

Paths = Annotated[
    list[Path] | None,
    typer.Argument(
        help="Files and directories to check; the settings' pipelines or the working directory if left out."
    ),
]
Draft = Annotated[
    Path | None,
    typer.Option(
        "--draft", help="The draft's config.json, its directory, or its id on the Hub.", rich_help_panel=_INPUTS
    ),
]
Target = Annotated[
    Path | None,
    typer.Option(
        "--target", help="The target's config.json, its directory, or its id on the Hub.", rich_help_panel=_INPUTS
    ),
]
Online = Annotated[
    bool,
    typer.Option(
        "--online",
        help="Fetch config and headers of models that --draft and --target name by their id on the Hugging Face Hub "
        "(extra hub); without it the local cache is looked in.",
        rich_help_panel=_INPUTS,
    ),
]
Training = Annotated[
    list[Path] | None,
    typer.Option(
        "--training",
        help="Training code: files or directories; with --trained-by the run's config or script too. Repeatable.",
        rich_help_panel=_INPUTS,
    ),
]
TrainedBy = Annotated[
    str | None,
    typer.Option(
        "--trained-by",
        help="The training stack: specforge@PATH, speculators==0.9.0, modelopt, ...; or what the config's ids mean: "
        "layer-output (id i is h\\[i+1]) or boundary (id i is h\\[i]).",
        rich_help_panel=_INPUTS,
    ),
]
CapturedBy = Annotated[
    list[str] | None,
    typer.Option(
        "--captured-by",
        help="The engine that captured the states for --trained-by: sglang@PATH or vllm@PATH. Repeatable.",
        rich_help_panel=_INPUTS,
    ),
]
Serving = Annotated[
    list[str] | None,
    typer.Option(
        "--serving",
        help="The engine: sglang@PATH or vllm@PATH (a source tree or unpacked wheel), or the installed sglang, vllm.",
        rich_help_panel=_INPUTS,
    ),
]
DraftKind = Annotated[
    str | None,
    typer.Option(
        "--draft-kind", help="eagle3, peagle, dflash, dspark; recognised if left out.", rich_help_panel=_INPUTS
    ),
]
Launch = Annotated[
    Path | None,
    typer.Option(
        "--launch",
        help="A script with the command that starts the engine (sglang.launch_server, vllm serve). Read, never run.",
        rich_help_panel=_INPUTS,
    ),
]
Dump = Annotated[
    Path | None,
    typer.Option(
        "--dump",
        help="Hidden states that were dumped for training: a directory of samples, or one. Only headers are read; with "
        "--probe, the states of one sample.",
        rich_help_panel=_INPUTS,
    ),
]
FineTunedFrom = Annotated[
    Path | None,
    typer.Option(
        "--fine-tuned-from",
        help="The draft that this one was trained further from, a directory with its checkpoint.",
        rich_help_panel=_INPUTS,
    ),
]
NumLayers = Annotated[
    int | None,
    typer.Option(
        "--num-layers",
        min=1,
        max=10_000,
        help="Decoder layers of the target, in place of --target.",
        rich_help_panel=_INPUTS,
    ),
]
TargetClass = Annotated[
    str | None,
    typer.Option(
        "--target-class",
        help="The engine's class for the target, where its config does not say.",
        rich_help_panel=_INPUTS,
    ),
]
Assume = Annotated[
    list[str] | None,
    typer.Option(
        "--assume",
        metavar="NAME=VALUE",
        help="What is taken for granted about the server: pp=2, tbo, tp=N, dp-attention, platform=rocm, "
        "capture-mode=last, runner=v1, images, env:NAME=VALUE. Repeatable.",
        rich_help_panel=_INPUTS,
    ),
]


BaselineFile = Annotated[
    Path | None,
    typer.Option("--baseline", help="A file of known findings that are not reported (see `eaglelint baseline`)."),
]


class Confidence(str, Enum):
    """How sure a finding is, the surest first."""

    certain = "certain"
    likely = "likely"
    possible = "possible"


NoCache = Annotated[
    bool, typer.Option("--no-cache", help="Neither use nor keep results of earlier runs (EAGLELINT_CACHE_DIR).")
]
