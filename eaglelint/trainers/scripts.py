"""The wiring of a user's own training code: what it captures, what it saves, and what its dataset makes of that.

Every function that could matter is run with unknown arguments. What a run saved is handed to the runs of the code
that loads it; the concatenation that comes out is what ``fc`` was trained on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

from eaglelint.cache.units import remember
from eaglelint.practice import Practice
from eaglelint.source.machine import Budget
from eaglelint.source.slices import Site
from eaglelint.source.tree import SourceTree
from eaglelint.source.values import Closure, Function, Unknown
from eaglelint.trainers.choice import Choice, choose, choose_saved
from eaglelint.trainers.evidence import evidence
from eaglelint.trainers.files import (
    Entry,
    capturing,
    entries,
    find_files,
    naming,
    rests_on_defaults,
    source_tree,
    starting_engines,
)
from eaglelint.trainers.loads import loads_something, run_loader
from eaglelint.trainers.observe import Seen, observe, of_sample
from eaglelint.trainers.outside import HOOKS
from eaglelint.trainers.runs import Path as RunPath
from eaglelint.trainers.runs import Run, Save, run_entry
from eaglelint.trainers.shapes import Keyed, Many, Shape, states_in
from eaglelint.wiring import Condition, Slot, Wiring

__all__ = ["TrainingResult", "derive_training"]

_OF_MANY = Budget(steps=12_000)  # a run where there are very many of them
_ENGINES = ("sglang", "tensorrt_llm", "vllm")


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """The wiring, None where nothing is captured; ``problems`` has a sentence for each file that does not parse.

    ``practice`` is what else the code shows.
    """

    wiring: Wiring | None
    problems: tuple[str, ...] = ()
    practice: Practice = field(default_factory=Practice)


@dataclass(frozen=True, slots=True)
class _Example:
    """One reading of the training code: what it feeds ``fc``, on which path, and where that was joined."""

    choice: Choice
    run: Run
    path: RunPath
    dump: _Dump | None = None
    site: Site | None = None


@dataclass(frozen=True, slots=True)
class _Dump:
    """What one path through one entry saved."""

    run: Run = field(compare=False)
    path: RunPath = field(compare=False)
    saves: tuple[Save, ...] = ()

    @property
    def keys(self) -> frozenset[str]:
        """The names under which it keeps states; empty where it keeps them under none."""
        shapes = [save.shape for save in self.saves]
        if not all(isinstance(shape, Keyed) for shape in shapes):
            return frozenset()
        pairs = [pair for shape in shapes if isinstance(shape, Keyed) for pair in shape.items]
        return frozenset(str(key) for key, item in pairs if any(True for _ in states_in(item)))


def derive_training(
    paths: tuple[Path, ...],
    *,
    num_layers: int,
    relative_to: Path,
    budget: Budget | None = None,
    sample: Mapping[str, tuple[int, str]] | None = None,
) -> TrainingResult:
    """Which states ``fc`` was trained on, by the code at these paths; never raises for what the code does.

    Args:
        paths: Files, and directories whose Python files all count (engines' packages and environments left out).
        num_layers: N of the target.
        relative_to: Where the paths in evidence start.
        budget: Bounds of the run of each function.
        sample: What a sample of the dump holds: by key the number of states, and how they are kept.
    """
    files = find_files(paths)
    tree = source_tree(paths, files, relative_to)

    def derive() -> tuple[Wiring | None, Practice]:
        starts = entries(tree, files)
        seen = Seen()
        worth = capturing(starts)
        seen.runs = _runs(tree, worth.entries, num_layers, budget or (_OF_MANY if worth.thinned else None))
        if worth.thinned:  # whoever calls them otherwise may be among the others
            for run in seen.runs:
                run.doubts += _own_doubt(run)
        wiring = _beside(_wiring(tree, starts, seen, num_layers, budget), worth.left)
        wiring = _or_by_an_engine(wiring, starting_engines(tree, files), num_layers)
        practice = observe(tree, files, starts, seen, num_layers, budget)
        if sample:
            loaded = of_sample(tree, starts, sample, num_layers, budget)
            practice = replace(
                practice,
                heads=practice.heads + (() if practice.heads else loaded.heads),
                loads=loaded.loads,
                loaded_label=loaded.loaded_label,
                load_place=loaded.load_place,
            )
        return wiring, practice

    places = [[str(path) for path in group] for group in (paths, files, tree.roots)]
    parts = (places, str(relative_to), num_layers, astuple(budget) if budget is not None else None, dict(sample or {}))
    wiring, practice = remember("training", parts, tree.snapshot, derive, notes=tree.unreadable, display=tree.display)
    return TrainingResult(wiring, tuple(tree.unreadable[name] for name in sorted(tree.unreadable)), practice)


# --- the capturing side --------------------------------------------------------------------------------------------


def _runs(tree: SourceTree, starts: tuple[Entry, ...], num_layers: int, budget: Budget | None) -> list[Run]:
    """All entries run; those that read what another one sets on the model run again with it."""
    runs = [run_entry(tree, entry, num_layers, budget=budget) for entry in starts]
    patches = _patches(runs)
    doubts = _defaults(runs)
    for index, run in enumerate(runs):
        own = _attributes(run.entry, patches)
        if (run.asked | own) & (patches.keys() - run.patched.keys()):
            again = run_entry(tree, run.entry, num_layers, patches=patches, budget=budget)
            asked = run.asked | own
            conflicts = [p.why for name, p in patches.items() if isinstance(p, Unknown) and name in asked]
            if again.stopped is not None and conflicts:
                again.stopped += f": {'; '.join(conflicts)}"
            again.doubts = [doubt for name, doubt in doubts.items() if name in asked]
            runs[index] = again
    return _outermost(runs)


def _attributes(entry: Entry, names: Iterable[str]) -> set[str]:
    """Those of the names that an entry's class reads or sets as attributes."""
    if entry.owner is None:
        return set()
    text = entry.module.text(entry.owner.line, entry.owner.end_line)
    return {name for name in names if f".{name}" in text}


def _defaults(runs: list[Run]) -> dict[str, str]:
    """The attributes that are set by functions which took their values from their parameters' defaults."""
    return {
        name: f"if {run.entry.place} is called with its defaults"
        for run in runs
        if rests_on_defaults(run.entry)
        for name, values in run.patched.items()
        if any(_is_plain(value) and not isinstance(value, Function | Closure) for value, _ in values)
    }


def _patches(runs: list[Run]) -> dict[str, Any]:
    """What the entries set on the model, by attribute; unknown where they disagree."""
    found: dict[str, list[tuple[Any, Site | None]]] = {}
    for run in runs:
        for name, values in run.patched.items():
            found.setdefault(name, []).extend(values)
    patches: dict[str, Any] = {}
    for name, values in found.items():
        usable = [(value, site) for value, site in values if _is_plain(value)]
        if not usable or name.startswith("__"):
            continue
        first, where = usable[0]
        other = next((site for value, site in usable if not _alike(value, first)), None)
        why = f"{name} is set differently at {where} and at {other}"
        patches[name] = first if other is None else Unknown(why)
    return patches


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple | set | frozenset):
        return bool(value) and all(isinstance(item, int | str) for item in value)
    return isinstance(value, int | str | Function | Closure)


