"""A run's own config: YAML, JSON and commands, with the keys that the stack's schema knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from eaglelint.trainers.public import open_trainer
from eaglelint.trainers.recipe import Recipe, read_recipe
from eaglelint.trainers.trained import stack_of

PROJECTS = Path(__file__).parents[1] / "rules/projects"


def read(directory: Path, **files: str) -> Recipe:
    handle = open_trainer(f"specforge@{PROJECTS / 'mini-specforge'}", root=Path.cwd())
    paths = []
    for name, text in files.items():
        path = directory / name.replace("_", ".")
        path.write_text(text)
        paths.append(path)
    return read_recipe(paths, handle.trainer.recipe, handle.bench(32), {path: path.name for path in paths})


def test_ids_and_kind_of_a_yaml_file(tmp_path: Path) -> None:
    """Each with its line."""
    text = "model:\n  aux_hidden_state_layer_ids: [3, 7, 11]\ntraining: {strategy: eagle3}\n"
    found = read(tmp_path, run_yaml=text)
    assert (found.layer_ids, found.kind, found.way, found.problems) == ((3, 7, 11), "eagle3", "online", ())
    assert found.place is not None and (found.place.path, found.place.line) == ("run.yaml", 2)


def test_a_command_overrides_the_file(tmp_path: Path) -> None:
    """As ``a.b=value`` behind the command; the dump's path tells that one is trained on."""
    text = "model: {aux_hidden_state_layer_ids: [3, 7, 11]}\ndata: {hidden_states_path: dump}\n"
    command = "specforge train --config run.yaml \\\n  model.aux_hidden_state_layer_ids=[2,30,58]\n"
    found = read(tmp_path, run_yaml=text, run_sh=command)
    assert (found.layer_ids, found.way) == ((2, 30, 58), "dump")
    assert found.place is not None and (found.place.path, found.place.line) == ("run.sh", 2)


def test_flags_of_a_command(tmp_path: Path) -> None:
    """speculators takes ids as words behind a flag."""
    handle = open_trainer(f"specforge@{PROJECTS / 'mini-specforge'}", root=Path.cwd())
    from eaglelint.trainers.speculators import Speculators

    script = tmp_path / "train.sh"
    script.write_text(
        "python train.py --speculator-type dflash --target-layer-ids 2 10 18 --fc-norm --no-norm-output --lr 1\n"
    )
    found = read_recipe([script], Speculators.recipe, handle.bench(32), {script: "train.sh"})
    assert (found.layer_ids, found.kind) == ((2, 10, 18), "dflash")
    assert (found.values["draft", "fc_norm"], found.values["draft", "norm_output"]) == (True, False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model:\n  aux_hidden_state_layers: [1]\n", "run.yaml:2: specforge has no key model.aux_hidden_state_layers"),
        ("bogus: 1\n", "run.yaml:1: specforge has no key bogus"),
        ("model: [\n", "run.yaml:2:1: not valid YAML"),
        ("model: {aux_hidden_state_layer_ids: many}\n", "run.yaml:1: model.aux_hidden_state_layer_ids is no list"),
    ],
)
def test_what_is_wrong_in_a_config_is_said_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    """And nothing is raised."""
    found = read(tmp_path, run_yaml=text)
    assert found.layer_ids is None
    assert [problem[: len(said)] for problem in found.problems] == [said]


def test_aliases_that_grow_without_bound_are_not_followed(tmp_path: Path) -> None:
    """A few lines that stand for a million values."""
    lines = ["a0: &a0 {x: 1, y: 2, z: 3}"]
    lines += [f"a{i}: &a{i} {{p: *a{i - 1}, q: *a{i - 1}, r: *a{i - 1}, s: *a{i - 1}}}" for i in range(1, 12)]
    found = read(tmp_path, run_yaml="\n".join(lines))
    assert any("which no training config has" in problem for problem in found.problems)


@pytest.mark.parametrize(
    ("name", "text", "stack"),
    [
        ("run.yaml", "model: {aux_hidden_state_layer_ids: [3, 7, 11]}\ntraining: {strategy: eagle3}\n", "specforge"),
        ("run.json", '{"inference": {"inference_engine_type": "sgl"}}', "torchspec"),
        ("recipe.yaml", "eagle: {eagle_architecture_config: {num_hidden_layers: 1}}\n", "modelopt"),
        ("train.sh", "python train.py --speculator-type eagle3 --target-layer-ids 2 16 29\n", "speculators"),
        ("other.yaml", "learning_rate: 1e-4\n", None),
    ],
)
def test_whose_config_it_is_by_its_keys(tmp_path: Path, name: str, text: str, stack: str | None) -> None:
    """Before anybody said with which stack a run was made."""
    path = tmp_path / name
    path.write_text(text)
    assert stack_of(path, name) == stack
