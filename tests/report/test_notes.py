"""A directory of many drafts is not answered with as many lines."""

from __future__ import annotations

from eaglelint.report.notes import gathered


def test_what_is_said_alike_is_said_once() -> None:
    """With the first two files and how many more; what differs, and what is said of three, stays."""
    alike = [f"d{n}.json: 3 configs could be its target (a, b, c{n}). Name one." for n in range(5)]
    few = [f"e{n}.json: no target was found." for n in range(3)]
    assert gathered([*alike, *few, "No file.", *alike]) == (
        "d0.json, d1.json and 3 more: 3 configs could be its target (a, b, c0). Name one.",
        *few,
        "No file.",
    )
