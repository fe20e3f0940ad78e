"""A public training stack is run step by step: ids, capture by an engine, dump, label, shift, export."""

from __future__ import annotations

from pathlib import Path

import pytest

from eaglelint.exceptions import UnreadableInput, WrongUsage
from eaglelint.serving import open_source
from eaglelint.trainers.base import Run
from eaglelint.trainers.public import is_trainer, open_trainer
from eaglelint.trainers.stack import Engines, StackTraining, TrainerHandle

PROJECTS = Path(__file__).parents[1] / "rules/projects"
TARGET = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 32, "hidden_size": 64}


@pytest.fixture
def specforge() -> TrainerHandle:
    return open_trainer(f"specforge@{PROJECTS / 'mini-specforge'}", root=Path.cwd())


@pytest.fixture
def engines() -> Engines:
    sglang = open_source(f"sglang@{PROJECTS / 'mini-sglang'}", root=Path.cwd())
    return Engines((sglang,), ("LlamaForCausalLM",), TARGET, named=True)


def trained(handle: TrainerHandle, engines: Engines, **run: object) -> StackTraining:
    return handle.derive(Run("eagle3", 32, target=TARGET, **run), engines)  # type: ignore[arg-type]


def test_the_default_ids_go_to_the_engine_that_captures(specforge: TrainerHandle, engines: Engines) -> None:
    """Nothing names ids: the stack's own list for 32 layers, as SGLang's setter counts it."""
    found = trained(specforge, engines)
    assert (found.ids, str(found.wiring)) == ((1, 15, 28), "h[2] ⊕ h[16] ⊕ h[29]")
    assert found.wiring.status == "exact"


def test_ids_of_the_run_override_those_of_the_draft(specforge: TrainerHandle, engines: Engines) -> None:
    """And they reach no exported config: that is a copy of the draft config."""
    draft = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 15, 28]}}
    found = trained(specforge, engines, layer_ids=(3, 7, 11), draft=draft)
    assert found.ids == (3, 7, 11)
    assert str(found.wiring) == "h[4] ⊕ h[8] ⊕ h[12]"
    assert found.export is not None and found.export.config == draft


def test_the_label_and_the_shift_are_read_from_the_trainers_code(specforge: TrainerHandle, engines: Engines) -> None:
    """Ids and the label move by one token, the states do not; nothing norms the label once more."""
    found = trained(specforge, engines)
    assert found.fed is not None
    assert dict(found.fed.shifts) == {"input_ids": 1, "target": 1, "loss_mask": 0, "hidden_state": 0}
    assert (found.fed.inputs, found.fed.label_normed) == ((0, 1, 2), False)


def test_swapped_names_in_the_reader_of_dumps_are_seen(
    specforge: TrainerHandle, engines: Engines, tmp_path: Path
) -> None:
    """A reader that feeds fc with the last state alone does not feed it what was captured."""
    import shutil

    copy = tmp_path / "stack"
    shutil.copytree(PROJECTS / "mini-specforge", copy)
    reader = copy / "specforge/algorithms/eagle3/data.py"
    reader.write_text(
        reader.read_text().replace('"hidden_state": raw["aux_hidden_state"]', '"hidden_state": raw["hidden_state"]')
    )
    found = trained(open_trainer(f"specforge@{copy}", root=Path.cwd()), engines)
    assert found.wiring.status == "unknown"
    assert "what feeds fc is not known" in (found.wiring.reason or "")


def test_without_the_engine_the_states_are_not_known(specforge: TrainerHandle) -> None:
    """The answer says which engine is missing and how to pass it."""
    found = trained(specforge, Engines((), ("LlamaForCausalLM",), TARGET))
    assert (found.wiring.status, found.wiring.slots) == ("unknown", ())
    assert "--captured-by sglang@PATH" in (found.wiring.reason or "")


def test_a_function_that_is_missing_is_said(specforge: TrainerHandle, engines: Engines, tmp_path: Path) -> None:
    """Another release may have moved it: unknown, with the file."""
    import shutil

    copy = tmp_path / "stack"
    shutil.copytree(PROJECTS / "mini-specforge", copy)
    (copy / "specforge/offline_capture/sglang_backend/capture.py").write_text("def broken(:\n")
    handle = open_trainer(f"specforge@{copy}", root=Path.cwd())
    found = trained(handle, engines)
    assert found.wiring.status == "unknown"
    assert "capture.py" in (found.wiring.reason or "")
    assert any("capture.py" in problem for problem in handle.problems)


def test_an_exporter_that_is_not_there_or_does_not_parse_is_said(specforge: TrainerHandle, tmp_path: Path) -> None:
    """A sentence with the file, and no weights."""
    import shutil

    run = Run("eagle3", 32, target=TARGET)
    weights, problems = specforge.weights(run)
    assert weights == () and len(problems) == 1 and "llama3_eagle.py is not there" in problems[0]
    copy = tmp_path / "stack"
    shutil.copytree(PROJECTS / "mini-specforge", copy)
    drafts = copy / "specforge/modeling/draft"
    drafts.mkdir(parents=True)
    (drafts / "llama3_eagle.py").write_text(
        "from torch import nn\n\n\nclass LlamaForCausalLMEagle3(nn.Module):\n    def __init__(self, config):\n"
        "        self.fc = nn.Linear(3, 1)\n        self.fc.weight.requires_grad = config.nothing\n"
    )
    weights, problems = open_trainer(f"specforge@{copy}", root=Path.cwd()).weights(run)
    assert weights == () and "AttributeError" in problems[0] and "nothing" in problems[0]


def test_what_trained_by_names() -> None:
    """Stacks are told from conventions; what is not there is said in a sentence."""
    assert is_trainer("specforge@x") and not is_trainer("layer-output")
    with pytest.raises(WrongUsage, match="layer-output"):
        open_trainer("nobody", root=Path.cwd())
    with pytest.raises(UnreadableInput, match="there is no nowhere"):
        open_trainer("specforge@nowhere", root=Path.cwd())
    with pytest.raises(UnreadableInput, match="holds no speculators source"):
        open_trainer(f"speculators@{PROJECTS}", root=Path.cwd())
