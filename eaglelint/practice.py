"""What training code does with the states it captured, besides feeding them to ``fc``: facts for the rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eaglelint.survey.facts import Place
from eaglelint.wiring import Slot

__all__ = [
    "Alignment",
    "CaptureSite",
    "Gain",
    "HeadUse",
    "IdList",
    "NormClass",
    "Practice",
    "RowShift",
    "SavedStates",
    "TemplateUse",
    "TextSort",
    "UnevenHead",
]

Gain = Literal["w", "1+w"]
"""What a norm multiplies with: its weight, or one more than that, as Gemma's and Qwen3.5's do."""


@dataclass(frozen=True, slots=True)
class NormClass:
    """A norm that was applied: its class, and what it multiplies with, None where the class lies outside.

    ``adjusted`` says that the code adds one to a weight somewhere on the way.
    """

    name: str
    gain: Gain | None = None
    place: Place | None = None
    adjusted: bool = False


@dataclass(frozen=True, slots=True)
class HeadUse:
    """A state of the target that is made into logits, on one path.

    Attributes:
        state: Which one, as it was captured or saved; unknown where only the dump's key is known.
        norms: How many norms were applied to it by the code that loads it and makes logits of it.
        key: Under which key of a dump it was found; None where it came from the target itself.
        norm: The norm that was applied last, where its class is known.
        place: The call that makes the logits.
        captured: Where the state was captured.
    """

    state: Slot
    norms: int
    place: Place
    key: str | None = None
    norm: NormClass | None = None
    captured: Place | None = None

    @property
    def total(self) -> int:
        """All norms between the residual stream and the logits."""
        return self.norms + (self.state.form == "norm")


@dataclass(frozen=True, slots=True)
class UnevenHead:
    """Logits that are made of the draft's output once normed and once as it is, as ``condition`` decides."""

    place: Place
    condition: str


@dataclass(frozen=True, slots=True)
class RowShift:
    """A tensor along the tokens: what stands at t stood at ``t + shift``; None where that is not known.

    ``place`` is where it was moved last.
    """

    name: str
    shift: int | None
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Alignment:
    """Tensors along the tokens that are handed on together."""

    rows: tuple[RowShift, ...]
    place: Place

    def shift_of(self, *names: str) -> RowShift | None:
        """The first of these names that is there, with its shift."""
        return next((row for name in names for row in self.rows if row.name == name), None)


@dataclass(frozen=True, slots=True)
class TemplateUse:
    """A call that applies a chat template, or (``asked``) asks a server to, and the options that it gives it.

    ``open`` are options that it gives with values which are not known; ``"**"`` among them stands for any.
    """

    options: tuple[tuple[str, bool | int | str], ...]
    place: Place
    asked: bool = False
    open: tuple[str, ...] = ()

    def leaves_open(self, name: str) -> bool:
        """Whether an option may be given here, with whatever value."""
        return name in self.open or "**" in self.open


@dataclass(frozen=True, slots=True)
class TextSort:
    """Texts with numbers in them that are sorted as texts, and then counted through or matched by position."""

    made: Place
    sorted: Place


@dataclass(frozen=True, slots=True)
class SavedStates:
    """What the code saves under one key: ``slots`` joined side by side, or kept apart."""

    key: str
    slots: tuple[Slot, ...]
    joined: bool
    place: Place


@dataclass(frozen=True, slots=True)
class CaptureSite:
    """One place of the code and the states that it feeds ``fc``."""

    slots: tuple[Slot, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class IdList:
    """A list of ids in the code, as it is written there."""

    name: str
    values: tuple[int, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Practice:
    """All of it.

    Attributes:
        heads: Logits that are made of the target's states.
        uneven: Logits that are made of the draft's output in two ways.
        alignments: Tensors along the tokens, where one of them is moved.
        templates: Uses of chat templates.
        sorts: Texts with numbers that are sorted as texts.
        saved: What is saved, by key.
        captures: The places that feed ``fc``, where they disagree.
        ids: Lists of ids that captures were decided by.
        lost_label: Where an example is made whose label is None.
        loads: Which of a dump's states, by place in the sample, feed ``fc``; None where that was not told.
        loaded_label: Which of them is the label.
        load_place: Where they are joined.
    """

    heads: tuple[HeadUse, ...] = ()
    uneven: tuple[UnevenHead, ...] = ()
    alignments: tuple[Alignment, ...] = ()
    templates: tuple[TemplateUse, ...] = ()
    sorts: tuple[TextSort, ...] = ()
    saved: tuple[SavedStates, ...] = ()
    captures: tuple[CaptureSite, ...] = ()
    ids: tuple[IdList, ...] = ()
    lost_label: tuple[str, Place] | None = None
    loads: tuple[int, ...] | None = None
    loaded_label: int | None = None
    load_place: Place | None = None
