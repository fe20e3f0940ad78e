"""``--trained-by`` a training stack: the user's run of it, from the draft's config and the training config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.artifacts.target import TargetConfig
from eaglelint.exceptions import WrongUsage
from eaglelint.exported import Dropped, WeightMap
from eaglelint.provenance import contradiction
from eaglelint.trainers.base import Run
from eaglelint.trainers.public import TRAINERS, open_trainer
from eaglelint.trainers.recipe import Recipe, is_recipe, marks_in, read_recipe
from eaglelint.trainers.stack import Engines, TrainerHandle
from eaglelint.wiring import Condition, Wiring

if TYPE_CHECKING:
    from eaglelint.serving import ServingEnd

__all__ = ["Trained", "stack_of", "trained_by"]

# Flags of a draft's norms and positions that training reads and serving needs: speculators 0.9.0,
# train/config/schema.py; SpecForge 0.2.0 and ModelOpt 0.47.0 take them from the draft's config.
_SERVED_FLAGS = ("fc_norm", "norm_before_fc", "norm_before_residual", "norm_output", "rope_scaling", "rope_theta")


@dataclass(frozen=True, slots=True)
class Trained:
    """What a stack trained, ``problems`` with the files and ``notes`` on what was taken for granted.

    ``own`` are those of the training files that are the stack's own scripts: how they dump is part of ``wiring``.
    """

    wiring: Wiring | None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    own: tuple[Path, ...] = ()
    weights: tuple[WeightMap, ...] = ()


def trained_by(
    spec: str,
    draft: DraftConfig,
    target: TargetConfig | None,
    training: Sequence[Path],
    ends: Sequence[ServingEnd],
    *,
    kind: str,
    named: bool,
    display: Mapping[Path, str],
) -> Trained:
    """What the run of a training stack that a draft comes from was trained on.

    Args:
        spec: ``specforge@PATH``, ``specforge==0.2.0`` or ``specforge``.
        draft: The exported draft.
        target: Its target.
        training: The run's configs and scripts among them are read.
        ends: The engines at hand, for what a stack lets an engine capture.
        kind: The kind of the draft.
        named: Whether the user says that these engines captured the states.
        display: How messages name the files of ``training``.

    Raises:
        UnreadableInput: There is no such stack.
        WrongUsage: It is not known, or the target is not.
    """
    handle = open_trainer(spec, root=Path.cwd())
    if target is None:
        raise WrongUsage(
            f"--trained-by {spec}: which states were trained on depends on the target's depth. Pass --target PATH, or "
            "--num-layers N and --target-class CLASS."
        )
    recipes = [path for path in training if is_recipe(path)]
    recipe = read_recipe(recipes, handle.trainer.recipe, handle.bench(target.num_layers), display)
    own = {path: way for path in training if (way := _dumps(handle, path)) is not None}
    if len(set(own.values())) == 1:
        recipe = replace(recipe, way=next(iter(own.values())))
    notes = tuple(text for text in (contradiction(draft, handle.trainer.name, handle.label),) if text)
    kind = recipe.kind if recipe.kind in handle.trainer.kinds else kind
    if kind not in handle.trainer.kinds:
        kinds = ", ".join(handle.trainer.kinds)
        return Trained(
            None, recipe.problems, (*notes, f"{handle.label} trains {kinds}, not {kind}: --trained-by says more.")
        )
    engines = Engines(tuple(ends), (*target.architectures, *target.text_architectures), target.data, named)
    run = _run(handle, kind, draft, target, recipe)
    wiring = _derived(handle, run, engines, recipe)
    ids_known = recipe.layer_ids is not None
    if not ids_known:
        wiring = _from_config(handle, run, draft, wiring, engines)
    elif recipe.place is not None:
        wiring = replace(wiring, evidence=(recipe.place, *wiring.evidence))
    if handle.trainer.recipe.ids and not ids_known and not _carries_ids(handle, run):
        if recipe.unread:
            wiring = _with(
                wiring, f"if {' and '.join(recipe.unread)}, which could not be read, named no other layer ids"
            )
        elif not recipes:
            text = "if the run's own config named no other layer ids: the exporter does not write them"
            wiring = _with(wiring, text)
    problems = (*recipe.problems, *handle.problems)
    weights, _ = handle.weights(run)
    return Trained(wiring, problems, notes, tuple(_dropped(handle, run, draft, recipe)), tuple(own), weights)


def _dumps(handle: TrainerHandle, path: Path) -> str | None:
    """The way that a file of the user's names, where it is a copy of a script of the stack's checkout."""
    bench = handle.bench(1)
    for file, way in handle.trainer.recipe.scripts.items():
        if path.name == Path(file).name and bench.has(file) and _same_content(path, bench.path(file)):
            return way
    return None


def _same_content(path: Path, other: Path) -> bool:
    try:
        return path.read_bytes() == other.read_bytes()
    except OSError:
        return False


def stack_of(path: Path, name: str) -> str | None:
    """The stack whose training config a file is, by the keys that it sets; None where none or several come close.

    Raises:
        ValueError: It cannot be read or does not parse; the message is for a person.
    """
    marks = {stack: marks_in(path, name, trainer.recipe) for stack, trainer in TRAINERS.items()}
    most = max(marks.values())
    found = [stack for stack, count in marks.items() if count == most]
    return found[0] if most and len(found) == 1 else None


def _run(handle: TrainerHandle, kind: str, draft: DraftConfig, target: TargetConfig, recipe: Recipe) -> Run:
    architecture: dict[str, Any] = {}
    for prefix in handle.trainer.recipe.architecture:
        for path, value in recipe.values.items():
            if path[:-1] == prefix:
                architecture[path[-1]] = value
    data = {**draft.data, "architecture": architecture} if architecture else draft.data
    ways = handle.ways(kind, target.num_layers)
    way = recipe.way if recipe.way in ways else None
    return Run(kind, target.num_layers, recipe.layer_ids, data, target.data, way or (ways[0] if ways else "dump"))


def _derived(handle: TrainerHandle, run: Run, engines: Engines, recipe: Recipe) -> Wiring:
    """The wiring of the way that the run's config tells; of all ways where nothing does, if they agree."""
    ways = handle.ways(run.kind, run.num_layers)
    if recipe.way in ways:
        ways = (run.way,)
    found = [handle.derive(replace(run, way=way), engines).wiring for way in ways or (run.way,)]
    known = [wiring for wiring in found if wiring.status != "unknown"]
    if not known:
        return found[0]
    first = min(known, key=lambda wiring: wiring.status == "conditional")
    if any(other.slots != first.slots or other.label != first.label for other in known):
        reason = f"{' and '.join(ways)} train on different states: pass the run's config with --training"
        return replace(first, slots=(), status="unknown", reason=reason)
    return (
        _with(first, f"if it was trained {' or '.join(_known_ways(ways, found))}") if len(known) < len(found) else first
    )


