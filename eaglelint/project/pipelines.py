"""Which draft meets which target, training and serving: from flags, from the settings, else from what lies about."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from eaglelint.exceptions import WrongUsage
from eaglelint.hub import located
from eaglelint.project.discovery import Discovered, discover, display_path

if TYPE_CHECKING:
    from eaglelint.project.settings import Pipeline, ProjectSettings

__all__ = ["PipelineInput", "assemble_pipelines", "touches"]


@dataclass(frozen=True, slots=True)
class PipelineInput:
    """One draft and what it meets, as paths and names that are not read yet.

    Attributes:
        name: What reports call it.
        draft: The draft's config, or a directory that holds its ``config.json``.
        target: The target's, likewise; ``None`` where it is not known.
        training: Python files or directories that may hold the training code.
        trained_by: A training stack, ``NAME@PATH``, ``NAME==VERSION`` or ``NAME``; ``layer-output`` or ``boundary``.
        captured_by: The engines that captured the states for such a stack, where the user says it.
        serving: ``ENGINE==VERSION``, ``ENGINE@PATH`` or ``ENGINE``; empty for every bundled engine.
        assume: Conditions that are taken as given.
        draft_kind: The kind of draft where the user says it.
        launch: A script with the command that starts the engine.
        dump: Hidden states that were dumped for training: a directory of samples, or one.
        fine_tuned_from: The draft that this one was trained further from.
        usual_serving: The engines are all that are bundled; nobody named one.
        guessed_target: The target is the one that lies nearest; nobody said that the draft belongs to it.
        notes: Sentences on what was left open, for standard error.
    """

    name: str
    draft: Path
    target: Path | None = None
    training: tuple[Path, ...] = ()
    trained_by: str | None = None
    serving: tuple[str, ...] = ()
    assume: tuple[str, ...] = ()
    draft_kind: str | None = None
    notes: tuple[str, ...] = ()
    launch: Path | None = None
    guessed_target: bool = False
    captured_by: tuple[str, ...] = ()
    dump: Path | None = None
    fine_tuned_from: Path | None = None
    usual_serving: bool = False


def assemble_pipelines(
    paths: Sequence[Path],
    *,
    draft: Path | None = None,
    target: Path | None = None,
    training: Sequence[Path] = (),
    trained_by: str | None = None,
    captured_by: Sequence[str] = (),
    serving: Sequence[str] = (),
    assume: Sequence[str] = (),
    draft_kind: str | None = None,
    launch: Path | None = None,
    dump: Path | None = None,
    fine_tuned_from: Path | None = None,
    settings: ProjectSettings | None = None,
    discovered: Discovered | None = None,
    online: bool = False,
) -> tuple[PipelineInput, ...]:
    """The pipelines to scan, from the first source that has any.

    ``draft`` makes one; else each ``[[tool.eaglelint.pipeline]]`` is one, of which ``paths`` touch a file; else each
    draft found under ``paths`` is one. The other flags then override what every pipeline says, and what a draft given
    by flag leaves open is looked for under ``paths``.

    Args:
        paths: What the user named; the directory of the settings, or the working directory, where nothing is.
        discovered: What :func:`discover` found under ``paths``, where that was done already.
        online: Whether models that are named by their id on the Hub may be fetched.

    Raises:
        UnreadableInput: A named path does not exist, or a named JSON file cannot be read.
        WrongUsage: A flag needs a draft, and there is none.
    """
    pipelines = _configured(settings, paths, online)
    draft = None if draft is None else located(draft, online=online)
    target = None if target is None else located(target, online=online)
    if draft is not None:
        given = PipelineInput(display_path(draft), draft)
        found = discovered or (_discover(paths, settings) if paths else None)
        pipelines = (_complete(given, found, paths),) if found is not None else (given,)
    elif not pipelines:
        named = tuple(paths) or ((settings.root if settings is not None else None) or Path.cwd(),)
        found = discovered or _discover(named, settings)
        pipelines = tuple(_complete(PipelineInput(display_path(path), path), found, named) for path in found.drafts)
    about = (target, trained_by, launch, dump, fine_tuned_from)
    if not pipelines and (training or any(given is not None for given in about)):
        raise WrongUsage("There is no draft to check: none was found. Name its config with --draft.")
    shared = tuple(settings.settings.assume) if settings is not None else ()
    return tuple(
        replace(
            pipeline,
            target=target or pipeline.target,
            training=tuple(training) or pipeline.training,
            trained_by=trained_by or pipeline.trained_by,
            captured_by=tuple(captured_by) or pipeline.captured_by,
            serving=tuple(serving) or pipeline.serving,
            assume=(*shared, *pipeline.assume, *assume),
            draft_kind=draft_kind or pipeline.draft_kind,
            launch=launch or pipeline.launch,
            dump=dump or pipeline.dump,
            fine_tuned_from=fine_tuned_from or pipeline.fine_tuned_from,
            guessed_target=pipeline.guessed_target and target is None,
            notes=() if target is not None else pipeline.notes,
        )
        for pipeline in pipelines
    )


def _discover(paths: Sequence[Path], settings: ProjectSettings | None) -> Discovered:
    if settings is None:
        return discover(paths)
    return discover(paths, exclude=settings.settings.exclude, root=settings.root)


def _configured(settings: ProjectSettings | None, paths: Sequence[Path], online: bool) -> tuple[PipelineInput, ...]:
    if settings is None:
        return ()
    base = settings.root or Path.cwd()
    pipelines = tuple(_from_settings(pipeline, base, online) for pipeline in settings.settings.pipeline)
    return tuple(pipeline for pipeline in pipelines if touches(paths, pipeline)) if paths else pipelines


def touches(paths: Sequence[Path], pipeline: PipelineInput) -> bool:
    """Whether a named path is a file of the pipeline, lies in one of its directories, or holds one of its files."""
    engines = (Path(name.partition("@")[2]) for name in pipeline.serving if "@" in name)
    single = (pipeline.draft, pipeline.target, pipeline.launch, pipeline.dump, pipeline.fine_tuned_from)
    named = (path for path in single if path is not None)
    files = [_normal(path) for path in (*named, *pipeline.training, *engines)]
    return any(file.is_relative_to(path) or path.is_relative_to(file) for path in map(_normal, paths) for file in files)


def _normal(path: Path) -> Path:
    return Path(os.path.abspath(path))


def _from_settings(pipeline: Pipeline, base: Path, online: bool) -> PipelineInput:
    draft = _model(pipeline.draft, base, online)
    return PipelineInput(
        name=pipeline.name or display_path(draft),
        draft=draft,
        target=None if pipeline.target is None else _model(pipeline.target, base, online),
        training=tuple(base / path for path in pipeline.training),
        trained_by=None if pipeline.trained_by is None else _serving_from(pipeline.trained_by, base),
        captured_by=tuple(_serving_from(name, base) for name in pipeline.captured_by),
        serving=tuple(_serving_from(name, base) for name in pipeline.serving),
        draft_kind=pipeline.draft_kind,
        launch=None if pipeline.launch is None else base / pipeline.launch,
        dump=None if pipeline.dump is None else base / pipeline.dump,
        fine_tuned_from=None if pipeline.fine_tuned_from is None else base / pipeline.fine_tuned_from,
    )


def _model(name: str, base: Path, online: bool) -> Path:
    """A path relative to the settings; else what has this name on the Hub, where that is at hand."""
    path = base / name
    if path.exists():
        return path
    found = located(Path(name), online=online)
    return path if found == Path(name) else found


def _serving_from(name: str, base: Path) -> str:
    engine, at, path = name.partition("@")
    return f"{engine}@{base / path}" if at else name


def _complete(pipeline: PipelineInput, found: Discovered, paths: Sequence[Path]) -> PipelineInput:
    """Fill in what lies about: one target, the Python code outside of engines, the engines."""
    engines = {engine.path for engine in found.engine_roots}
    target, note = _target_of(pipeline.draft, found, engines, paths)
    return replace(
        pipeline,
        target=target,
        training=found.python,
        serving=tuple(f"{engine.name}@{display_path(engine.path)}" for engine in found.engine_roots),
        notes=(note,) if note else (),
        launch=_launch_of(pipeline.draft, found),
        guessed_target=target is not None,
    )


def _launch_of(draft: Path, found: Discovered) -> Path | None:
    """The one script that starts an engine with this draft, as far as it can be told.

    It names the draft's directory. A script that names none, or the only draft's by its public name, will do where it
    is the only one.
    """
    if not found.launches:
        return None
    from eaglelint.artifacts.launch import read_launch

    name = _config_file(_normal(draft)).parent.name
    naming, others = [], []
    for path in found.launches:
        option = read_launch(path, display_path(path)).get("draft")
        value = None if option is None else option.value
        if value is not None and Path(value).name == name:
            naming.append(path)
        elif value is None or len(found.drafts) == 1:
            others.append(path)
    chosen = naming or others
    return chosen[0] if len(chosen) == 1 else None


def _target_of(
    draft: Path, found: Discovered, engines: set[Path], paths: Sequence[Path]
) -> tuple[Path | None, str | None]:
    """The one target that is nearest to a draft, or a sentence that says why none was taken."""
    draft = _config_file(_normal(draft))
    if draft in found.targets:
        return draft, None
    targets = [path for path in found.targets if path != draft and engines.isdisjoint(path.parents)]
    if not targets:
        return None, f"{display_path(draft)}: no target's config was found beside it. Name it with --target."
    tops = {_normal(path) for path in paths}
    for directory in draft.parents:
        below = [path for path in targets if directory in path.parents]
        if len(below) > 1:
            sibling = [path for path in below if path.is_relative_to(directory / "target")]
            below = sibling if len(sibling) == 1 else below
        if len(below) == 1:
            return below[0], None
        if below:
            names = ", ".join(display_path(path) for path in below[:5]) + (", ..." if len(below) > 5 else "")
            sentence = f"{display_path(draft)}: {len(below)} configs could be its target ({names})."
            return None, f"{sentence} Name one with --target."
        if directory in tops:
            break
    if len(targets) == 1:
        return targets[0], None
    return None, f"{display_path(draft)}: {len(targets)} configs could be its target. Name one with --target."


def _config_file(path: Path) -> Path:
    return path / "config.json" if path.is_dir() else path
