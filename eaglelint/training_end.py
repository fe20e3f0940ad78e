"""What a draft was trained on: declared, derived from code or from a training stack, or suggested by its config."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.artifacts.target import TargetConfig
from eaglelint.project.discovery import display_path
from eaglelint.project.pipelines import PipelineInput
from eaglelint.rule import Facts
from eaglelint.wiring import Condition, Slot, Wiring

if TYPE_CHECKING:
    from eaglelint.artifacts.dump import Dump
    from eaglelint.exported import Dropped, WeightMap
    from eaglelint.practice import Practice
    from eaglelint.serving_end import End
    from eaglelint.survey.facts import Join

__all__ = ["Trained", "trained_join", "training_end", "with_positions"]

_DECLARED = {"layer-output": 1, "boundary": 0}


@dataclass(frozen=True, slots=True)
class Trained:
    """What is known of the training end."""

    wiring: Wiring | None = None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    practice: Practice | None = None
    weights: tuple[WeightMap, ...] = ()


def training_end(
    pipeline: PipelineInput,
    draft: DraftConfig,
    target: TargetConfig | None,
    dump: Dump | None,
    ends: Sequence[End],
    kind: str,
    progress: Callable[[str], None],
) -> Trained:
    if pipeline.trained_by in _DECLARED:
        from eaglelint.provenance import contradicted_convention

        note = contradicted_convention(draft, pipeline.trained_by, None if target is None else target.num_layers)
        declared = _declared(pipeline.trained_by, draft, target, [end.wiring for end in ends])
        return Trained(declared, notes=(note,) if note else ())
    if pipeline.trained_by is not None:
        progress(f"deriving what {pipeline.trained_by} trains")
        return _by_stack(pipeline, draft, target, ends, kind)
    code, notes, problems = _without_configs(pipeline.training)
    if not code:
        from eaglelint.provenance import inferred_training

        inferred = inferred_training(draft, None if target is None else target.num_layers)
        return Trained(inferred, problems, notes)
    if target is None:
        return Trained(None, problems, notes)
    from eaglelint.trainers import derive_training

    progress("deriving what the draft was trained on")
    sample = None if dump is None else dump.states(target)
    result = derive_training(code, num_layers=target.num_layers, relative_to=Path.cwd(), sample=sample)
    return Trained(result.wiring, problems + result.problems, notes, practice=result.practice)


def _without_configs(training: tuple[Path, ...]) -> tuple[tuple[Path, ...], tuple[str, ...], tuple[str, ...]]:
    """The training code, and of each run's config among it a sentence: whose it is, or that it cannot be read."""
    named = [path for path in training if path.is_file() and path.suffix.lower() != ".py"]
    if not named:
        return training, (), ()
    from eaglelint.trainers.recipe import is_recipe
    from eaglelint.trainers.trained import stack_of

    notes: list[str] = []
    problems: list[str] = []
    configs = [path for path in named if is_recipe(path)]
    for path in configs:
        name = display_path(path)
        try:
            stack = stack_of(path, name)
        except ValueError as error:
            problems.append(str(error))
            continue
        notes.append(
            f"{name} is the config of a run of {stack}: it says something with that stack's source alone. Pass "
            f"--trained-by {stack}@PATH."
            if stack is not None
            else f"{name} is no Python, and no training stack's config by its keys: not read. Name the stack with "
            "--trained-by."
        )
    return tuple(path for path in training if path not in configs), tuple(notes), tuple(problems)


def _by_stack(
    pipeline: PipelineInput, draft: DraftConfig, target: TargetConfig | None, ends: Sequence[End], kind: str
) -> Trained:
    """What a public training stack trains, by its own source and the run's config."""
    from eaglelint.serving import open_serving
    from eaglelint.trainers.trained import trained_by

    assert pipeline.trained_by is not None
    captured_by = [open_serving(spec, root=Path.cwd()) for spec in pipeline.captured_by]
    found = trained_by(
        pipeline.trained_by,
        draft,
        target,
        pipeline.training,
        captured_by or [end.source for end in ends],
        kind=kind,
        named=bool(captured_by),
        display={path: display_path(path) for path in pipeline.training},
    )
    by_stack = Trained(found.wiring, found.problems, found.notes, found.dropped, weights=found.weights)
    code = tuple(
        path for path in pipeline.training if path.suffix.lower() == ".py" and path.is_file() and path not in found.own
    )
    return by_stack if not code or target is None else _with_own_code(by_stack, code, target)


def _with_own_code(by_stack: Trained, code: tuple[Path, ...], target: TargetConfig) -> Trained:
    """A stack's run with scripts of the user's own: what they capture and feed counts, where it can be told."""
    from eaglelint.trainers import derive_training

    own = derive_training(code, num_layers=target.num_layers, relative_to=Path.cwd())
    names = " and ".join(display_path(path) for path in code)
    wiring = by_stack.wiring
    if own.wiring is not None and own.wiring.slots and all(slot.known for slot in own.wiring.slots):
        wiring, note = own.wiring, f"{names}: what it captures counts, and not what the stack does by itself."
    else:
        why = own.wiring.reason if own.wiring is not None and own.wiring.reason else "it captures nothing"
        note = f"{names} does not tell what was trained on ({why}): the stack's own way is taken."
        if wiring is not None:
            status = "conditional" if wiring.status == "exact" else wiring.status
            condition = Condition(f"if {names}, which could not be followed, captures as the stack itself does")
            wiring = replace(wiring, status=status, conditions=(*wiring.conditions, condition))
    problems = by_stack.problems + own.problems
    return Trained(wiring, problems, (*by_stack.notes, note), by_stack.dropped, own.practice, by_stack.weights)


def _code_of(pipeline: PipelineInput) -> tuple[Path, ...]:
    from eaglelint.trainers.recipe import is_recipe

    return tuple(path for path in pipeline.training if not is_recipe(path))


def trained_join(pipeline: PipelineInput) -> Join | None:
    from eaglelint.trainers import joined

    return joined.trained_join(_code_of(pipeline), Path.cwd())


def with_positions(facts: Facts, pipeline: PipelineInput) -> Facts:
    from eaglelint.trainers.positions import trained_rotary, uncounted_positions

    code = _code_of(pipeline)
    return replace(
        facts,
        trained_rotary=trained_rotary(code, Path.cwd()),
        uncounted_positions=uncounted_positions(code, Path.cwd()),
    )


def _declared(
    trained_by: str, draft: DraftConfig, target: TargetConfig | None, served: Sequence[Wiring]
) -> Wiring | None:
    """The wiring that the config's ids mean under a convention that the user declares.

    Of several lists it is the one that an engine reads: others are there for another consumer's convention.
    """
    if not draft.layer_ids:
        return None
    read = {wiring.ids_from for wiring in served}
    chosen = next((found for found in draft.layer_ids if found.key_path in read), draft.layer_ids[0])
    return Wiring(
        party="training",
        name=f"declared: {trained_by} ids",
        slots=tuple(Slot("stream", value + _DECLARED[trained_by]) for value in chosen.values),
        status="exact",
        draft_kind=draft.kind,
        layer_ids=chosen.values,
        num_layers=target.num_layers if target is not None else None,
        ids_from=chosen.key_path,
        declared=True,
    )
