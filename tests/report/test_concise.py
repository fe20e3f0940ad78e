"""The concise format is one line for each finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from eaglelint.finding import Finding
from eaglelint.report.concise import render_concise


def test_one_line_each(mismatch: Finding, listed: Callable[..., str]) -> None:
    """Place, severity, code and message, never wrapped; a line break in a message is a space."""
    broken = replace(mismatch, severity="note", message="one\ntwo")
    assert listed(render_concise, [mismatch, broken]) == (
        "draft/config.json:3:41: error[CAP002] slot 1 was trained on h[3] and is served h[0] (the embedding)\n"
        "draft/config.json:3:41: note[CAP002] one two\n"
    )