def _alike(left: Any, right: Any) -> bool:
    if isinstance(left, Closure) and isinstance(right, Closure):
        return left.node is right.node
    return bool(left == right)


def _outermost(runs: list[Run]) -> list[Run]:
    """The runs without those of functions that another fruitful run already went through, with real arguments."""
    covered: set[tuple[str, int]] = set()
    for run in runs:
        if _fruitful(run):
            covered |= {key for key in run.followed if key != run.entry.key}
    kept = [run for run in runs if run.entry.key not in covered]
    return kept if any(_fruitful(run) for run in kept) else runs


def _fruitful(run: Run) -> bool:
    return any(_known(path) for path in run.paths)


def _known(path: RunPath) -> bool:
    shapes = [path.returned, *(save.shape for save in (*path.saves, *path.joins))]
    return any(state.slot.known for shape in shapes for state in states_in(shape))


def _dumps(runs: list[Run]) -> list[_Dump]:
    """What the runs saved, each different set of files once."""
    found: dict[tuple[Shape, ...], _Dump] = {}
    for run in runs:
        for path in run.paths:
            saves = tuple(dict.fromkeys(save for save in path.saves if _has_state(save.shape)))
            if saves:
                found.setdefault(tuple(save.shape for save in saves), _Dump(run, path, saves))
    return list(found.values())


