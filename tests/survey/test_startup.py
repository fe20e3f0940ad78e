"""When a runner records graphs and when it hands over the ids, read in the order of its calls."""

from __future__ import annotations

import shutil
from pathlib import Path
from textwrap import dedent

import pytest

from eaglelint.serving import open_source
from eaglelint.survey.facts import GraphsBeforeIds
from eaglelint.survey.startup import read_startup

SOUND = Path(__file__).parent.parent / "rules/projects/sound-sglang/sglang"

RECORDS = "self.graph_runner = CudaGraphRunner(self)"
HANDS_OVER = "self.model.set_eagle3_layers_to_capture(self.ids)"


def cases(root: Path, body: str, *, graphs: str | None = None) -> tuple[GraphsBeforeIds, ...]:
    """What is found in a ModelRunner with this body."""
    shutil.copytree(SOUND, root / "sglang")
    head = "from sglang.srt.model_executor.cuda_graph_runner import CudaGraphRunner\n\n\nclass ModelRunner:\n"
    text = head + "".join(f"    {line}\n" for line in dedent(body).strip().splitlines())
    (root / "sglang/srt/model_executor/model_runner.py").write_text(text, "utf-8")
    if graphs is not None:
        (root / "sglang/srt/model_executor/cuda_graph_runner.py").write_text(dedent(graphs), "utf-8")
    handle = open_source(f"sglang@{root}", root=root, display_root=root)
    return read_startup(handle.engine, handle.source).graphs_before_ids


def test_the_order_within_one_method(tmp_path: Path) -> None:
    """The call that leads to the recording, the one that hands over the ids, the recording itself."""
    (case,) = cases(tmp_path, f"def __init__(self):\n    {RECORDS}\n    {HANDS_OVER}")
    assert (case.start.code, case.start.span.start.line) == ("CudaGraphRunner", 6)
    assert (case.ids.code, case.ids.span.start.line) == (HANDS_OVER, 7)
    assert (case.record.span.path, case.record.code) == (
        "sglang/srt/model_executor/cuda_graph_runner.py",
        "torch.cuda.CUDAGraph()",
    )
    assert case.with_defaults is None


def test_the_place_is_where_the_two_ways_part(tmp_path: Path) -> None:
    """Both lie below initialize(): there the order could be mended, not in __init__."""
    body = f"""
        def __init__(self):
            self.initialize()

        def initialize(self):
            if self.device == "cuda":
                self.record()
            {HANDS_OVER}

        def record(self):
            {RECORDS}
    """
    (case,) = cases(tmp_path, body)
    assert (case.start.code, case.start.span.start.line) == ("self.record()", 10)


def test_a_setter_without_ids(tmp_path: Path) -> None:
    """It decides what is recorded, and the ids come too late all the same."""
    graphs = """
        import torch

        class CudaGraphRunner:
            def __init__(self, model_runner):
                model_runner.model.set_eagle3_layers_to_capture()
                with torch.cuda.graph(self.graph):
                    pass
    """
    (case,) = cases(tmp_path, f"def __init__(self):\n    {RECORDS}\n    {HANDS_OVER}", graphs=graphs)
    assert case.with_defaults is not None and case.with_defaults.span.start.line == 6


@pytest.mark.parametrize(
    "body",
    [
        f"def __init__(self):\n    {HANDS_OVER}\n    {RECORDS}",
        f"def __init__(self):\n    {RECORDS}",
        f"def __init__(self):\n    {HANDS_OVER}",
        # Nobody says which of two methods is called first.
        f"def record(self):\n    {RECORDS}\ndef hand_over(self):\n    {HANDS_OVER}",
        # A second recording, after the ids, is no fault.
        f"def __init__(self):\n    {HANDS_OVER}\n    {RECORDS}\n    self.again()\ndef again(self):\n    {RECORDS}",
    ],
)
def test_what_is_no_fault(tmp_path: Path, body: str) -> None:
    assert cases(tmp_path, body) == ()


def test_circles_end(tmp_path: Path) -> None:
    """Methods that call each other are followed once."""
    body = f"""
        def __init__(self):
            self.again()
            {RECORDS}

        def again(self):
            self.__init__()
            {HANDS_OVER}
    """
    assert cases(tmp_path, body) == ()
