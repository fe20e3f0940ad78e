"""Which of the states in a training example feed ``fc``, and which one is the label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eaglelint.trainers.shapes import Joined, Keyed, Many, Other, Shape, Stacked, State
from eaglelint.wiring import Slot

__all__ = ["LABELS", "Choice", "choose", "choose_saved"]

# Key names, where two single states stand beside each other. Read in SafeAILab EAGLE, SpecForge 0.2.0, speculators
# 0.9.0 and ModelOpt 0.47.0.
LABELS = frozenset(
    (
        "label",
        "labels",
        "last_hidden_state",
        "last_hidden_states",
        "target",
        "target_hidden_state",
        "target_hidden_states",
        "targets",
        "verifier_last_hidden_states",
    )
)
_INPUTS = frozenset(["aux_hidden_state", "aux_hidden_states", "hidden_state", "hidden_states"])


@dataclass(frozen=True, slots=True)
class Choice:
    """``fc``'s input and the label. ``joined``: the example's own code concatenates the states.

    ``alternative`` is the other reading where the last state may be the label or one more input; ``problem`` says
    why nothing was chosen.
    """

    inputs: tuple[State, ...]
    label: State | None = None
    joined: bool = False
    alternative: tuple[State, ...] | None = None
    doubt: str | None = None
    problem: str | None = None

    @property
    def slots(self) -> tuple[Slot, ...]:
        return tuple(state.slot for state in self.inputs)

    @property
    def label_slot(self) -> Slot | None:
        return self.label.slot if self.label is not None else None

    @property
    def all_slots(self) -> tuple[Slot, ...]:
        """The slots, with the last state where it may be one of them."""
        return tuple(state.slot for state in self.alternative) if self.alternative is not None else self.slots

    @property
    def key(self) -> tuple[Any, ...]:
        return self.slots, self.label_slot, self.alternative


@dataclass(frozen=True, slots=True)
class _Row:
    """One group of states under a key."""

    key: Any
    states: tuple[State, ...]
    joined: bool
    listed: bool


def choose(shape: Shape, num_layers: int) -> Choice | None:
    """The choice that a training example makes; None where it concatenates nothing and nothing else tells."""
    rows, lost = _split(shape)
    joined = _distinct([row for row in rows if row.joined and len(row.states) > 1])
    if len(joined) > 1:
        named = [row for row in joined if row.key not in LABELS]
        joined = named if len(named) == 1 else joined
    if joined and lost:
        return _lost(lost)
    if len(joined) == 1:
        return Choice(joined[0].states, _label(rows, joined[0], num_layers), joined=True)
    if joined:
        return _undecided(joined)
    return None


def choose_saved(shape: Shape, num_layers: int, *, loose: bool = True) -> Choice | None:
    """The choice where no code between a dump and the draft is known: what was saved, in the order of saving.

    Args:
        shape: What was saved or returned.
        num_layers: N of the target.
        loose: Whether one single state is a choice, too: a dump of final states, but not a model's return value.
    """
    chosen = choose(shape, num_layers)
    if chosen is not None:
        return chosen
    rows, lost = _split(shape)
    if rows and lost:
        return _lost(lost)
    lists = _distinct([row for row in rows if row.listed and len(row.states) > 1 and not _whole(row, num_layers)])
    if len(lists) > 1:
        return _undecided(lists)
    if lists:
        return _from_list(rows, lists[0], num_layers)
    if loose and any(_whole(row, num_layers) for row in rows):
        return Choice((), problem="every boundary is saved, and no code was found that says which of them feed fc")
    singles = _distinct([row for row in rows if len(row.states) == 1])
    if not singles or not loose:
        return None
    if len(singles) == 1:
        if singles[0].key in LABELS:
            return Choice((), singles[0].states[0], problem="only the label was found, not what feeds fc")
        return Choice(singles[0].states)
    labels = [row for row in singles if row.key in LABELS]
    inputs = [row for row in singles if row.key not in LABELS]
    if len(inputs) == 1 and len(labels) == 1:
        return Choice(inputs[0].states, labels[0].states[0])
    if len(singles) == 2 and len(named := [row for row in singles if row.key in _INPUTS]) == 1:
        other = next(row for row in singles if row is not named[0])
        return Choice(named[0].states, other.states[0])
    together = tuple(state for row in inputs for state in row.states)
    label = labels[0].states[0] if len(labels) == 1 else None
    return Choice(together, label, doubt="the dataset joins the saved states in the order in which they were saved")


def _from_list(rows: list[_Row], chosen: _Row, num_layers: int) -> Choice:
    label = _label(rows, chosen, num_layers)
    last = chosen.states[-1].slot
    if label is None and last.boundary == num_layers and last.form in ("stream", "norm"):
        return Choice(chosen.states[:-1], chosen.states[-1], alternative=chosen.states)
    return Choice(chosen.states, label)


def _undecided(rows: list[_Row]) -> Choice:
    names = " and ".join(f"{row.key!r} ({_show(row.states)})" for row in rows)
    return Choice((), problem=f"several groups of states could feed fc: {names}")


def _show(states: tuple[State, ...]) -> str:
    return " ⊕ ".join(str(state.slot) for state in states)


def _label(rows: list[_Row], inputs: _Row, num_layers: int) -> State | None:
    """The other single state, where there is exactly one that can be a label: the last one, or one of that name."""
    singles = [row for row in rows if row is not inputs and len(row.states) == 1]
    usable = _distinct(
        [
            row
            for row in singles
            if row.states[0].slot.form in ("stream", "norm")
            and (row.states[0].slot.boundary == num_layers or row.key in LABELS)
        ]
    )
    if len(usable) > 1:
        usable = [row for row in usable if row.key in LABELS]
    return usable[0].states[0] if len(usable) == 1 else None


def _distinct(rows: list[_Row]) -> list[_Row]:
    found: dict[tuple[State, ...], _Row] = {}
    for row in rows:
        found.setdefault(row.states, row)
    return list(found.values())


def _split(shape: Shape) -> tuple[list[_Row], list[_Row]]:
    """The groups with a known state, and those that could feed ``fc`` and of which nothing is known."""
    rows = list(_rows("", shape))
    known = [row for row in rows if any(state.slot.known for state in row.states)]
    lost = [row for row in rows if row not in known and (len(row.states) > 1 or row.key in _INPUTS)]
    return known, lost


def _lost(rows: list[_Row]) -> Choice:
    names = " and ".join(f"{row.key!r}" for row in rows)
    return Choice((), problem=f"what stands under {names} could feed fc, and could not be told")


def _whole(row: _Row, num_layers: int) -> bool:
    """Whether a list holds every boundary, as a model's ``hidden_states`` does: it feeds no ``fc`` as it is."""
    return {state.slot.boundary for state in row.states} >= set(range(num_layers)) and num_layers > 3


def _rows(key: Any, shape: Shape) -> Iterator[_Row]:
    match shape:
        case State():
            yield _Row(key, (shape,), False, False)
        case Joined():
            yield _Row(key, shape.parts, True, False)
        case Stacked():
            yield _Row(key, shape.parts, False, True)
        case Many(items=items):
            states = tuple(item for item in items if isinstance(item, State))
            # A pair is two results that a function returns; a longer tuple of states is a list of them.
            if len(states) == len(items) and states and not (shape.is_tuple and len(items) < 3):
                yield _Row(key, states, False, True)
            else:
                for index, item in enumerate(items):
                    yield from _rows(index if key == "" else key, item)
        case Keyed(items=pairs):
            for name, item in pairs:
                yield from _rows(name, item)
        case Other() if key in _INPUTS:
            yield _Row(key, (), False, False)
