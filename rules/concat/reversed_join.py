"""The draft was trained on the embedding and the hidden state in one order, and is served them in the other."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._source import related

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    trained = facts.trained_join
    for cls in facts.draft_classes if trained is not None else ():
        if trained is None or cls.join is None or cls.join.order == trained.order:
            continue
        yield rule.finding(
            f"the draft was trained with the {' before the '.join(trained.order)}, and {cls.engine} joins them the "
            f"other way round ({cls.join.place}): each half of the input meets the weights of the other half",
            trained.place.span,
            confidence="likely",
            annotation=" ⊕ ".join(trained.order),
            related=related("served", cls.join.place),
            help="Join them in the order in which this engine's class does, and train again; or swap the two halves of "
            "the weight's columns when the checkpoint is exported.",
            identity=(cls.engine, *trained.order),
        )


RULE = Rule(
    code="CAT002",
    name="reversed-join",
    summary="The embedding and the hidden state are joined in another order than in training.",
    severity="error",
    check=_check,
)
