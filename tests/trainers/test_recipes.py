"""A run's own config: YAML, JSON and commands, with the keys that the stack's schema knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from eaglelint.trainers.public import open_trainer
from eaglelint.trainers.recipe import Recipe, read_recipe

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
    script.write_text("python train.py --speculator-type dflash --target-layer-ids 2 10 18 --lr 1\n")
    found = read_recipe([script], Speculators.recipe, handle.bench(32), {script: "train.sh"})
    assert (found.layer_ids, found.kind) == ((2, 10, 18), "dflash")


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
