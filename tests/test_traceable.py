"""A finding that rests on an engine's lines names the command that traces its value."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eaglelint.cli.app import app
from eaglelint.finding import Finding, Related, Span
from eaglelint.registry import find_rule, rule_page
from eaglelint.rule_page import parse_page
from eaglelint.session import Inputs, open_session
from eaglelint.traceable import with_trace
from eaglelint.wiring import Evidence, Wiring
from tests.page_projects import write_project

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


@pytest.mark.parametrize(("code", "symbol"), [("VAL001", "layers_to_capture"), ("GPH003", "aux_pruned")])
def test_a_finding_on_an_engines_tree(code: str, symbol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list that the setter stores, or the value that is None there; and the command finds it."""
    page = parse_page(rule_page(find_rule(code)))
    write_project(next(found for found in page.examples if found.expected), tmp_path)
    monkeypatch.chdir(tmp_path)
    found = open_session(Inputs(paths=[Path("serving")])).scan().findings
    finding = next(finding for finding in found if finding.code == code)
    assert finding.trace is not None
    assert finding.trace.startswith(f"eaglelint trace {symbol} {finding.span.path}")
    result = CliRunner().invoke(app, [*finding.trace.split()[1:], "--format", "json"])
    listed = [(item["path"], item["line"]) for item in json.loads(result.stdout)["occurrences"]]
    assert (finding.span.path, finding.span.start.line) in listed
