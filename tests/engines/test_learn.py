"""What is learned from an engine's source answers as the source does, or says that it does not know."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import pytest

from eaglelint.derive import Derivation, Deriver, ServingRequest
from eaglelint.engines.profile import CaptureRule, Mapping, Profile
from eaglelint.engines.profile_file import profile_text
from eaglelint.engines.recall import recall
from eaglelint.exceptions import UnreadableInput, WrongUsage
from eaglelint.learn.learn import learn_class, learn_from, learn_profile
from eaglelint.learn.wheel import unpacked
from eaglelint.serving import ProfileHandle
from tests.engines.mini import BEFORE, Model, derive, write_engine

NAME = "LlamaForCausalLM"
NESTED = ("eagle_config", "eagle_aux_hidden_state_layer_ids")

FIRST_IS_ONE = """
if layer_ids is None:
    num_layers = self.config.num_hidden_layers
    self.model.layers_to_capture = [2, num_layers // 2, num_layers - 3]
elif layer_ids[0] == 1:
    self.model.layers_to_capture = [layer_id + 1 for layer_id in layer_ids]
else:
    self.model.layers_to_capture = list(layer_ids)
"""
MAX_IS_DEPTH = """
if layer_ids is None:
    self.model.layers_to_capture = [1, self.config.num_hidden_layers - 1]
elif max(layer_ids) == self.config.num_hidden_layers:
    self.model.layers_to_capture = sorted(set(layer_ids))
else:
    self.model.layers_to_capture = [layer_id + 1 for layer_id in layer_ids]
"""
ODD_NUMBER = """
if layer_ids is not None and layer_ids[1] == 17:
    self.model.layers_to_capture = [layer_id + 2 for layer_id in layer_ids]
else:
    self.model.layers_to_capture = [layer_id + 1 for layer_id in layer_ids or [2, 4]]
"""
INDEXED = """
self.model.layers_to_capture = []
for layer_id in [2, 4] if layer_ids is None else layer_ids:
    self.model.layers[layer_id]
    self.model.layers_to_capture.append(layer_id)
"""
AFTER = """
hidden_states = self.embed_tokens(input_ids)
residual = None
aux = []
for i, layer in enumerate(self.layers):
    hidden_states, residual = layer(hidden_states, residual)
    if i in self.layers_to_capture:
        aux.append(hidden_states + residual)
hidden_states, _ = self.norm(hidden_states, residual)
return hidden_states, aux
"""
LISTED = """
hidden_states = self.embed_tokens(input_ids)
residual = None
states = []
for layer in self.layers:
    states.append(hidden_states + residual if residual is not None else hidden_states)
    hidden_states, residual = layer(hidden_states, residual)
states.append(hidden_states + residual)
hidden_states, _ = self.norm(hidden_states, residual)
return hidden_states, [states[i] for i in self.layers_to_capture]
"""

MODELS = {
    "plain": Model(),
    "first": Model(setter=FIRST_IS_ONE),
    "depth": Model(setter=MAX_IS_DEPTH),
    "odd number": Model(setter=ODD_NUMBER),
    "indexed": Model(setter=INDEXED),
    "after": Model(loop=AFTER),
    "listed": Model(loop=LISTED),
    "residual alone": Model(
        loop=BEFORE.replace(
            "hidden_states + residual if residual is not None else hidden_states", "hidden_states + residual"
        )
    ),
    "depth of its own": Model(
        loop=BEFORE.replace("len(self.layers)", "len(self.layers) if len(self.layers) != 40 else 5")
    ),
}


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Profile]]:
    """Each small engine and what was learned from it."""
    found = {}
    for name, model in MODELS.items():
        root = write_engine(tmp_path_factory.mktemp("engine"), model)
        found[name] = (root, learn_profile(root / "sglang", "sglang", processes=1))
    return found


def rule(profile: Profile, kind: str = "eagle3") -> CaptureRule:
    found = mapping(profile, kind).rule
    assert found is not None
    return found


def mapping(profile: Profile, kind: str = "eagle3") -> Mapping:
    return profile.mappings[profile.classes[NAME].mappings[kind][0]]


@pytest.mark.parametrize("name", MODELS)
def test_a_profile_answers_as_the_source(learned: dict[str, tuple[Path, Profile]], name: str) -> None:
    """For random ids and depths, odd ones among them: the same slots, status and faults, or unknown; never another."""
    root, profile = learned[name]
    random = Random(name)
    told = 0
    for _ in range(12):
        depth = random.choice((5, 7, 12, 40, 41))
        ids: Any = tuple(random.randint(-2, depth + 2) for _ in range(random.randint(1, 5)))
        ids = random.choice((ids, tuple(sorted(set(ids))), "default", (1, 17, 20)))
        source = derive(root, MODELS[name], ids, depth)
        answer = recall(profile, NAME, "eagle3", depth, layer_ids=ids)
        if answer.status == "unknown" and not answer.slots and not answer.faults:
            continue
        told += 1
        shown = (name, ids, depth)
        assert (answer.slots, answer.status) == (source.slots, source.status), shown
        assert [fault.boundary for fault in answer.faults] == [fault.boundary for fault in source.faults], shown
    assert told > 0 or mapping(profile).status == "unknown"


def test_what_was_learned(learned: dict[str, tuple[Path, Profile]]) -> None:
    """Shifts, conditions, order and places are those of the source."""
    assert [(str(case.when), case.shift) for case in rule(learned["plain"][1]).cases] == [("None", 1)]
    assert [(str(case.when), case.shift) for case in rule(learned["first"][1]).cases] == [
        ("first == 1", 1),
        ("None", 0),
    ]
    assert [(str(case.when), case.shift) for case in rule(learned["depth"][1]).cases] == [("max == N", 0), ("None", 1)]
    assert rule(learned["depth"][1]).default == ("1", "N-1")
    assert rule(learned["plain"][1]).default == ("2", "N//2", "N-3")
    assert (rule(learned["listed"][1]).order, rule(learned["listed"][1]).repeats) == ("list", "kept")
    assert (rule(learned["after"][1]).order, rule(learned["after"][1]).repeats) == ("layers", "dropped")
    assert rule(learned["after"][1]).outcomes["last"].form == "stream"
    assert rule(learned["plain"][1]).outcomes["last"].form == "lost"
    assert rule(learned["indexed"][1]).outcomes["above"].form == "stops"
    embedding = rule(learned["residual alone"][1]).outcomes["embedding"]
    assert (embedding.form, embedding.fault is not None) == ("unknown", True)


def test_a_condition_on_the_depth_is_one_for_all_depths(tmp_path: Path) -> None:
    """What holds where the config has an item for each layer is learned as that, and told with the target's number."""
    counted = BEFORE.replace("len(self.layers)", "self.depth")
    model = Model(init="self.depth = len(config.layer_types)", loop=counted)
    root = write_engine(tmp_path, model)
    profile = learn_profile(root / "sglang", "sglang", processes=1)
    source = derive(root, model, (1, 9), 30)
    answer = recall(profile, NAME, "eagle3", 30, layer_ids=(1, 9))
    assert (source.status, str(source)) == ("conditional", "h[2] ⊕ h[10]")
    assert (answer.status, answer.slots, answer.conditions) == (source.status, source.slots, source.conditions)
    text = "when the target's config.layer_types has an item for each of the 30 layers"
    assert [condition.text for condition in answer.conditions] == [text]


def test_a_condition_that_no_rule_explains_is_unknown(learned: dict[str, tuple[Path, Profile]]) -> None:
    """A setter that treats the number 17 in the second place apart is not taken for one that does not."""
    found = mapping(learned["odd number"][1])
    assert (found.status, found.rule) == ("unknown", None)
    assert "fits no rule" in (found.reason or "")


def test_a_depth_of_its_own_is_found(learned: dict[str, tuple[Path, Profile]]) -> None:
    """Code that treats 40 layers apart is seen to ask for them, and no rule covers it."""
    assert mapping(learned["depth of its own"][1]).status == "unknown"
    assert "40 layers" in (mapping(learned["depth of its own"][1]).reason or "")


@pytest.mark.parametrize(
    "draft",
    [
        {"eagle_config": {NESTED[1]: [2, 5, 8]}},
        {NESTED[1]: [2, 5, 8]},
        {"eagle_config": {"use_aux_hidden_state": False, NESTED[1]: [2, 5, 8]}},
        {"eagle_config": {}},
        {"eagle_config": None},
        {"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 64},
        {},
    ],
)
def test_ids_are_looked_for_as_in_the_source(learned: dict[str, tuple[Path, Profile]], draft: dict[str, Any]) -> None:
    """The same key path, ids and slots for a draft's config."""
    root, profile = learned["plain"]
    source = derive(root, MODELS["plain"], draft=draft)
    answer = recall(profile, NAME, "eagle3", 12, draft_data=draft)
    assert (answer.slots, answer.status, answer.reason) == (source.slots, source.status, source.reason)
    if source.slots:
        assert (answer.ids_from, answer.layer_ids) == (source.ids_from, source.layer_ids)


SLOW = BEFORE.replace("    if i in", "    for _ in range(2500):\n        pass\n    if i in", 1)


def test_a_class_that_takes_too_long_for_some_depth_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is answered for 9 layers and given up for 61: no rule is claimed, and few questions are asked for that."""
    assert "range(2500)" in SLOW
    root = write_engine(tmp_path, Model(loop=SLOW))
    asked: list[int] = []
    derive_one = Deriver.derive

    def counted(deriver: Deriver, request: ServingRequest) -> Derivation:
        asked.append(request.num_layers)
        return derive_one(deriver, request)

    monkeypatch.setattr(Deriver, "derive", counted)
    found = learn_class("sglang", str(root / "sglang"), NAME)
    mapping, _ = found.mappings["eagle3"]
    assert (mapping.status, mapping.rule) == ("unknown", None)
    assert mapping.reason == "the interpretation stopped: more than 100,000 steps, for 61 layers"
    assert sorted(set(asked)) == [9, 61]
    assert len(asked) < 8


def test_learning_again_gives_the_same_file(learned: dict[str, tuple[Path, Profile]]) -> None:
    """The file depends on the source alone."""
    root, profile = learned["first"]
    assert profile_text(learn_from(f"sglang@{root}", root, processes=1)) == profile_text(profile)


def wheel(root: Path, engine: Path) -> Path:
    path = root / "sglang-9.9.9-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file in engine.rglob("*.py"):
            archive.write(file, file.relative_to(engine).as_posix())
        archive.writestr("sglang-9.9.9.dist-info/METADATA", "Metadata-Version: 2.4\nName: sglang\nVersion: 9.9.9\n")
        archive.writestr("sglang/kernel.so", b"\x00")
    return path


def test_from_a_wheel(learned: dict[str, tuple[Path, Profile]], tmp_path: Path) -> None:
    """A wheel gives what its tree gives, with the release of its metadata."""
    root, profile = learned["first"]
    wheel(tmp_path, root)
    found = learn_from("sglang-9.9.9-py3-none-any.whl", tmp_path, processes=1)
    assert found.version == "9.9.9"
    assert (found.mappings, found.classes, found.sources) == (profile.mappings, profile.classes, profile.sources)
    assert ProfileHandle(found).label == "sglang 9.9.9"


def test_only_sources_are_unpacked(learned: dict[str, tuple[Path, Profile]], tmp_path: Path) -> None:
    """Nothing compiled, and nothing outside of the directory."""
    path = wheel(tmp_path, learned["first"][0])
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../outside.py", "")
        archive.writestr("/absolute.py", "")
    with unpacked(path, path.name) as directory:
        suffixes = {file.suffix for file in directory.rglob("*") if file.is_file()}
        assert suffixes == {".py", ""}
        assert not (directory.parent / "outside.py").exists()
    assert not directory.exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive"])
def test_what_is_no_wheel(tmp_path: Path, content: bytes) -> None:
    """A sentence, no traceback."""
    (tmp_path / "sglang-1.whl").write_bytes(content)
    with pytest.raises(UnreadableInput, match=r"sglang-1.whl cannot be read as a wheel"):
        learn_from("sglang-1.whl", tmp_path)


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    """A member of more than 16 MiB is no source file."""
    with zipfile.ZipFile(tmp_path / "sglang-1.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("sglang/a.py", b"#" * (16 * 1024 * 1024 + 1))
    with pytest.raises(UnreadableInput, match="larger than a source file"):
        learn_from("sglang-1.whl", tmp_path)


@pytest.mark.parametrize(("spec", "error"), [("nothing.whl", UnreadableInput), ("other@.", WrongUsage)])
def test_what_cannot_be_learned(tmp_path: Path, spec: str, error: type[Exception]) -> None:
    """What is not there, or no engine, is refused."""
    with pytest.raises(error):
        learn_from(spec, tmp_path)


def test_the_file_is_json_that_holds_no_code(learned: dict[str, tuple[Path, Profile]]) -> None:
    """Rules and lines, no statement of the source."""
    text = profile_text(learned["plain"][1])
    assert json.loads(text)["engine"] == "sglang"
    assert "append(" not in text
    assert "for " not in text.replace("for all", "")
