"""What an exporter makes of the names of a state dict: its code is run on one whose tensors can be told afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from eaglelint.exported import Saved, WeightMap
from eaglelint.source.machine import Outcome
from eaglelint.source.slices import Site
from eaglelint.source.values import Cat, Env, Frame, Tensor, Weight
from eaglelint.trainers.bench import Bench, NotFollowed, Step, names_of
from eaglelint.trainers.parameters import Named, state_of

__all__ = ["conversion", "rules_of"]


def conversion(
    bench: Bench,
    step: Step,
    named: Sequence[Named],
    work: Callable[[dict[str, Any]], Any],
    others: Sequence[Named] = (),
    **more: Any,
) -> WeightMap:
    """What a piece of work, which is given a state dict and ends in the one that is saved, makes of its names.

    ``others`` are tensors of the target's that the state dict has besides.

    Raises:
        NotFollowed: It does not end in a dict whose keys and tensors are known.
    """

    def run() -> Any:
        saved = work(state_of(machine, (*named, *others)))
        return dict(saved) if isinstance(saved, dict) else saved  # a copy: of several paths each undoes what it did

    known = frozenset(item.name for item in named)
    watch = _Watch(known)
    machine = bench.machine
    machine.tested, machine.keyed = watch.tested, watch.keyed
    try:
        outcomes = bench.outcomes(run, step.note)
    finally:
        machine.tested = machine.keyed = None
    found = [_written(outcome, step, known) for outcome in outcomes]
    saved = tuple(
        _becomes(item, step, outcomes, [names.get(item.name, ()) for names, _ in found], watch) for item in named
    )
    added = tuple(name for name in found[0][1] if all(name in more for _, more in found))
    return WeightMap(step.path, step.line, saved, added, **more)


def _becomes(
    item: Named, step: Step, outcomes: Sequence[Outcome], keys: Sequence[tuple[str, ...]], watch: _Watch
) -> Saved:
    """What becomes of one tensor, by the keys that it has on each path."""
    index = next((index for index, found in enumerate(keys) if found != (item.name,)), 0)
    chosen, condition = keys[index], ""
    if any(found != chosen for found in keys):
        others = [outcome for outcome, found in zip(outcomes, keys, strict=True) if found != chosen]
        condition = _told_apart(outcomes[index], others)
    site = watch.put.get((item.name, chosen[0])) if chosen else watch.last.get(item.name)
    return Saved(
        item.name,
        chosen,
        site.path if site is not None else step.path,
        site.line if site is not None else step.line,
        item.trained,
        condition,
        (item.site.path, item.site.line) if item.site is not None else ("", 0),
    )


def rules_of(weights: WeightMap) -> tuple[tuple[str, tuple[str, ...], str, int], ...]:
    """The renamings in short: what differs at the front of two names is one rule for all below it.

    Returns:
        Before, after, and the line; ``midlayer.*`` for all names below. Those that stay as they are do not appear.
    """
    found: dict[tuple[str, tuple[str, ...], str], tuple[str, int]] = {}
    kept = {saved.name.partition(".")[0] for saved in weights.names if saved.written}
    for saved in weights.names:
        if not saved.renamed:
            continue
        before, after = saved.name, saved.written
        module, dot, _ = before.partition(".")
        if not after and dot and module not in kept and before.count(".") > 1:
            before = f"{module}.*"  # all of it is left out
        if len(after) == 1:
            before, (one,) = _front(before, after[0])
            after = (one,)
        found.setdefault((before, after, saved.condition), (saved.path, saved.line))
    return tuple((before, after, *place) for (before, after, _), place in found.items())


def _front(before: str, after: str) -> tuple[str, tuple[str]]:
    ours, theirs = before.split("."), after.split(".")
    cut = 0
    while cut < min(len(ours), len(theirs)) and ours[-1 - cut] == theirs[-1 - cut]:
        cut += 1
    if not cut:
        return before, (after,)
    left, right = ours[:-cut], theirs[:-cut]
    return ".".join([*left, "*"]), (".".join([*right, "*"]),)


def _written(outcome: Outcome, step: Step, known: frozenset[str]) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """For each tensor the names under which it stands in what is saved; and the names of what is none of them."""
    state = outcome.value
    if not isinstance(state, dict) or not all(isinstance(key, str) for key in state):
        raise NotFollowed(f"{step.path}:{step.line}: what is saved is not known")
    names: dict[str, tuple[str, ...]] = {}
    others = []
    for key, value in state.items():
        sources = [name for name in dict.fromkeys(_weights(value)) if name in known]
        for source in sources:
            names[source] = (*names.get(source, ()), key)
        if not sources:
            others.append(key)
    return names, tuple(others)


def _weights(value: Any) -> Iterator[str]:
    """The tensors that a value is made of."""
    for item in value if isinstance(value, list | tuple) else ():
        yield from _weights(item)
    for term in value.terms if isinstance(value, Tensor) else ():
        if isinstance(term, Weight):
            yield term.name
        elif isinstance(term, Cat):
            yield from _weights(term.parts)


def _told_apart(outcome: Outcome, others: Sequence[Outcome]) -> str:
    """The choice that this path took and the others did not, in words."""
    for decision in outcome.decisions:
        if any(decision.key == d.key and decision.choice != d.choice for other in others for d in other.decisions):
            return decision.text
    return "on one of several paths"


class _Watch:
    """What is noted about each name while the code runs.

    ``last`` is the condition that was read last about it: where a tensor is left out, it is the one that does so.
    ``put`` is where a tensor was put under a key first.
    """

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.last: dict[str, Site] = {}
        self.put: dict[tuple[str, Any], Site] = {}

    def keyed(self, key: Any, value: Any, site: Site) -> None:
        for name in _weights(value) if isinstance(key, str) else ():
            self.put.setdefault((name, key), site)

    def tested(self, test: Any, frame: Frame) -> None:
        variables: dict[str, Any] = {}
        env: Env | None = frame.env
        while env is not None:
            variables = {**env.variables, **variables}
            env = env.outer
        about = [variables[name] for name in names_of(test) if name in variables]
        for name in {name for value in variables.values() if (name := self._name(value))}:
            made_of = (isinstance(value, str) and value and value in name for value in about)
            if any(self._name(value) == name for value in about) or any(made_of):
                self.last[name] = Site(frame.slice, test)

    def _name(self, value: Any) -> str:
        if isinstance(value, Tensor) and isinstance(term := value.single(), Weight):
            return term.name
        return value if isinstance(value, str) and value in self.names else ""
