"""``eaglelint engines``: what serving engines feed a draft, class by class."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eaglelint.cli import options as opt

if TYPE_CHECKING:
    from eaglelint.wiring import LayerIds

__all__ = ["app", "parse_ids"]

app = typer.Typer(help="What serving engines feed a draft, derived from their source.", no_args_is_help=True)


class DiffFormat(str, Enum):
    """How a difference is printed."""

    text = "text"
    svg = "svg"
    html = "html"
    mermaid = "mermaid"
    json = "json"


class EnginesFormat(str, Enum):
    """How the answer is printed."""

    table = "table"
    json = "json"


@app.command("list")
def list_engines() -> None:
    """List the engines that can be named: bundled profiles and installed packages, with what is known of each."""
    from eaglelint.engines.profile_file import bundled_engines, bundled_versions
    from eaglelint.exceptions import UnreadableInput
    from eaglelint.serving import ENGINES, ProfileHandle, open_serving

    for name in sorted({*ENGINES, *bundled_engines()}):
        for version in bundled_versions(name):
            end = open_serving(f"{name}=={version}", root=Path.cwd())
            assert isinstance(end, ProfileHandle)
            if end.profile.by_hand:
                why = "" if name in ENGINES else ", for the source is not interpreted"
                typer.echo(f"{name}=={version}: any target; read by hand{why}")
                for fact in end.profile.by_hand:
                    typer.echo(f"    {fact}")
                continue
            counts = end.profile.counts("eagle3")
            typer.echo(
                f"{name}=={version}: {sum(counts.values())} target classes; for EAGLE-3 "
                + ", ".join(f"{counts[status]} {status}" for status in ("exact", "conditional", "unknown"))
            )
        if name not in ENGINES:
            continue
        try:
            end = open_serving(name, root=Path.cwd())
        except UnreadableInput:
            typer.echo(f"{name}: not installed; {name}@PATH is a source tree")
            continue
        typer.echo(f"{name}: {end.label} is installed {end.where}; {name}@PATH is a source tree")


@app.command("learn")
def learn(
    source: Annotated[
        str, typer.Argument(help="sglang@PATH, a .whl file, or sglang for the installed package; likewise vllm.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The profile to write.")],
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, max=256, help="Processes to use.")] = 2,
) -> None:
    """Learn from an engine's source what ids mean for each target class, to check without the source later."""
    from eaglelint.cli.progress import progress_bar
    from eaglelint.engines.profile_file import write_profile
    from eaglelint.learn.learn import learn_from

    with progress_bar() as progress:
        profile = learn_from(source, Path.cwd(), progress, processes=jobs)
    write_profile(profile, output)
    counts = profile.counts("eagle3")
    typer.echo(
        f"{output}: {profile.label}, {sum(counts.values())} target classes; for EAGLE-3 "
        + ", ".join(f"{counts[status]} {status}" for status in ("exact", "conditional", "unknown")),
        err=True,
    )


@app.command("diff")
def diff(
    before: Annotated[str, typer.Argument(help="As for --serving: sglang==0.5.9, sglang@PATH, a profile's file.")],
    after: Annotated[str, typer.Argument(help="The same for the other side.")],
    layer_ids: Annotated[
        str | None,
        typer.Option("--layer-ids", help="Comma-separated ids, or default; several usual lists if left out."),
    ] = None,
    num_layers: Annotated[
        int, typer.Option("--num-layers", min=1, max=10_000, help="Decoder layers of the target.")
    ] = 61,
    draft_kind: Annotated[str, typer.Option("--draft-kind", help="eagle3, peagle, dflash or dspark.")] = "eagle3",
    format: Annotated[
        DiffFormat, typer.Option("--format", help="Text, a picture (svg, html, mermaid), or JSON.")
    ] = DiffFormat.text,
) -> None:
    """Show what changed between two releases: for which classes the same ids mean other hidden states."""
    import json

    from eaglelint.cli.progress import progress_bar
    from eaglelint.engines.difference import compare_ends, usual_ids
    from eaglelint.exceptions import WrongUsage
    from eaglelint.report.difference import difference_lines, difference_panels, other_lines
    from eaglelint.scan import CAPTURING_KINDS
    from eaglelint.serving import open_serving

    if draft_kind not in CAPTURING_KINDS:
        raise WrongUsage(f"--draft-kind {draft_kind}: known are {', '.join(CAPTURING_KINDS)}.")
    lists = usual_ids(num_layers) if layer_ids is None else [parse_ids(layer_ids)]
    ends = [open_serving(spec, root=Path.cwd()) for spec in (before, after)]
    with progress_bar() as progress:
        found = compare_ends(ends[0], ends[1], draft_kind, num_layers, lists, progress)
    for problem in (*ends[0].problems, *ends[1].problems):
        typer.echo(f"error: {problem}", err=True)
    if format is DiffFormat.json:
        typer.echo(json.dumps(found.to_json(), indent=2))
        return
    if format is DiffFormat.text:
        for line in difference_lines(found):
            typer.echo(line)
        return
    shown = difference_panels(found)
    if format is DiffFormat.svg:
        from eaglelint.report.picture import svg_document

        typer.echo(svg_document(shown))
    elif format is DiffFormat.html:
        from eaglelint.report.page import html_document

        title = f"eaglelint: {found.before} → {found.after}"
        typer.echo(html_document(shown, title, tuple(other_lines(found))), nl=False)
    else:
        from eaglelint.report.mermaid import mermaid_document

        typer.echo(mermaid_document(shown), nl=False)


