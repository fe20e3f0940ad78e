"""What the wiring probe sees in small models whose captures are known, and what it says where it cannot see."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

pytest.importorskip("torch")

from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from eaglelint.cli.app import app
from eaglelint.probe.wiring.launch import Answer, run_tasks
from eaglelint.probe.wiring.task import Task
from tests.probe.wiring.trees import model_file, write_engine

pytestmark = pytest.mark.skipif("sys.platform != 'linux'", reason="scanned code is contained on Linux alone")

_WHOLE = "hidden_states if residual is None else hidden_states + residual"

# What is captured before each layer of the ids, and what must be read back for the boundaries 2, 4 and 6.
_CAPTURES = {
    _WHOLE: ("h[2]", "h[4]", "h[6]"),
    "hidden_states": ("partial(h[2])", "partial(h[4])", "partial(h[6])"),
    "residual": ("h[1]", "h[3]", "h[5]"),
    f"self.norm({_WHOLE})": ("norm(h[2])", "norm(h[4])", "norm(h[6])"),
    f"({_WHOLE}).clone().to(torch.bfloat16)": ("h[2]", "h[4]", "h[6]"),
    "hidden_states * 2 + residual": ("?", "?", "?"),
    "hidden_states * residual": ("?", "?", "?"),
    "torch.zeros_like(hidden_states)": ("?", "?", "?"),
}


def _tasks(roots: list[Path], **fields: object) -> list[Task]:
    return [
        Task("sglang", str(root), "sglang.srt.models.demo", "DemoForCausalLM", 8, {}, "eagle3", (1, 3, 5), **fields)  # type: ignore[arg-type]
        for root in roots
    ]


def valid(document: object, name: str) -> None:
    schema = json.loads((files("eaglelint.schemas") / f"{name}.schema.json").read_text("utf-8"))
    Draft202012Validator(schema).validate(document)


def _slots(answer: Answer) -> tuple[str, ...]:
    assert answer.observation.error is None, answer
    names = {
        "stream": "h[{}]",
        "norm": "norm(h[{}])",
        "partial": "partial(h[{}])",
        "unknown": "?",
        "shard": "shard(h[{}])",
    }
    return tuple(names[seen.form].format(seen.boundary) for seen in answer.observation.seen)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    """All captures, run in one child process."""
    roots = [write_engine(tmp_path_factory.mktemp("engine"), model_file(captured=captured)) for captured in _CAPTURES]
    return dict(zip(_CAPTURES, run_tasks(_tasks(roots)), strict=True))


@pytest.mark.parametrize("captured", _CAPTURES)
def test_a_captured_tensor_reads_back_as_what_it_is(captured: str, seen: dict[str, Answer]) -> None:
    """Whole stream, branch, normed stream, or none of these: products and scaled sums are never taken for a boundary."""
    assert _slots(seen[captured]) == _CAPTURES[captured]


def test_a_state_that_is_no_boundary_is_told_by_what_it_holds(seen: dict[str, Answer]) -> None:
    """The parts that are in it are named, the last ones by their layer."""
    holds = seen["hidden_states * 2 + residual"].observation.seen[1].holds
    assert holds.startswith("5 states, the last of them RowParallelLinear()")
    assert holds.endswith("of layer 3")


def test_every_layer_is_seen_to_run_once(seen: dict[str, Answer]) -> None:
    assert seen[_WHOLE].observation.layers == tuple(range(8))


def test_a_capture_that_shares_memory_differs_where_norms_add_in_place(seen: dict[str, Answer]) -> None:
    """The residual that is stored without a copy is written over by the next norm; a sum is a tensor of its own."""
    assert seen["residual"].observation.fused is not None
    assert seen[_WHOLE].observation.fused is None


def test_what_was_passed_over_is_told(tmp_path: Path) -> None:
    """A statement that fails for lack of something does not end the run, and is reported with its line."""
    model = model_file().replace("self.lm_head = None", "self.lm_head = 1 / 0")
    (answer,) = run_tasks(_tasks([write_engine(tmp_path, model)]))
    assert _slots(answer) == ("h[2]", "h[4]", "h[6]")
    ((what, why),) = answer.observation.stood_in
    assert what.startswith("DemoForCausalLM.__init__, line ")
    assert why == "ZeroDivisionError: division by zero"


def test_layers_out_of_order_are_no_stream(tmp_path: Path) -> None:
    """Where the layers do not run one after the other, nothing is claimed about boundaries."""
    model = model_file().replace("enumerate(self.layers)", "reversed(list(enumerate(self.layers)))")
    (answer,) = run_tasks(_tasks([write_engine(tmp_path, model)]))
    assert answer.observation.seen == ()
    assert answer.observation.error == "of 8 layers these ran, in this order: 7, 6, 5, 4, 3, 2, 1, 0"


def test_the_command_compares_with_the_interpreter(tmp_path: Path) -> None:
    """``probe --execute`` runs the class, derives it too, and says that both agree."""
    write_engine(tmp_path, model_file())
    arguments = ["probe", "--execute", "--serving", f"sglang@{tmp_path}", "--layer-ids", "1,3,5", "--format", "json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    valid(document, "probe-wiring")
    (found,) = document["engines"][0]["classes"]
    assert found["observed"]["slots"] == found["derived"]["slots"] == ["h[2]", "h[4]", "h[6]"]
    assert found["verdict"] == "agrees"
    assert any("system calls" in item for item in found["enforced"])


def test_the_report_follows_its_schema_also_where_nothing_was_seen(tmp_path: Path) -> None:
    """A class whose run ends in an error has no observed wiring; each wiring is one of wiring.schema.json."""
    write_engine(tmp_path, model_file(captured="{}['no such state']"))
    result = CliRunner().invoke(app, ["probe", "--execute", "--serving", f"sglang@{tmp_path}", "--format", "json"])
    document = json.loads(result.stdout)
    valid(document, "probe-wiring")
    (found,) = document["engines"][0]["classes"]
    assert found["observed"] is None
    assert found["error"].startswith("KeyError at sglang/srt/models/demo.py:")
    valid({"schema_version": 1, "wirings": [found["derived"]]}, "wiring")


def test_an_engine_that_no_probe_knows_is_refused(tmp_path: Path) -> None:
    models = tmp_path / "lmdeploy" / "pytorch" / "models"
    models.mkdir(parents=True)
    (models / "module_map.py").write_text("", encoding="utf-8")
    result = CliRunner().invoke(app, ["probe", "--execute", "--serving", f"lmdeploy@{tmp_path}"])
    assert result.exit_code != 0
    assert "--execute knows sglang and vllm" in str(result.exception)
