"""Two ranks that share each layer: a capture that is whole, one that is a rank's part, one that is a slice of the tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from eaglelint.probe.wiring.launch import run_tasks
from eaglelint.probe.wiring.task import Seen, Task
from tests.probe.wiring.trees import PARALLEL, parallel_model, write_engine

pytestmark = pytest.mark.skipif("sys.platform != 'linux'", reason="scanned code is contained on Linux alone")

_PART = tuple(Seen("shard", boundary, f"the sum of one rank's parts, of h[{boundary}]") for boundary in (2, 4, 6))
_SLICE = tuple(
    Seen(
        "shard",
        boundary,
        f"rank 0: the tokens 0, 1 of 4 of h[{boundary}]; rank 1: the tokens 2, 3 of 4 of h[{boundary}]",
        "0, 1",
    )
    for boundary in (2, 4, 6)
)
_WHOLE = tuple(Seen("stream", boundary, f"h[{boundary}]") for boundary in (2, 4, 6))
_SEEN = {"captured before the reduction": _PART, "captured while scattered": _SLICE}
# Each starts torchrun with two ranks, which costs seconds: the fault and its repair are tried every time, the rest in CI.
_EVERY_TIME = ("captured before the reduction", "reduced for the capture")


@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=() if form in _EVERY_TIME else pytest.mark.real) for form in PARALLEL]
)
def test_a_capture_is_told_from_a_ranks_part_of_it(form: str, tmp_path: Path) -> None:
    """The same model under torchrun with gloo: faults are shards, their repairs are the stream."""
    root = write_engine(tmp_path, parallel_model(form))
    task = Task("sglang", str(root), "sglang.srt.models.demo", "DemoForCausalLM", 8, {}, "eagle3", (1, 3, 5), ranks=2)
    (answer,) = run_tasks([task])
    assert answer.observation.error is None, answer
    assert answer.observation.seen == _SEEN.get(form, _WHOLE)
    assert answer.ranks == 2
    assert any("new sockets" in item for item in answer.enforced)
