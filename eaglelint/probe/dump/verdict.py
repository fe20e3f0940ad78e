"""What a dump says: as an outcome for a person, and of the findings that speak of what a draft was trained on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from eaglelint.finding import Finding, Probe
from eaglelint.probe.dump.match import Match
from eaglelint.probe.dump.observe import Observed
from eaglelint.probe.outcome import Outcome, Result
from eaglelint.rule import Facts
from eaglelint.wiring import Wiring, compare

__all__ = ["dump_outcome", "dump_verdict"]

# Rules that say that a draft is served, or was handed in training, other states than it should be.
_COMPARED = frozenset({"CAP001", "CAP002", "CAP004", "CAT001", "CFG001"})

# Rules on what training code makes of a dump: a fault that shows in the dump itself bears them out.
_OF_DUMPS = frozenset({"TRN001", "TRN003"})


def dump_outcome(observed: Observed, pipelines: Sequence[Facts]) -> Outcome:
    """The dump beside what each draft was said to be trained on and is served."""
    faults = list(_faults(observed))
    rows = [f"{observed.dump.layout} layout: {observed.dump.key}"]
    rows += [f"slot {number} is {match}" for number, match in enumerate(observed.slots)]
    if observed.label is not None:
        rows.append(f"the label, {observed.dump.label_key}, is {observed.label}")
    rows.append(_alignment(observed.shift))
    wiring = observed.wiring
    for facts in pipelines:
        for other, verb in _others(facts):
            if not other.slots:
                continue
            differs = bool(compare(wiring, other))
            rows.append(f"{other.name} {verb} {other}: {'another' if differs else 'the same, where it is known'}")
            if differs:
                faults.append(f"it holds {wiring}, and {other.name} {verb} {other}")
    rows += observed.notes
    result: Result = "failed" if faults else "passed" if observed.sure else "inconclusive"
    summary = "; ".join(faults) if faults else f"it holds {wiring}" if observed.sure else _unsure(observed)
    return Outcome("dump", observed.dump.path, result, summary, tuple(rows), _data(observed))


def _data(observed: Observed) -> dict[str, Any]:
    """The same for programs."""
    return {
        "layout": observed.dump.layout,
        "shift": observed.shift,
        "interleaved": observed.interleaved,
        "slots": [_match_data(match) for match in observed.slots],
        "label": None if observed.label is None else _match_data(observed.label),
    }


def _match_data(match: Match) -> dict[str, Any]:
    return {
        "state": str(match.slot),
        "nearest": str(match.best),
        "cosine": match.cosine,
        "next": str(match.next),
        "next_cosine": match.next_cosine,
        "margin": match.margin,
    }


def _others(facts: Facts) -> Iterator[tuple[Wiring, str]]:
    """Who else says what the draft is fed; a training that the config alone suggests comes last."""
    training = facts.training
    if training is not None and not training.inferred:
        yield training, "says"
    for served in facts.servings:
        yield served.wiring, "serves"
    if training is not None and training.inferred:
        yield training, "says"


def _faults(observed: Observed) -> Iterator[str]:
    """What is wrong with the dump whatever a draft says."""
    if observed.shift:
        yield _alignment(observed.shift)
    if observed.interleaved:
        yield "the states of one token were flattened feature by feature, not state by state"
    label, normed = observed.label, observed.dump.label_normed
    if label is not None and label.sure and normed is not None:
        wanted = f"norm(h[{observed.depth}])" if normed else f"h[{observed.depth}]"
        found = str(label.best).split(",")[0]
        if found != wanted:
            yield f"the label is {found}, and {observed.dump.layout} takes it for {wanted}"


def _alignment(shift: int) -> str:
    if not shift:
        return "states and ids belong together: the state at t is that of token t"
    lost = "1 token" if abs(shift) == 1 else f"{abs(shift)} tokens"
    if shift > 0:
        return f"the ids are shifted to the left by {lost}: the state at t is that of the id at t - {shift}"
    return f"the ids are shifted to the right by {lost}: the state at t is that of the id at t + {-shift}"


def _unsure(observed: Observed) -> str:
    number, match = next((n, m) for n, m in enumerate(observed.slots) if not m.sure)
    return f"slot {number} is {match}"


def dump_verdict(finding: Finding, observed: Observed, facts: Facts) -> Probe | None:
    """What the dump says of a finding; ``None`` where it does not speak of it."""
    wiring = observed.wiring
    if finding.code == "VAL001":
        branches = [str(slot) for slot in wiring.slots if slot.form == "partial"]
        return Probe("confirmed", f"the dump holds {branches[0]}") if branches else None
    if finding.code in _OF_DUMPS:
        faults = list(_faults(observed))
        return Probe("confirmed", f"in the dump, {faults[0]}") if faults else None
    if finding.code not in _COMPARED:
        return None
    served = [served.wiring for served in facts.servings if served.wiring.slots]
    meant = [other for other in served if _names(finding, other)] or served
    if not meant:
        return None
    if not any(slot.known for slot in wiring.slots):
        return Probe("inconclusive", f"in the dump, {_unsure(observed)}")
    detail = f"the dump holds {wiring}, {meant[0].name} serves {meant[0]}"
    if compare(wiring, meant[0]):
        return Probe("confirmed", detail)
    return Probe("refuted" if observed.sure else "inconclusive", detail)


def _names(finding: Finding, wiring: Wiring) -> bool:
    """Whether a finding is about this engine: its identity, else its message, names it."""
    engine = wiring.name.removesuffix(f" ({wiring.target_class})") if wiring.target_class else wiring.name
    return engine in finding.identity or engine in finding.message
