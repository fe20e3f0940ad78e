"""The part of a profile about classes of drafts: what each joins, builds and loads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["ABSENT", "Build", "Builds", "DraftFacts", "Line", "answers_of", "matches", "value_at"]

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of code: ``path:line``, the path relative to the package, and how it reads."""

    at: str
    code: str


@dataclass(frozen=True, slots=True)
class DraftFacts:
    """What a class of drafts does.

    Attributes:
        join: Which half of the joined input comes first, and the line that joins the embedding and the hidden state;
            None where that is not plain.
        norm_stubs: Classes that stand in for the final norm and drop the residual, each with the line that does so.
        builds: For each kind of draft the index of what it builds, among the profile's ``builds``.
    """

    join: tuple[Literal["embedding", "hidden state"], Line] | None = None
    norm_stubs: tuple[tuple[str, Line], ...] = ()
    builds: MappingOf[str, int] = field(default_factory=dict)

    def lines(self) -> Iterator[Line]:
        """The lines that it rests on."""
        if self.join is not None:
            yield self.join[1]
        yield from (line for _, line in self.norm_stubs)


@dataclass(frozen=True, slots=True)
class Build:
    """The norms and projections that a class builds for some configs.

    Attributes:
        modules: Which of the class's modules, in the order in which they are built.
        unknown: Attributes that may hold more of it.
        depths: The numbers of decoder layers for which this is known; empty for any.
    """

    modules: tuple[int, ...]
    unknown: tuple[str, ...] = ()
    depths: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Builds:
    """What a class builds and loads, by what a draft's config says; ``{i}`` stands for the number of each layer.

    Attributes:
        cls: The class.
        accepts: Keys that the class reads, each with the answers that were seen to change nothing. A config with
            another answer is not one that was learned.
        switches: Keys that decide, each with its answers in groups that come to the same.
        builds: What is built for each choice of groups, the last switch varying first; None where that is not known.
        modules: All that is built: the path of each, whether it is a norm, and the line that builds it.
        loads: The modules that a name of a checkpoint, without ``.weight``, fills, where they are built; a name that is
            not here is left out. None where the loader could not be followed with any name.
        stops: Names with which it could not be followed.
        loader: The line of the loader.
    """

    cls: str
    accepts: tuple[tuple[Key, tuple[str, ...]], ...]
    switches: tuple[tuple[Key, tuple[tuple[str, ...], ...]], ...]
    builds: tuple[Build | None, ...]
    modules: tuple[tuple[str, bool, str], ...]
    loads: MappingOf[str, tuple[str, ...]] | None = None
    stops: tuple[str, ...] = ()
    loader: str = ""


ABSENT: Any = object()


def value_at(data: MappingOf[str, Any], key: Sequence[str]) -> Any:
    """The value at a key path of a draft's config; ``ABSENT`` where there is none."""
    value: Any = data
    for part in key:
        if not isinstance(value, MappingOf) or part not in value:
            return ABSENT
        value = value[part]
    return value


def answers_of(data: MappingOf[str, Any], key: Key) -> Iterator[str]:
    """What the value at a key path of a draft's config may be called, the narrowest name first."""
    match value := value_at(data, key):
        case _ if value is ABSENT:
            yield "absent"
        case None:
            yield "null"
        case bool():
            yield "true" if value else "false"
        case int() | float():
            yield f"number {value}"
            if value:
                yield "number"
        case str():
            yield f"text {value}"
            yield "text"
        case list():
            kind = "ids" if value and all(type(item) is int for item in value) else "list"
            yield f"{kind} {len(value)}"
            if value:
                yield kind
        case MappingOf():
            yield "section" if value else "empty section"


def matches(data: MappingOf[str, Any], key: Key, answers: tuple[str, ...]) -> bool:
    """Whether the value at a key path is one of these answers."""
    return any(answer in answers for answer in answers_of(data, key))
