"""States are moved to the right behind a filled place, where engines move ids to the left and drop the first one."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._training import distance, row
from .misaligned_tokens import IDS, STATES

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    if facts.practice is None or facts.draft is None or distance(facts.draft) != 1:
        return
    seen = set()
    for alignment in facts.practice.alignments:
        ids, states = alignment.shift_of(*IDS), alignment.shift_of(*STATES)
        if ids is None or states is None or (ids.shift, states.shift) != (0, -1) or states.place is None:
            continue
        if states.place in seen:
            continue
        seen.add(states.place)
        yield rule.finding(
            f"{states.name} is moved to the right by 1 behind a filled place, and {ids.name} is not moved: the draft "
            "learns from the first token beside a state that is none, and engines drop that token and begin with the "
            "second beside the first state",
            states.place.span,
            confidence="possible",
            annotation="the first place holds no state of the target",
            related=row("together", alignment.place),
            help="Move the ids to the left instead, as engines do, or serve with an engine that knows this first row.",
            identity=(states.place.span.path, states.name),
        )


RULE = Rule(
    code="TRN006",
    name="filled-first-state",
    summary="Training begins with a token beside a filled state, which engines drop.",
    severity="warning",
    check=_check,
)
