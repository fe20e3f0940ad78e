"""What rules over an engine's source share: findings gathered by their place, and classes by name in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from eaglelint.finding import Related
from eaglelint.rule import Facts

if TYPE_CHECKING:
    from eaglelint.survey.facts import ClassFacts, EngineFacts, Place

__all__ = ["by_place", "classes_phrase", "ranks", "related"]


def by_place(pairs: Iterable[tuple[Place, ClassFacts]]) -> dict[Place, list[ClassFacts]]:
    """Classes gathered by the place that a finding points at: what many inherit is one fault.

    A place in a summary, which stands for code that is not followed, is none that anybody could mend.
    """
    found: dict[Place, list[ClassFacts]] = {}
    for place, cls in pairs:
        if not place.span.path.startswith("summary of "):
            found.setdefault(place, []).append(cls)
    return found


def classes_phrase(classes: Sequence[ClassFacts]) -> str:
    """``LlamaForCausalLM``, ``A and B``, ``A and 3 more classes``."""
    names = list(dict.fromkeys(cls.name for cls in classes))
    if len(names) <= 2:
        return " and ".join(names)
    return f"{names[0]} and {len(names) - 1} more classes"


def ranks(facts: Facts, engine: EngineFacts) -> int:
    """Tensor-parallel ranks that the user's command starts this engine with; 1 where it does not say."""
    launch = facts.launch
    option = None if launch is None or launch.engine != engine.name else launch.get("tensor_parallel")
    return 1 if option is None else option.number or 1


def related(label: str, place: Place | None) -> tuple[Related, ...]:
    """A row for a place, none where there is none."""
    return () if place is None else (Related(label, place.code, place.span),)