@app.command("show")
def show(
    source: Annotated[
        str, typer.Argument(help="sglang==0.5.9 a profile, sglang@PATH a source tree, sglang the installed package.")
    ],
    num_layers: Annotated[int, typer.Option("--num-layers", min=1, max=10_000, help="Decoder layers of the target.")],
    layer_ids: Annotated[
        str, typer.Option("--layer-ids", help="Comma-separated ids, or default for the engine's own list.")
    ] = "default",
    draft_kind: Annotated[
        str, typer.Option("--draft-kind", help="eagle3, peagle, dflash or dspark: which setter is used.")
    ] = "eagle3",
    target_class: Annotated[
        list[str] | None, typer.Option("--target-class", help="Only these classes. Repeatable.")
    ] = None,
    assume: opt.Assume = None,
    format: Annotated[
        EnginesFormat, typer.Option("--format", help="A table, or JSON as schemas/wiring.schema.json has it.")
    ] = EnginesFormat.table,
    no_cache: opt.NoCache = False,
) -> None:
    """Show, for each target class of an engine, which states given ids or the default list bring to the draft."""
    from eaglelint.artifacts.target import TargetConfig
    from eaglelint.cache.units import cache_directory, caching
    from eaglelint.cli.progress import progress_bar
    from eaglelint.deployment import parse_assumptions
    from eaglelint.derive import ServingRequest
    from eaglelint.exceptions import UnreadableInput, WrongUsage
    from eaglelint.report.json import render_json, wiring_document
    from eaglelint.scan import CAPTURING_KINDS
    from eaglelint.serving import open_serving

    ids = parse_ids(layer_ids)
    deployment = parse_assumptions(assume or ())
    if draft_kind not in CAPTURING_KINDS:
        raise WrongUsage(f"--draft-kind {draft_kind}: known are {', '.join(CAPTURING_KINDS)}.")
    end = open_serving(source, root=Path.cwd())
    bindings = end.target_classes(draft_kind) if not target_class else []
    for name in target_class or []:
        binding = end.target_class(name)
        if binding is None:
            raise UnreadableInput(
                f"{end.label} has no class {name}. Run engines show without --target-class for all it has."
            )
        bindings.append(binding)
    wirings = []
    with caching(None if no_cache else cache_directory()), progress_bar() as progress:
        for binding in bindings:
            progress(f"deriving {binding if isinstance(binding, str) else getattr(binding.item, 'name', '')}")
            request = ServingRequest(
                binding, num_layers, TargetConfig.synthetic(num_layers).data, draft_kind, None, ids, deployment
            )
            wirings.append(end.wiring(request))
    for problem in end.problems:
        typer.echo(f"error: {problem}", err=True)
    if format is EnginesFormat.json:
        typer.echo(render_json(wiring_document(wirings)))
        return
    width = max((len(wiring.target_class or "") for wiring in wirings), default=0)
    for wiring in wirings:
        typer.echo(
            f"{wiring.target_class:<{width}}  {wiring.status:<11}  {wiring}"
            + (f"  ({wiring.reason})" if wiring.reason else "")
        )


def parse_ids(text: str) -> LayerIds:
    from eaglelint.exceptions import WrongUsage

    if text.strip() == "default":
        return "default"
    if not re.fullmatch(r"\s*-?\d+\s*(,\s*-?\d+\s*)*", text):
        raise WrongUsage(f"--layer-ids {text}: write comma-separated integers, such as 2,30,58, or default.")
    return tuple(int(part) for part in text.split(","))
