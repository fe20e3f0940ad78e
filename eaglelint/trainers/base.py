"""What a training stack's file has to say, and what is told about a run of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from eaglelint.source.tree import SourceTree
from eaglelint.source.values import Function
from eaglelint.trainers.bench import Bench, Step
from eaglelint.wiring import Slot

__all__ = [
    "Captured",
    "Export",
    "Fed",
    "HandOver",
    "RecipeKeys",
    "Run",
    "Step",
    "Trainer",
    "TrainerSource",
    "step",
]


@dataclass(frozen=True, slots=True)
class TrainerSource:
    """One stack's source: the package directory and the release, where it can be told."""

    trainer: str
    package: Path
    version: str | None
    tree: SourceTree

    @property
    def label(self) -> str:
        where = self.tree.display(self.package)
        return f"{self.trainer} {self.version}" if self.version else f"{self.trainer} ({where})"


@dataclass(frozen=True, slots=True)
class Run:
    """One training run, as far as the stack's code asks for it.

    Attributes:
        kind: The kind of draft that is trained.
        num_layers: N of the target.
        layer_ids: The ids that the run's config or command line names; None where it names none.
        draft: The draft config that the training starts from.
        target: The target's config.
        names: The tensors of a checkpoint at hand, for converters of other stacks' checkpoints.
        way: How the states come to the trainer: from a ``dump``, ``online``, or by the name of an engine.
    """

    kind: str
    num_layers: int
    layer_ids: tuple[int, ...] | None = None
    draft: Mapping[str, Any] = field(default_factory=dict)
    target: Mapping[str, Any] = field(default_factory=dict)
    way: str = "dump"
    names: tuple[str, ...] = ()

    @property
    def offline(self) -> bool:
        """Whether the states are dumped first and trained on afterwards."""
        return self.way == "dump"


@dataclass(frozen=True, slots=True)
class HandOver:
    """Ids that the stack hands to an engine, which captures.

    Attributes:
        engine: The engine's name, ``sglang``.
        kind: Whose setter is called: that for this kind of draft.
        ids: The ids as they are handed over.
        label: Whether the last of them is the label.
        release: The release that the stack asks for, where it does.
        provisos: What it holds for, as conditions: ``if ...``.
    """

    engine: str
    kind: str
    ids: tuple[int, ...]
    steps: tuple[Step, ...]
    label: bool = False
    release: str | None = None
    provisos: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Captured:
    """States that the stack captures by itself, in the order in which it keeps them, and the label."""

    states: tuple[Slot, ...]
    label: Slot | None
    steps: tuple[Step, ...]
    assumptions: tuple[str, ...] = ()
    provisos: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fed:
    """What the stack makes of captured states: which of them ``fc`` is fed, in order, and what becomes of the label.

    ``inputs`` are indices into the captured states, ``normed`` those that pass a norm on the way. ``label_normed`` says
    whether the trainer norms the label itself; ``shifts`` by how many tokens each tensor is moved to the left.
    ``label_index`` is set where the label is one of the captured states.
    """

    inputs: tuple[int, ...]
    normed: frozenset[int]
    label: bool
    label_normed: bool
    shifts: tuple[tuple[str, int], ...]
    steps: tuple[Step, ...]
    label_index: int | None = None


@dataclass(frozen=True, slots=True)
class Export:
    """The config that the stack's exporter writes, as far as it is told; ``rule`` says where its keys come from."""

    config: Mapping[str, Any]
    rule: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class RecipeKeys:
    """Where a run's config says what matters: key paths in YAML, JSON and ``a.b=value`` overrides, and flags.

    Attributes:
        ids: The key paths of layer ids, the first that is there counts.
        kind: Those of the kind of draft.
        dump: That which is set where a dump is trained on.
        way: That which names the way by the stack's own word; ``ways`` has the words.
        architecture: Those of the draft's own settings.
        flags: The key paths that flags of the command line stand for.
        schema: The file and class of the stack that lists the keys there are.
        scripts: Scripts of the stack's checkout that dump, with the way of training that each stands for.
    """

    ids: tuple[tuple[str, ...], ...] = ()
    kind: tuple[tuple[str, ...], ...] = ()
    dump: tuple[str, ...] | None = None
    way: tuple[str, ...] | None = None
    ways: Mapping[str, str] = field(default_factory=dict)
    architecture: tuple[tuple[str, ...], ...] = ()
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    schema: tuple[str, str] | None = None
    scripts: Mapping[str, str] = field(default_factory=dict)


class Trainer(Protocol):
    """Where a stack's wiring begins: the functions that choose ids, capture, prepare examples and export.

    Each method runs functions of the stack's own source and raises NotFollowed where they cannot be followed.
    """

    name: str
    kinds: tuple[str, ...]
    recipe: RecipeKeys

    def find_package(self, path: Path) -> Path | None:
        """The package directory in or at a path."""

    def ways(self, bench: Bench, kind: str) -> tuple[str, ...]:
        """How that kind can be trained: from a ``dump``, ``online``, or by an engine's name."""

    def layer_ids(self, bench: Bench, run: Run) -> tuple[tuple[int, ...], Step]:
        """The layer ids of a run, and the function that chooses them."""

    def capture(self, bench: Bench, run: Run, ids: tuple[int, ...]) -> Captured | HandOver:
        """What is captured for these ids."""

    def feed(self, bench: Bench, rows: Bench, run: Run, count: int) -> Fed:
        """What becomes of ``count`` captured states and the label; ``rows`` counts tokens instead of states."""

    def export(self, bench: Bench, run: Run, ids: tuple[int, ...]) -> Export:
        """The exported config."""


def step(function: Function, note: str) -> Step:
    """A function as a step."""
    return Step(note, function.module.display, function.info.line)