def _has_state(shape: Shape) -> bool:
    return any(state.slot.known for state in states_in(shape))


# --- what it is trained on -----------------------------------------------------------------------------------------


def _wiring(tree: SourceTree, starts: list[Entry], seen: Seen, num_layers: int, budget: Budget | None) -> Wiring | None:
    runs = seen.runs
    dumps = _dumps(runs)
    seen.saves = list(dict.fromkeys(save for dump in dumps for save in dump.saves))
    examples: list[_Example] = []
    unfollowed: str | None = None
    for dump in dumps:
        loaders = [
            run_loader(tree, entry, dump.saves, num_layers, budget)
            for entry in naming(starts, dump.keys)
            if loads_something(entry)
        ]
        seen.loaders += [run for run in loaders if run is not None]
        found = _examples(_outermost([run for run in loaders if run is not None]), num_layers, dump)
        if not found:
            reader = next(
                (run for run in loaders if run is not None and run.read and run.entry != dump.run.entry), None
            )
            if reader is not None:
                unfollowed = f"{reader.entry.module.display}:{reader.entry.key[1] or 1}"
            found = _from_saves(dump, num_layers)
        examples += found
    if not dumps:
        examples = _examples(runs, num_layers, None) or _returned(runs, num_layers, None)
    seen.choices = [(example.choice, example.site) for example in examples]
    if examples:
        return _assembled(runs, examples, num_layers, unfollowed)
    return _nothing_told(runs, num_layers)


def _examples(runs: list[Run], num_layers: int, dump: _Dump | None) -> list[_Example]:
    """What the runs concatenate: in what they return, else on the way."""
    found = []
    for run in runs:
        for path in run.paths:
            shapes = [(path.returned, None), *((save.shape, save.site) for save in path.saves)]
            picked = [(choice, site) for shape, site in shapes if (choice := choose(shape, num_layers)) is not None]
            if not picked:
                picked = [
                    (Choice(tuple(states_in(join.shape)), joined=True), join.site)
                    for join in path.joins
                    if all(state.slot.known for state in states_in(join.shape)) and len(list(states_in(join.shape))) > 1
                ]
            found += [_Example(choice, run, path, dump, _join_site(path, choice) or site) for choice, site in picked]
    return found


def _join_site(path: RunPath, choice: Choice) -> Site | None:
    return next((join.site for join in path.joins if tuple(states_in(join.shape)) == choice.inputs), None)


def _from_saves(dump: _Dump, num_layers: int) -> list[_Example]:
    shape = dump.saves[0].shape if len(dump.saves) == 1 else Many(tuple(save.shape for save in dump.saves))
    choice = choose_saved(shape, num_layers)
    if choice is None:
        return []
    return [_Example(choice, dump.run, dump.path, dump, _join_site(dump.path, choice))]


def _returned(runs: list[Run], num_layers: int, dump: _Dump | None) -> list[_Example]:
    """What the runs return without joining it. A dump's single state counts, a model's return value does not."""
    found = []
    for run in runs:
        for path in run.paths:
            choice = choose_saved(path.returned, num_layers, loose=dump is not None)
            if choice is not None:
                found.append(_Example(choice, run, path, dump, _join_site(path, choice)))
    return found


