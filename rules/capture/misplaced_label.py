"""The state that the draft's targets are made of is not the target's last one, or is none at all."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding, Related, Span
from eaglelint.rule import Facts, Rule
from eaglelint.wiring import Slot, Wiring

from .._messages import confidence_of, trained_row
from .._training import row

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    target, training, practice = facts.target, facts.training, facts.practice
    if facts.draft is None or target is None:
        return
    last = target.num_layers
    reported = False
    if training is not None and training.label is not None and _misplaced(training.label, last):
        reported = True
        yield _label(rule, training, training.label, last)
    if practice is None:
        return
    for use in dict.fromkeys(practice.heads):
        same = training is not None and training.label is not None and training.label.boundary == use.state.boundary
        if _misplaced(use.state, last) and not (reported and same):
            reported = True
            yield rule.finding(
                f"logits are made of {use.state}, and the target makes its own of h[{last}]: they are not what the "
                "target predicts",
                use.place.span,
                confidence="likely",
                annotation=str(use.state),
                related=row("captured", use.captured),
                help=_HELP.format(last),
                identity=("head", str(use.state), use.place.code),
            )
    if practice.lost_label is not None:
        key, place = practice.lost_label
        yield rule.finding(
            f"{key} is None beside the captured states: what makes the draft's targets of it gets nothing",
            place.span,
            confidence="certain",
            help=f"Capture h[{last}] beside the others, and hand it on as {key}.",
            identity=("lost", key),
        )


_HELP = (
    "The last state is h[{0}], the output of the last layer: as a boundary id that is {0}, as the index of a layer "
    "that is counted from zero one less."
)


def _misplaced(state: Slot, last: int) -> bool:
    return state.form in ("stream", "norm") and state.boundary is not None and state.boundary != last


def _label(rule: Rule, training: Wiring, label: Slot, last: int) -> Finding:
    captured = next((item for item in training.evidence if item.note.startswith("the label")), None)
    related: tuple[Related, ...] = trained_row(training)
    place = captured or next(iter(training.evidence), None)
    return rule.finding(
        f"the draft's targets are made of {label}, and the target makes its own of h[{last}]: they are not what the "
        "target predicts",
        Span.at(place.path, place.line) if place is not None else Span.at(training.name, 1),
        confidence=confidence_of(training),
        annotation=str(label),
        related=related,
        help=_HELP.format(last),
        identity=("label", str(label)),
    )


RULE = Rule(
    code="CAP008",
    name="misplaced-label",
    summary="The draft's targets are made of another state than the target's last one.",
    severity="error",
    check=_check,
)
