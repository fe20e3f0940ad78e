"""Each public report in its smallest project: its rules speak, and stay silent on the mended one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.checkpoints import tensors_from_text, write_safetensors
from tests.reports.cases import CASES, MISSED, RIGHT, Case, Right
from tests.reports.page import PAGE, render
from tests.reports.parts import Project
from tests.reports.training import TRAINING

PROJECTS = Path(__file__).parents[1] / "rules" / "projects"


def found(project: Project, directory: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> set[str]:
    """The codes of all findings of a scan."""
    if project.engine is not None:
        shutil.copytree(PROJECTS / project.engine, directory / "serving")
    for path, text in project.files.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".safetensors"):
            write_safetensors(file, tensors_from_text(text))
        else:
            file.write_text(text, encoding="utf-8")
    monkeypatch.chdir(directory)

    from eaglelint.cli.app import app

    result = CliRunner().invoke(app, [*project.command, *options, "--output-format", "json"])
    assert result.exit_code in (0, 1), result.output
    return {finding["code"] for finding in json.loads(result.stdout)["findings"]}


@pytest.mark.parametrize("case", (*CASES, *TRAINING), ids=lambda case: case.report)
def test_the_report_is_found(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(case.rules) <= found(case.project, tmp_path, monkeypatch)


@pytest.mark.parametrize("case", (*CASES, *TRAINING), ids=lambda case: case.report)
def test_the_mended_project_is_silent(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every rule, not only of that which found it; what other engines make of the config is no fault of it."""
    assert found(case.mended, tmp_path, monkeypatch, "--ignore", "engine-bound") == set()


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case.report)
def test_what_is_right_is_not_reported(case: Right, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what looks like it and is wrong is."""
    assert found(case.project, tmp_path / "right", monkeypatch) == set()
    assert case.rule in found(case.wrong, tmp_path / "wrong", monkeypatch)


MENDED_BY_EDITS = (
    "sgl-project/sglang#33966",
    "sgl-project/SpecForge#129",
    "vllm-project/speculators#636",
    "sgl-project/SpecForge#140",
    "vllm-project/speculators#188",
    "vllm-project/vllm#48894",
    "SafeAILab/EAGLE#291",
    "NVIDIA/Model-Optimizer#2221",
    "vllm-project/speculators#574",
)


@pytest.mark.parametrize("report", MENDED_BY_EDITS)
def test_the_edits_mend_it(report: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After ``--fix --unsafe-fixes`` nothing is left to report."""
    (case,) = (case for case in CASES if case.report == report)
    assert found(case.project, tmp_path, monkeypatch) != set()
    assert found(case.project, tmp_path, monkeypatch, "--fix", "--unsafe-fixes") == set()


def test_each_report_stands_once() -> None:
    reports = [case.report for case in (*CASES, *TRAINING, *RIGHT, *MISSED)]
    assert sorted(set(reports)) == sorted(reports)


def test_the_page_is_fresh() -> None:
    """docs/reports.md is what ``python -m tests.reports.page`` writes."""
    assert PAGE.read_text("utf-8") == render()