def _assembled(runs: list[Run], examples: list[_Example], num_layers: int, unfollowed: str | None) -> Wiring:
    """One wiring of all readings: the first, with the others as conditions."""
    examples = sorted(examples, key=lambda example: any(not slot.known for slot in example.choice.slots))
    first = examples[0]
    choice = first.choice
    others: dict[tuple[Any, ...], _Example] = {}
    for example in examples[1:]:
        if example.choice.key != choice.key and not _same_but_label(example.choice, choice):
            others.setdefault(example.choice.key, example)
    alike = [first, *(example for example in examples if _same_but_label(example.choice, choice))]
    labelled = next((example.choice.label for example in alike if example.choice.label is not None), None)
    conditions = [Condition(_difference(first, other), other.choice.all_slots) for other in others.values()]
    reasons = [choice.problem] if choice.problem else []
    if others:
        reasons.append(_disagreement(first, next(iter(others.values()))))
    if choice.alternative is not None:
        last = choice.alternative[-1].slot
        slots = tuple(state.slot for state in choice.alternative)
        conditions.append(Condition(f"when {last}, the last state saved, is fed to fc and is not the label", slots))
        reasons.append(f"no code was found that says whether {last}, the last state saved, is the label")
    if choice.doubt is not None:
        conditions.append(Condition(f"if {choice.doubt}"))
    if unfollowed is not None:
        conditions.append(Condition(f"if the code at {unfollowed} feeds fc with the states as they were saved"))
        reasons.append(f"what the code at {unfollowed} makes of the saved states could not be followed")
    dump_run = first.dump.run if first.dump is not None else first.run
    if HOOKS in dump_run.assumptions and _imports_engine(dump_run.entry):
        conditions.append(Condition("if the hooked layers return the whole residual stream"))
        reasons.append("an engine's layers return a branch and the residual apart")
    for run in runs:
        if (
            run.captured
            and run.stopped is not None
            and run.stopped.startswith("whether")
            and run.entry != first.run.entry
        ):
            conditions.append(Condition(f"if the capture at {run.stopped_site} is not used"))
            reasons.append(f"{run.stopped} ({run.stopped_site})")
    reasons += [_unknown_reason(state.reason) for state in choice.inputs if not state.slot.known]
    sources = [dump_run] if first.run is dump_run else [dump_run, first.run]
    for text in dict.fromkeys(doubt for run in sources for doubt in _doubts(run, runs)):
        conditions.append(Condition(text))
        reasons.append(f"other arguments may be given: this holds {text}")
    status = "conditional" if conditions else "exact"
    if not choice.inputs or any(not slot.known for slot in choice.slots):
        status = "unknown"
    wiring = _blank(first, num_layers)
    return replace(
        wiring,
        slots=choice.slots,
        label=labelled.slot if labelled is not None else None,
        status=status,  # type: ignore[arg-type]
        conditions=tuple(conditions),
        assumptions=tuple(sorted(set().union(*(run.assumptions for run in sources)))),
        reason="; ".join(dict.fromkeys(reasons)) or None,
        evidence=evidence(
            choice.inputs,
            labelled,
            first.dump.path if first.dump else first.path,
            first.dump.run if first.dump else first.run,
            first.dump.saves if first.dump else (),
            first.site,
        ),
    )


def _doubts(run: Run, runs: list[Run]) -> list[str]:
    """Where a function was run with its defaults, while a caller that gives others could not be followed."""
    found = list(run.doubts)
    called = any(run.entry.key in other.followed and other.entry != run.entry for other in runs)
    return found + _own_doubt(run) if called else found


def _own_doubt(run: Run) -> list[str]:
    return [f"if {run.entry.place} is called with its defaults"] if rests_on_defaults(run.entry) else []


