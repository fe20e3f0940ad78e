"""Published drafts with well-formed checkpoints: what an engine builds for them takes the states of their targets."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from eaglelint.artifacts.draft import read_draft
from eaglelint.finding import Finding
from eaglelint.probe.flow import ProbeOptions, probe_scan
from eaglelint.project.pipelines import PipelineInput
from eaglelint.registry import all_rules
from eaglelint.scan import Options, ScanResult, gather
from tests.checkpoints import write_safetensors
from tests.published.test_published import config, target
from tests.published.test_with_checkpoints import TRAINED, checkpoint_of


@pytest.mark.parametrize("name", TRAINED)
def test_the_input_path_fails_where_a_rule_speaks(name: str, tmp_path: Path) -> None:
    """Without a finding on shapes every step passes; with one it is confirmed."""
    shutil.copy(config(name), tmp_path / "config.json")
    tensors = checkpoint_of(read_draft(config(name), name))
    assert tensors is not None
    write_safetensors(tmp_path / "model.safetensors", tensors)
    facts, *_ = gather(PipelineInput(name, tmp_path, target(name)), Options())
    findings: list[Finding] = [
        found for rule in all_rules() if rule.code.startswith("SHP") for found in rule.check(rule, facts)
    ]
    probed = probe_scan(ScanResult(tuple(findings), facts=(facts,)), ProbeOptions())
    verdicts = {found.code: found.probe.verdict for found in probed.findings if found.probe}
    expected = "failed" if findings else "passed"
    assert ({outcome.result for outcome in probed.outcomes}, set(verdicts.values()) - {"confirmed"}) == (
        {expected},
        set(),
    ), [outcome.summary for outcome in probed.outcomes]
