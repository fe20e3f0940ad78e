"""Graphs for prefills that no prefill of an EAGLE-3 target runs on: what is asked for, let in, and made."""

from __future__ import annotations

import shutil
from pathlib import Path
from textwrap import indent

import pytest

from eaglelint.serving import open_source
from eaglelint.source.calls import run_here
from eaglelint.survey import graph_modes
from eaglelint.survey.facts import RefusedGraphs
from eaglelint.survey.graph_modes import refused_graphs

SOUND = Path(__file__).parent.parent / "rules/projects/sound-sglang/sglang"

RUNNER = """\
from sglang.srt.model_executor.forward_batch_info import CaptureHiddenMode


class PrefillRunner:
    def __init__(self, model_runner):
        self.model_runner = model_runner
        self.limit = 4096
        self.mode = {mode}

{methods}
"""
MAKER = """\
from sglang.srt.model_executor.prefill_runner import PrefillRunner


def graphs(model_runner):
    {before}
    return PrefillRunner(model_runner)
"""
WORKER = """\
from sglang.srt.model_executor.forward_batch_info import CaptureHiddenMode


class EAGLEWorkerV2:
    def forward_batch_generation(self, batch):
        if batch.forward_mode.is_extend():
            return self.target_worker.forward_batch_generation(batch, capture_hidden_mode={asked})
        return self.verify(batch)
"""
SAME = (
    "def can_run(self, batch):\n    return batch.capture_hidden_mode == self.mode and len(batch.input_ids) < self.limit"
)
AT_LEAST = "def can_run(self, batch):\n    return not self.mode < batch.capture_hidden_mode and batch.fits"


def cases(
    root: Path,
    *,
    mode: str = "CaptureHiddenMode.NULL",
    methods: str = SAME,
    before: str = "pass",
    asked: str = "CaptureHiddenMode.FULL",
    backends: tuple[str, ...] = (),
) -> tuple[RefusedGraphs, ...]:
    """What is found in a small engine with such a runner, such a function that makes it, and such a worker."""
    shutil.copytree(SOUND, root / "sglang")
    srt = root / "sglang" / "srt"
    (srt / "model_executor/prefill_runner.py").write_text(RUNNER.format(mode=mode, methods=indent(methods, "    ")))
    (srt / "model_executor/graphs.py").write_text(MAKER.format(before=before))
    (srt / "speculative/eagle_worker_v2.py").write_text(WORKER.format(asked=asked))
    if backends:
        (srt / "model_executor/cuda_graph_config.py").write_text(f"class Backend:\n    ALL = {backends}\n")
    handle = open_source(f"sglang@{root}", root=root, display_root=root)
    return refused_graphs(handle.engine, handle.source)


def test_what_is_said_of_a_runner(tmp_path: Path) -> None:
    """Where its mode is set, where it is made, what its gate lets in, and who asks for what."""
    (case,) = cases(tmp_path)
    assert case.recorded is not None
    assert (str(case.recorded), case.recorded.code) == (
        "sglang/srt/model_executor/prefill_runner.py:8",
        "self.mode = CaptureHiddenMode.NULL",
    )
    assert (str(case.made), case.made.code) == ("sglang/srt/model_executor/graphs.py:6", "PrefillRunner(model_runner)")
    assert (case.runner, case.lets_in, case.worker, case.asks_for) == (
        "PrefillRunner",
        ("NULL",),
        "EAGLEWorkerV2",
        "FULL",
    )
    assert str(case.gate) == "sglang/srt/model_executor/prefill_runner.py:10"
    assert str(case.asked) == "sglang/srt/speculative/eagle_worker_v2.py:7"
    assert case.option is None


@pytest.mark.parametrize(
    ("mode", "methods", "lets_in"),
    [
        ("CaptureHiddenMode.LAST", SAME, ("LAST",)),
        ("CaptureHiddenMode.LAST", AT_LEAST, ("NULL", "LAST")),
        ("CaptureHiddenMode.FULL if self.model_runner.is_draft_worker else CaptureHiddenMode.NULL", SAME, ("NULL",)),
    ],
)
def test_other_modes_and_gates(tmp_path: Path, mode: str, methods: str, lets_in: tuple[str, ...]) -> None:
    """A gate that wants the same mode, or one that is at least as full."""
    assert [case.lets_in for case in cases(tmp_path, mode=mode, methods=methods)] == [lets_in]


@pytest.mark.parametrize(
    "given",
    [
        {"mode": "CaptureHiddenMode.FULL"},
        {"mode": "CaptureHiddenMode.FULL", "methods": AT_LEAST},
        {"mode": "CaptureHiddenMode.FULL if model_runner.spec_algorithm.is_eagle3() else CaptureHiddenMode.NULL"},
        {"mode": "model_runner.mode"},
        {"methods": "def can_run(self, batch):\n    return len(batch.input_ids) < self.limit"},
        {"methods": "def can_run(self, batch):\n    return False"},
        {"methods": f"{SAME}\n\ndef recapture(self, batch):\n    self.mode = batch.capture_hidden_mode"},
        {"asked": "CaptureHiddenMode.NULL"},
        {"asked": "batch.mode"},
        {"before": "if model_runner.spec_algorithm.is_eagle3(): return None"},
        {"before": "if not model_runner.is_draft_worker: return None"},
    ],
    ids=[
        "recorded in full",
        "recorded in full, at least as full",
        "recorded in full for EAGLE-3",
        "a mode that is not known",
        "a gate that compares no mode",
        "a gate that lets in nothing",
        "recorded anew for another mode",
        "a worker that needs no states",
        "a worker of which it is not known",
        "not made for EAGLE-3",
        "made for the draft alone",
    ],
)
def test_what_is_left_alone(tmp_path: Path, given: dict[str, str]) -> None:
    """Graphs that do, that are not made, or of which it is not known."""
    assert cases(tmp_path, **given) == ()


def test_each_back_end_is_tried(tmp_path: Path) -> None:
    """The runner asks for its back end where the server's arguments name one, and so does who makes it."""
    backend = "model_runner.server_args.cuda_graph_config.prefill.backend"
    found = cases(
        tmp_path,
        mode=f"CaptureHiddenMode.FULL if {backend} == 'whole' else CaptureHiddenMode.NULL",
        before=f"if {backend} == 'none': return None",
        backends=("whole", "none", "pieces"),
    )
    assert [(case.option, case.lets_in) for case in found] == [("pieces", ("NULL",))]


def test_the_first_path_that_lets_a_mode_in_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate is asked once, though there are paths on which it refuses."""
    asked: list[object] = []

    def noted(machine, gate, args):  # type: ignore[no-untyped-def]
        asked.append(gate)
        return run_here(machine, gate, args)

    monkeypatch.setattr(graph_modes, "run_here", noted)
    gate = "def can_run(self, batch):\n    if batch.large:\n        return False\n    return True"
    assert cases(tmp_path, methods=gate) == ()
    assert len(asked) == 1
