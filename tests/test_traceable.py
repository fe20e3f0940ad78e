"""A finding that rests on an engine's lines names the command that traces its value."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eaglelint.finding import Finding, Related, Span
from eaglelint.traceable import with_trace
from eaglelint.wiring import Evidence, Wiring

SERVED = Wiring(
    "serving",
    "sglang 0.5.9",
    (),
    "exact",
    evidence=(Evidence("my engines/sglang/srt/m.py", 7, "layers_to_capture = [2, 30, 58]"),),
    ids_from=("eagle_config", "eagle_aux_hidden_state_layer_ids"),
    source="sglang@my engines/sglang",
)
FINDING = Finding(
    "CAP002",
    "boundary-mismatch",
    "error",
    "certain",
    "",
    Span.at("draft/config.json", 3),
    related=(Related("served", "", Span.at("my engines/sglang/srt/m.py", 7)),),
)


@pytest.mark.parametrize(
    ("wiring", "command"),
    [
        (SERVED, "eaglelint trace eagle_aux_hidden_state_layer_ids 'sglang@my engines/sglang'"),
        (replace(SERVED, ids_from=None), "eaglelint trace layers_to_capture 'sglang@my engines/sglang'"),
        (replace(SERVED, source=None), None),
        (replace(SERVED, source="sglang@other"), None),
        (replace(SERVED, ids_from=None, evidence=()), None),
    ],
)
def test_the_command(wiring: Wiring, command: str | None) -> None:
    """The key that was read, else the list that was made; nothing for a profile or another engine's lines."""
    assert with_trace(FINDING, [wiring]).trace == command