def _known_ways(ways: Sequence[str], found: Sequence[Wiring]) -> list[str]:
    return [way for way, wiring in zip(ways, found, strict=True) if wiring.status != "unknown"]


def _from_config(handle: TrainerHandle, run: Run, draft: DraftConfig, wiring: Wiring, engines: Engines) -> Wiring:
    """The wiring with the ids that the exporter wrote into the draft's config: those of the training."""
    for ids in draft.layer_ids:
        asked = replace(run, layer_ids=ids.values)
        exported = handle.derive(asked, Engines((), (), {})).export
        if exported is None or _at(exported.config, ids.key_path) != list(ids.values):
            continue
        found = handle.derive(asked, engines).wiring
        return replace(found, declared=True, ids_from=ids.key_path)
    return wiring


def _carries_ids(handle: TrainerHandle, run: Run) -> bool:
    """Whether the exporter writes the ids of a run, whatever the draft's config said before."""
    marked = (1, 3, 5) if run.num_layers > 8 else (0, 1, 2)
    bare = replace(run, layer_ids=marked, draft={})
    exported = handle.derive(bare, Engines((), (), {})).export
    return exported is None or any(value == list(marked) for value in _lists(exported.config))


def _dropped(handle: TrainerHandle, run: Run, draft: DraftConfig, recipe: Recipe) -> Iterator[Dropped]:
    """What the run's config sets and the draft's config does not say."""
    export = handle.derive(run, Engines((), (), {})).export
    where = f"{export.steps[0].path}:{export.steps[0].line}" if export is not None and export.steps else ""
    place = recipe.place
    if recipe.layer_ids is not None and place is not None:
        written = [ids for ids in draft.layer_ids]
        if not any(ids.values == recipe.layer_ids for ids in written):
            key = "dflash_config.target_layer_ids" if run.kind in ("dflash", "domino", "dspark") else ""
            path = (
                written[0].key_path
                if written
                else tuple((key or "eagle_config.eagle_aux_hidden_state_layer_ids").split("."))
            )
            exported = list(written[0].values) if written else None
            yield Dropped(
                path[-1],
                list(recipe.layer_ids),
                exported,
                place.path,
                place.line,
                handle.label,
                where,
                path,
                read=_carries_ids(handle, run),
            )
    for key_path, value in recipe.values.items():
        key = key_path[-1]
        if key in _SERVED_FLAGS and value and draft.text_node(key) is None and key not in draft.data:
            found = recipe.places.get(key_path)
            if found is not None:
                yield Dropped(key, value, None, found.path, found.line, handle.label, where, (key,))


def _with(wiring: Wiring, text: str) -> Wiring:
    status = "conditional" if wiring.status == "exact" else wiring.status
    return replace(wiring, status=status, conditions=(*wiring.conditions, Condition(text)))


def _at(data: Any, path: Sequence[str]) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, Mapping) else None
    return list(data) if isinstance(data, list | tuple) else data


def _lists(data: Any) -> Iterator[list[Any]]:
    for value in data.values() if isinstance(data, Mapping) else ():
        if isinstance(value, list | tuple):
            yield list(value)
        yield from _lists(value)
