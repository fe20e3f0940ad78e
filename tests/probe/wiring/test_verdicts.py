"""When what was seen agrees with what is derived, when it does not, and when one of the two has no answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eaglelint.probe.wiring.engine import compared
from eaglelint.probe.wiring.launch import Answer
from eaglelint.probe.wiring.task import Observation, Seen
from eaglelint.report.probe_wiring import count
from eaglelint.wiring import Condition, Slot, Wiring

_DERIVED = Wiring("serving", "sglang", (Slot("stream", 2), Slot("stream", 4)), "exact", target_class="DemoForCausalLM")
_SAME = (Seen("stream", 2, "h[2]"), Seen("stream", 4, "h[4]"))
_OTHER = (Seen("stream", 1, "h[1]"), Seen("stream", 4, "h[4]"))
_PART = (Seen("shard", 2, "the sum of one rank's parts, of h[2]"), Seen("stream", 4, "h[4]"))
_NOTHING = replace(_DERIVED, slots=(), status="unknown", reason="no captured state was found")
_STOPS = replace(_NOTHING, reason="it would stop with AssertionError at models/demo.py:41: no holder")
_MISSING = replace(
    _DERIVED,
    status="conditional",
    conditions=(Condition("when something sets Demo.flag, which no class among its bases does (models/demo.py:41)"),),
)
_CASES = {
    "the same": (Observation(_SAME), _DERIVED, "agrees", "h[2] ⊕ h[4]"),
    "another boundary": (Observation(_OTHER), _DERIVED, "disagrees", "seen was h[1] ⊕ h[4], derived is h[2] ⊕ h[4]"),
    "another order": (Observation(_SAME[::-1]), _DERIVED, "disagrees", "seen was h[4] ⊕ h[2], derived is h[2] ⊕ h[4]"),
    "one too few": (Observation(_SAME[:1]), _DERIVED, "disagrees", "seen was h[2], derived is h[2] ⊕ h[4]"),
    "a rank's part": (Observation(_PART), _DERIVED, "disagrees", "seen was shard(h[2]) ⊕ h[4], derived is h[2] ⊕ h[4]"),
    "nothing, and something derived": (
        Observation(),
        _DERIVED,
        "disagrees",
        "nothing was captured; derived is h[2] ⊕ h[4]",
    ),
    "nothing on both sides": (Observation(), _NOTHING, "agrees", "nothing is captured"),
    "not read back": (
        Observation((_SAME[0], Seen("unknown", None, "a product"))),
        _DERIVED,
        "open",
        "what was captured could not be read: a product",
    ),
    "not derived": (
        Observation(_SAME),
        replace(_NOTHING, reason="too many steps"),
        "open",
        "seen was h[2] ⊕ h[4]; not derived: too many steps",
    ),
    "other states where norms add in place": (
        Observation(_SAME, fused=_OTHER),
        _DERIVED,
        "open",
        "h[2] ⊕ h[4], but not when norms add into the residual's memory, as fused kernels do",
    ),
    "one of several derived cases": (
        Observation(_OTHER),
        replace(
            _DERIVED,
            status="conditional",
            conditions=(Condition("when it is so", (Slot("stream", 1), Slot("stream", 4))),),
        ),
        "agrees",
        "h[1] ⊕ h[4], one of the derived cases",
    ),
    "both stop at a line": (
        Observation(error="AssertionError at models/demo.py:41: no holder"),
        _STOPS,
        "agrees",
        "it stops with AssertionError at models/demo.py:41",
    ),
    "it stops where an attribute is missing": (
        Observation(error="AttributeError at models/demo.py:41: no attribute flag"),
        _MISSING,
        "agrees",
        "it stops with AttributeError at models/demo.py:41",
    ),
    "it stops at another line": (
        Observation(error="AssertionError at models/demo.py:42: no holder"),
        _STOPS,
        "open",
        "it did not run: AssertionError at models/demo.py:42: no holder",
    ),
    "it stops, and something is derived": (
        Observation(error="KeyError at models/demo.py:41: 0"),
        _DERIVED,
        "open",
        "it did not run: KeyError at models/demo.py:41: 0",
    ),
}


@pytest.mark.parametrize("case", _CASES)
def test_the_verdict(case: str) -> None:
    observation, derived, verdict, why = _CASES[case]
    found = compared(Answer(observation), derived)
    assert (found.verdict, found.why) == (verdict, why)


def test_a_run_that_was_ended_is_no_run() -> None:
    """A hostile file is counted as open, whatever it is derived to be."""
    found = compared(Answer(Observation(error="it used up its CPU time"), contained=True), _DERIVED)
    assert (found.verdict, found.contained, found.ran) == ("open", True, False)
    assert count([found]) == (
        "1 target classes: 0 ran and captured states, 0 as derived; 0 stop or capture nothing, as derived; "
        "0 disagree, 1 open"
    )


def test_a_stop_is_counted_apart_from_a_run() -> None:
    """A class that stops where the interpreter says so has not run: nothing of its capture was seen."""
    cases = ("the same", "both stop at a line", "nothing on both sides", "another boundary", "not derived")
    found = [compared(Answer(_CASES[case][0]), _CASES[case][1]) for case in cases]
    assert count(found) == (
        "5 target classes: 3 ran and captured states, 1 as derived; 2 stop or capture nothing, as derived; "
        "1 disagree, 1 open"
    )