def _or_by_an_engine(wiring: Wiring | None, places: list[tuple[str, str, int]], num_layers: int) -> Wiring | None:
    """The wiring where some of the code starts an engine that captures: which states it does is not followed here."""
    if not places:
        return wiring
    engine, path, line = places[0]
    if wiring is None:
        reason = (
            f"{path}:{line} lets {engine} capture the states: which ones depends on its release. If the script is a "
            "training stack's own, pass the stack's checkout with --trained-by"
        )
        return Wiring("training", path, (), "unknown", num_layers=num_layers, reason=reason)
    text = f"if the states were not captured by {engine}, which {path}:{line} starts"
    status = "conditional" if wiring.status == "exact" else wiring.status
    return replace(wiring, status=status, conditions=(*wiring.conditions, Condition(text)))


def _beside(wiring: Wiring | None, left: int) -> Wiring | None:
    """The wiring where there were more functions than could be run."""
    if wiring is None or not left:
        return wiring
    text = (
        f"if none of {left} functions that were not run captures anything else: pass the files that do with --training"
    )
    status = "conditional" if wiring.status == "exact" else wiring.status
    return replace(wiring, status=status, conditions=(*wiring.conditions, Condition(text)))


def _same_but_label(left: Choice, right: Choice) -> bool:
    doubtful = any(choice.problem or choice.alternative is not None for choice in (left, right))
    return left.slots == right.slots and (left.label is None or right.label is None) and not doubtful


def _unknown_reason(reason: str | None) -> str:
    return reason or "a captured state could not be told"


def _difference(first: _Example, other: _Example) -> str:
    if other.run.entry == first.run.entry and other.dump == first.dump:
        return other.path.condition
    dumps = [example.dump for example in (first, other) if example.dump is not None]
    if len(dumps) == 2 and dumps[0] != dumps[1] and dumps[0].run.entry == dumps[1].run.entry:
        return dumps[1].path.condition
    return f"when the code at {_place(other)} is used"


def _disagreement(first: _Example, other: _Example) -> str:
    return f"{_place(first)} gives {_text(first.choice.slots)}, {_place(other)} gives {_text(other.choice.slots)}"


def _place(example: _Example) -> str:
    states = [state.site for state in example.choice.inputs if state.site is not None]
    site = example.site if example.site is not None and example.dump is None else (states[0] if states else None)
    if example.site is not None and example.dump is not None and example.run.entry != example.dump.run.entry:
        return f"{states[0]} with {example.site}" if states else str(example.site)
    site = states[0] if states else site
    return str(site) if site is not None else f"{example.run.entry.module.display}:{example.run.entry.key[1] or 1}"


def _text(slots: tuple[Slot, ...]) -> str:
    return " ⊕ ".join(map(str, slots)) if slots else "?"


def _imports_engine(entry: Entry) -> bool:
    return any(found.module.split(".", 1)[0] in _ENGINES for found in entry.module.index.imports.values())


def _blank(example: _Example, num_layers: int) -> Wiring:
    states = [state.site.path for state in example.choice.inputs if state.site is not None]
    run = example.dump.run if example.dump is not None else example.run
    name = states[0] if states else run.entry.module.display
    return Wiring("training", name, (), "unknown", num_layers=num_layers)


def _nothing_told(runs: list[Run], num_layers: int) -> Wiring | None:
    """Unknown where something was captured; None where nothing was."""
    for run in runs:
        if not run.captured:
            continue
        where = f" ({run.stopped_site})" if run.stopped_site is not None else ""
        reason = _lost(run) if run.stopped is None else f"{run.stopped}{where}"
        return Wiring("training", run.entry.module.display, (), "unknown", num_layers=num_layers, reason=reason)
    return None


def _lost(run: Run) -> str:
    """Where the knowledge of a captured state ends."""
    for path in run.paths:
        for capture in path.captures:
            if capture.state.slot.known:
                return f"{capture.state.slot} is captured at {capture.site}, but where it goes could not be followed"
    save = next(save for path in run.paths for save in path.saves)
    reasons = [state.reason for state in states_in(save.shape) if state.reason]
    return f"what is saved at {save.site} could not be told: {reasons[0] if reasons else 'the states are unknown'}"
