"""A state is captured before the features that are added to it, so that it is not what the next layer sees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._messages import joined_with_and
from .._source import by_place, classes_phrase, related

if TYPE_CHECKING:
    from eaglelint.survey.facts import ClassFacts, InjectedLate

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    for engine in facts.engines:
        cases = [(case, cls) for cls in engine.classes for run in cls.runs for case in run.injected_late]
        for place, classes in by_place((case.capture, cls) for case, cls in cases).items():
            case = next(case for case, _ in cases if case.capture == place)
            yield _finding(rule, engine.label, case, classes)


def _finding(rule: Rule, engine: str, case: InjectedLate, classes: list[ClassFacts]) -> Finding:
    states = joined_with_and(f"h[{boundary}]" for boundary in case.boundaries)
    features, some = case.name, "" if case.counted is None else f" (where it holds {case.counted})"
    them, they_are = ("it", "it is") if len(case.boundaries) == 1 else ("them", "they are")
    return rule.finding(
        f"{engine}: {classes_phrase(classes)} captures {states} before the features of {features}{some} are added to "
        f"{them}: with images in the prompt, {they_are} not what the layers go on with",
        case.capture.span,
        confidence="possible",
        annotation=f"without {features}",
        related=related("added", case.taken),
        help="Train on states that were captured in the same way, take ids of later states, or capture the sum that "
        "the next layer is given.",
        identity=(engine, classes[0].name, features),
    )


RULE = Rule(
    code="CAP007",
    name="capture-before-features",
    summary="A state is captured before features of images are added to it.",
    severity="warning",
    check=_check,
)
