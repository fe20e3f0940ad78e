"""What becomes of the weights that a draft brings: the engine's own loading and its sharing with the target, run.

The question that is put to the code: a draft whose checkpoint holds an embedding, a head and a vocabulary map, of the
shapes that its config says and with other values than the target's. What its class has in their place is the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eaglelint.engines.base import DraftReads, EngineSource, config_object, stand_in
from eaglelint.engines.loading import EMBEDDING, HEAD, MAP, DraftLoading, Part, Trial
from eaglelint.source.lookup import find_method
from eaglelint.source.machine import BudgetExceeded, Machine, TooLong
from eaglelint.source.values import ClassValue, Instance
from eaglelint.survey.facts import Unused
from eaglelint.survey.places import place_of, place_of_definition

__all__ = ["Shapes", "unused_weights"]

Shapes = Mapping[str, tuple[tuple[int, int], tuple[int, int]]]
"""The shapes of the draft's module and of the target's, by the module's name."""


def unused_weights(
    source: EngineSource,
    engine: DraftLoading,
    classes: tuple[ClassValue, ClassValue],
    kind: str,
    config: dict[str, Any],
    shapes: Shapes,
) -> tuple[Unused, ...]:
    """What a draft brings in vain, as far as the code tells; ``classes`` are the draft's and the target's."""
    machine = Machine(source.tree)
    model, target = (machine.new_instance(Instance(cls, name=cls.info.name)) for cls in classes)
    model.attrs["config"] = config_object(machine, config, reads=DraftReads())
    trial = _trial(machine, model, target, shapes)
    machine.watched = tuple(item for part in trial.theirs.values() for item in (part.module, part.weight))

    def run() -> tuple[Unused, ...] | None:
        return _read(machine, trial) if engine.load_draft(machine, source, kind, trial) else None

    try:
        outcomes = machine.explore(run, None)
    except (BudgetExceeded, RecursionError, TooLong):
        return ()
    answers = {outcome.value for outcome in outcomes if outcome.raised is None}
    return answers.pop() or () if len(answers) == 1 else ()


def _trial(machine: Machine, model: Instance, target: Instance, shapes: Shapes) -> Trial:
    def part(name: str, shape: tuple[int, int]) -> Part:
        weight = stand_in(machine, f"{name}.weight", shape=shape)
        return Part(stand_in(machine, name, weight=weight), weight)

    own = {name: part(f"the draft's {name}", shape) for name, (shape, _) in shapes.items()}
    theirs = {name: part(f"the target's {name}", shape) for name, (_, shape) in shapes.items()}
    inner = stand_in(machine, "the draft's layers", **{EMBEDDING: own[EMBEDDING].module})
    model.attrs.update({HEAD: own[HEAD].module, "model": inner})
    inner = stand_in(machine, "the target's layers", **{EMBEDDING: theirs[EMBEDDING].module})
    target.attrs.update({HEAD: theirs[HEAD].module, "model": inner})
    return Trial(model, own, target, theirs)


def _read(machine: Machine, trial: Trial) -> tuple[Unused, ...] | None:
    """Which of its own the draft is left without; None where something unknown stands in its place."""
    found: list[Unused] = []
    for name, holder in ((EMBEDDING, trial.model.attrs["model"]), (HEAD, trial.model)):
        own, theirs = trial.own[name], trial.theirs[name]
        module = holder.attrs.get(name)
        weight = module.attrs.get("weight") if isinstance(module, Instance) else None
        if weight is theirs.weight:
            shared = (theirs.module, theirs.weight)
            sites = [event.site for event in machine.events if any(event.value is item for item in shared)]
            found.append(Unused(name, "replaced", place_of(sites[-1])))
        elif weight is not own.weight:
            return None
        else:
            sites = [site for original, _, site in trial.handed if original == f"{name}.weight" and site is not None]
            found += [Unused(name, "left out", place_of(site)) for site in sites[-1:]]
    return (*found, *_dropped(machine, trial))


def _dropped(machine: Machine, trial: Trial) -> list[Unused]:
    """The map, where the class is left with None under the very name that the map was loaded by."""
    names = [name for original, name, site in trial.handed if original == MAP and site is None]
    method = find_method(machine, trial.model.cls, "load_weights") if trial.model.cls is not None else None
    if not names or method is None or trial.model.attrs.get(names[-1], trial) is not None:
        return []
    return [Unused(MAP, "dropped", place_of_definition(method.module, method.info))]
