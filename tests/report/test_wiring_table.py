"""The table of wirings puts both ends below each other, slot by slot."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from eaglelint.finding import Span
from eaglelint.report.wiring_table import render_wirings
from eaglelint.wiring import Condition, Evidence, Fault, Slot, Wiring

Printed = Callable[..., str]


def stream(*boundaries: int) -> tuple[Slot, ...]:
    return tuple(Slot("stream", boundary) for boundary in boundaries)


TRAINED = Wiring("training", "dump.py", stream(3, 31, 59), "exact", label=Slot("norm", 61))
SERVED = Wiring("serving", "sglang 0.5.9", stream(0, 3, 31), "exact", target_class="DeepseekV2ForCausalLM")


def test_slot_by_slot(printed: Printed) -> None:
    """A slot that differs from training, or lacks, is marked; an unknown one proves nothing."""
    other = Wiring("serving", "vllm 0.33.0", (*stream(3), Slot("unknown")), "unknown")
    assert printed(render_wirings, [TRAINED, SERVED, other]) == (
        "                                               slot 0  slot 1  slot 2   label        status\n"
        "trained  dump.py                               h[3]    h[31]   h[59]    norm(h[61])  exact\n"
        "served   sglang 0.5.9 (DeepseekV2ForCausalLM)  h[0] !  h[3] !  h[31] !               exact\n"
        "served   vllm 0.33.0                           h[3]    ?       !                     unknown\n"
    )


def test_a_terminal_shows_the_same_cells(printed: Printed) -> None:
    """Colour is added, nothing is lost."""
    plain = printed(render_wirings, [TRAINED, SERVED])
    shown = printed(render_wirings, [TRAINED, SERVED], width=120)
    assert "\x1b[1;31mh[0] !" in shown
    assert re.sub(r"\x1b\[[\d;]*m", "", shown).split() == plain.split()


def test_what_a_wiring_rests_on(printed: Printed) -> None:
    """Conditions, assumptions, faults and evidence follow the table."""
    wiring = replace(
        SERVED,
        status="conditional",
        conditions=(Condition("when can_run_tbo", stream(3), Span.at("model.py", 5)),),
        assumptions=("one pipeline rank",),
        faults=(Fault("IndexError", "model.py", 7),),
        evidence=(Evidence("model.py", 12, "appends", 0), Evidence("model.py", 20, "concatenates")),
        target_class=None,
    )
    assert printed(render_wirings, [wiring]) == (
        "                      slot 0  slot 1  slot 2  status\n"
        "served  sglang 0.5.9  h[0]    h[3]    h[31]   conditional\n"
        "\n"
        "served sglang 0.5.9\n"
        "  when can_run_tbo  ->  h[3]  (model.py:5)\n"
        "  assumes one pipeline rank\n"
        "  fails: model.py:7  IndexError\n"
        "  model.py:12  slot 0: appends\n"
        "  model.py:20  concatenates\n"
    )


def test_an_unknown_wiring_says_why(printed: Printed) -> None:
    """The reason stands below the table."""
    unknown = Wiring("training", "dump.py", (), "unknown", reason="no capture was found")
    assert "trained dump.py\n  unknown: no capture was found\n" in printed(render_wirings, [unknown])


def test_no_wirings(printed: Printed) -> None:
    """An empty table says so."""
    assert printed(render_wirings, []) == "No wiring is known.\n"
