"""The engine makes the draft's ``fc`` for another number of states than it feeds it."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding, Related, Span
from eaglelint.rule import Facts, Rule, Served
from eaglelint.wiring import Projection, Wiring

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    if facts.draft is None:
        return
    for served in facts.servings:
        fc = served.wiring.fc
        if fc is not None and fc.agrees is False and fc.fed is not None:
            yield _finding(rule, facts, served, fc)


def _finding(rule: Rule, facts: Facts, served: Served, fc: Projection) -> Finding:
    assert facts.draft is not None and fc.fed is not None
    wiring = served.wiring
    states = len(wiring.slots)
    width = fc.fed // states
    made, rest = divmod(fc.in_features, width)
    for_states = f"{_states(made)} of {width}" if made and not rest else f"{fc.in_features} features"
    found = next((item for item in facts.draft.layer_ids if item.key_path == wiring.ids_from), None)
    place = found.span if found is not None else Span.at(facts.draft.path, 1)
    return rule.finding(
        f"{wiring.name.split(' (')[0]} makes the draft's fc for {for_states} and feeds it {_states(states)}, "
        f"{fc.fed} features",
        place,
        confidence="certain",
        annotation=f"fc takes {fc.in_features}, it is fed {fc.fed}",
        related=(
            Related("made", f"fc takes {fc.in_features} features", Span.at(fc.path, fc.line)),
            *_captured(wiring),
        ),
        help=_help(made if not rest else 0, states),
        identity=(wiring.engine or wiring.name, str(fc.in_features), str(fc.fed)),
    )


def _captured(wiring: Wiring) -> tuple[Related, ...]:
    """Where the states are joined, else where the last of them is captured."""
    lines = [item for item in wiring.evidence if "cat" in item.note] or list(wiring.evidence)
    return tuple(Related("fed", f"{wiring}", Span.at(item.path, item.line)) for item in lines[-1:])


def _help(made: int, states: int) -> str:
    if not made:
        return "Check the hidden sizes of the draft's and the target's config: the widths do not fit each other."
    if states < made:
        return f"Write ids that bring {_states(made)}, or the num_aux_hidden_states that the draft was trained with."
    return (
        "Say the number of states where this release's draft class reads it (num_aux_hidden_states, or the ids at the "
        f"key path that it looks at), or take a release that does; without that it makes fc for {_states(made)}."
    )


def _states(count: int) -> str:
    return "1 state" if count == 1 else f"{count} states"


RULE = Rule(
    code="SHP006",
    name="misfed-fc",
    summary="An engine makes the draft's fc for another number of states than it feeds it.",
    severity="error",
    check=_check,
)
