"""The dump probe from the command line: files as trainers write them, targets on disk, findings, and broken dumps."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import shutil
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import torch
from jsonschema import Draft202012Validator
from typer.testing import CliRunner, Result

from eaglelint.artifacts.tensors import BIT_WIDTHS
from eaglelint.cli.app import app
from eaglelint.exceptions import UnreadableInput, WrongUsage
from eaglelint.probe.dump.layouts import recognise
from eaglelint.probe.dump.target import loaded, recompute
from eaglelint.probe.flow import ProbeOptions, probe_scan
from eaglelint.session import Inputs, open_session
from tests.checkpoints import header_bytes
from tests.page_projects import PROJECTS
from tests.probe.tiny import LAYERS, MODELS, dumped, states_of, tiny, tokens_of

each_model = pytest.mark.parametrize("model", MODELS)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny targets as checkpoints of transformers, one directory for each."""
    directory = tmp_path_factory.mktemp("targets")
    for model in MODELS:
        tiny(model).save_pretrained(directory / model)
    return directory


def probe(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["probe", *map(str, words)])


def sample(model: str, layout: str = "specforge", boundaries: tuple[int, ...] = (2, 4, 5)) -> dict[str, Any]:
    states = states_of(model)
    label = states.stream[LAYERS] if layout.startswith("speculators") else states.normed[LAYERS]
    return dumped(layout, [states.stream[k] for k in boundaries], label, tokens_of(model), normed=True)


def save_safetensors(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    names = {torch.bfloat16: "BF16", torch.int64: "I64"}
    header, data = {}, b""
    for name, tensor in tensors.items():
        dtype, size = names[tensor.dtype], tensor.numel() * BIT_WIDTHS[names[tensor.dtype]] // 8
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + size]}
        data += bytes(tensor.contiguous().view(torch.uint8).flatten().tolist())
    path.write_bytes(header_bytes(header) + data)


@each_model
def test_a_dump_is_named_slot_by_slot(
    model: str, checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the cosine, the next best and the label; exit 0, as nothing was said that it contradicts."""
    monkeypatch.chdir(tmp_path)
    torch.save(sample(model), tmp_path / "data_0.ckpt")
    result = probe("--dump", tmp_path, "--model", checkpoints / model)
    assert result.exit_code == 0, result.output
    first, *rows = result.stdout.splitlines()
    assert first == "passed[dump] data_0.ckpt: it holds h[2] ⊕ h[4] ⊕ h[5]"
    assert rows[0] == "   | SpecForge, EAGLE-3 layout: aux_hidden_state [1, 24, 192]"
    assert [row.split(" (cosine ")[0] for row in rows[1:5]] == [
        "   | slot 0 is h[2]",
        "   | slot 1 is h[4]",
        "   | slot 2 is h[5]",
        f"   | the label, hidden_state, is norm(h[{LAYERS}])",
    ]
    assert rows[5] == "   | states and ids belong together: the state at t is that of token t"


def test_each_kind_of_file_is_read(checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch.save as it is, packed, in its older format, and safetensors."""
    monkeypatch.chdir(tmp_path)
    torch.save(sample("llama"), "a.ckpt")
    torch.save(sample("llama"), "b.pt", _use_new_zipfile_serialization=False)
    Path("c.ckpt.gz").write_bytes(gzip.compress(Path("a.ckpt").read_bytes()))
    save_safetensors(sample("llama", "speculators"), Path("hs_0.safetensors"))
    for name in ("a.ckpt", "b.pt", "c.ckpt.gz", "hs_0.safetensors"):
        result = probe("--dump", name, "--model", checkpoints / "llama")
        assert f"passed[dump] {name}: it holds h[2] ⊕ h[4] ⊕ h[5]" in result.stdout, result.output


@each_model
def test_a_target_that_does_not_fit_is_read_from_disk(model: str, checkpoints: Path) -> None:
    """With no memory at all for it, every layer comes from disk as it is reached, and the states are the same."""
    with loaded(checkpoints / model, device=torch.device("cpu"), memory=0) as streamed:
        assert {parameter.device.type for parameter in streamed.parameters()} == {"meta"}
        seen: list[tuple[int, int]] = []
        states = recompute(streamed, tokens_of(model), lambda done, total: seen.append((done, total)))
    assert seen == [(layer, LAYERS) for layer in range(1, LAYERS + 1)]
    torch.testing.assert_close(states.stream, torch.stack(list(states_of(model).stream)))


def project(directory: Path, checkpoints: Path, *words: str) -> list[str]:
    """A draft whose ids an engine takes for layer outputs: it serves h[2], h[4], h[5]."""
    shutil.copytree(PROJECTS / "mini-sglang", directory / "serving")
    config = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "hidden_size": 64,
        "num_hidden_layers": 1,
        "vocab_size": 128,
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 3, 4]},
    }
    (directory / "draft").mkdir()
    (directory / "draft/config.json").write_text(json.dumps(config))
    target = str(checkpoints / "llama")
    return ["--draft", "draft", "--target", target, "--serving", "sglang@serving", "--dump", "data.pt", *words]


@pytest.mark.parametrize(
    ("boundaries", "verdict"), [((1, 3, 4), "confirmed"), ((2, 4, 5), "refuted"), ((3, 5, 6), "confirmed")]
)
def test_a_finding_is_held_against_the_dump(
    boundaries: tuple[int, ...], verdict: str, checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A draft is said to be trained on h[1], h[3], h[4]; the dump shows whether it was trained on what it is served."""
    monkeypatch.chdir(tmp_path)
    command = project(tmp_path, checkpoints, "--trained-by", "boundary", "--format", "json")
    torch.save(sample("llama", "modelopt", boundaries), "data.pt")
    result = probe(*command)
    document = json.loads(result.stdout)
    schema = json.loads((files("eaglelint.schemas") / "probe.schema.json").read_text("utf-8"))
    Draft202012Validator(schema).validate(document)
    (finding,) = [found for found in document["findings"] if found["code"] == "CAP002"]
    held = " ⊕ ".join(f"h[{k}]" for k in boundaries)
    assert finding["probe"]["verdict"] == verdict
    assert finding["probe"]["detail"].startswith(f"the dump holds {held}, sglang")
    assert finding["probe"]["detail"].endswith("serves h[2] ⊕ h[4] ⊕ h[5]")
    assert result.exit_code == 1
    dump = next(outcome for outcome in document["outcomes"] if outcome["probe"] == "dump")
    assert [slot["state"] for slot in dump["data"]["slots"]] == [f"h[{k}]" for k in boundaries]
    assert min(slot["margin"] for slot in dump["data"]["slots"]) > 0.05


def test_a_dump_alone_shows_a_draft_that_is_served_other_states(
    checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is known of the training but its dump: exit 1 where the engine serves other states, else 0."""
    monkeypatch.chdir(tmp_path)
    command = project(tmp_path, checkpoints)
    torch.save(sample("llama", "torchspec", (1, 3, 4)), "data.pt")
    result = probe(*command)
    assert result.exit_code == 1
    assert "failed[dump] data.pt: it holds h[1] ⊕ h[3] ⊕ h[4], and sglang" in result.stdout
    torch.save(sample("llama", "torchspec", (2, 4, 5)), "data.pt")
    assert probe(*command).exit_code == 0


@pytest.mark.parametrize(("boundaries", "verdict"), [((1, 3, 4), "confirmed"), ((2, 4, 5), "refuted")])
def test_scan_tries_the_dump_that_it_was_given(
    boundaries: tuple[int, ...], verdict: str, checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``scan --probe`` holds the dump against the target's checkpoint, where both are there."""
    monkeypatch.chdir(tmp_path)
    torch.save(sample("llama", "modelopt", boundaries), "data.pt")
    command = project(tmp_path, checkpoints, "--trained-by", "boundary", "--output-format", "json")
    result = CliRunner().invoke(app, ["scan", *command, "--probe", "--probe-budget", "3600"])
    (finding,) = [found for found in json.loads(result.stdout)["findings"] if found["code"] == "CAP002"]
    assert finding["probe"]["verdict"] == verdict
    assert finding["probe"]["detail"].startswith("the dump holds h[")


def test_scan_says_why_a_dump_was_not_tried(checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target of which only the config lies here; and a budget that ends while the target is recomputed."""
    monkeypatch.chdir(tmp_path)
    torch.save(sample("llama", "modelopt", (1, 3, 4)), "data.pt")
    command = project(tmp_path, checkpoints)
    session = open_session(
        Inputs(draft=Path("draft"), target=Path(command[3]), serving=["sglang@serving"], dump=Path("data.pt"))
    )
    times = iter([*[0.0] * 6, *[9.0] * 9])
    outcome = probe_scan(session.scan(), ProbeOptions(budget=5.0), clock=lambda: next(times)).outcomes[-1]
    assert (outcome.probe, outcome.summary) == ("dump", "not tried: the budget of 5 s was used up")
    (tmp_path / "target").mkdir()
    shutil.copy(checkpoints / "llama" / "config.json", tmp_path / "target")
    result = CliRunner().invoke(app, ["scan", *command[:3], "target", *command[4:], "--probe"])
    assert "data.pt: not tried: no checkpoint of the target lies here to hold it against" in result.stderr


class Trap:
    """Ends the test run where it is unpickled."""

    def __reduce__(self) -> Any:
        return exec, ("raise SystemExit('a pickle was loaded')",)


def packed(value: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


BROKEN: dict[str, tuple[str, bytes, str]] = {
    "code": ("a.pt", packed({"input_ids": Trap()}), "holds more than tensors and plain values; it is not unpickled"),
    "a bare pickle": ("a.pt", pickle.dumps({"input_ids": Trap()}), "it is not unpickled"),
    "cut short": ("a.pt", packed(sample("llama"))[:2000], "cannot be read as a file of torch.save"),
    "empty": ("a.pt", b"", "cannot be read as a file of torch.save"),
    "no torch file": ("a.pt", b"hello", "a.pt"),
    "packed rubbish": ("a.ckpt.gz", gzip.compress(b"hello"), "a.ckpt.gz"),
    "not packed at all": ("a.ckpt.gz", b"hello", "a.ckpt.gz cannot be read"),
    "a lying header": ("a.safetensors", header_bytes(b"{}")[:8] + b"x", "a.safetensors"),
    "a list": ("a.pt", packed([torch.ones(2)]), "holds a list where a sample is a dict"),
    "no ids": ("a.pt", packed({"hidden_states": torch.ones(4, 64)}), "holds no token ids"),
    "no states": ("a.pt", packed({"input_ids": torch.arange(4)}), "holds no captured states"),
    "another width": (
        "a.pt", packed({"input_ids": torch.arange(4), "aux_hidden_states": torch.ones(4, 100)}),
        "holds no whole number of states of 64 features",
    ),
    "ids that are none": (
        "a.pt", packed({"input_ids": torch.ones(4), "aux_hidden_states": torch.ones(4, 64)}), "holds no token ids",
    ),
    "states that are none": (
        "a.pt", packed({"input_ids": torch.arange(4), "aux_hidden_states": torch.arange(4)}), "holds no hidden states",
    ),
    "a foreign token": (
        "a.pt", packed({"input_ids": torch.tensor([1, 999]), "aux_hidden_states": torch.ones(2, 64)}),
        "The sample has token 999",
    ),
    "only a label": (
        "a.pt", packed({"token_ids": torch.arange(4), "hidden_states": torch.ones(4, 1, 64)}), "no captured one",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_dump_is_a_sentence(
    case: str, checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unreadable input, which the command line prints and exits with 2; no code that lies in a dump is run."""
    name, content, said = BROKEN[case]
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content)
    result = probe("--dump", name, "--model", checkpoints / "llama")
    assert isinstance(result.exception, UnreadableInput), (result.exception, result.output)
    assert said in str(result.exception)


ODD: dict[str, dict[str, Any]] = {
    "ids that are one number": {"token_ids": torch.tensor(3), "hidden_states": torch.ones(4, 2, 64)},
    "ids that are a truth": {"token_ids": True, "hidden_states": torch.ones(4, 2, 64)},
    "ids that are text": {"input_ids": "abc", "hidden_states": torch.ones(4, 2, 64)},
    "no tokens": {"input_ids": torch.arange(4), "aux_hidden_states": torch.ones(0, 128)},
    "no features": {"input_ids": torch.arange(4), "aux_hidden_states": torch.ones(4, 0)},
    "an empty list": {"input_ids": torch.arange(4), "hidden_states": []},
    "a list of numbers": {"input_ids": torch.arange(4), "hidden_states": [torch.tensor(1.0)]},
    "a list of nothings": {"input_ids": torch.arange(4), "hidden_states": [torch.ones(0, 64)] * 2},
    "a list of two shapes": {"input_ids": torch.arange(4), "hidden_states": [torch.ones(4, 64), torch.ones(3, 64)]},
    "five dimensions": {"input_ids": torch.arange(4), "aux_hidden_states": torch.ones(1, 1, 4, 2, 64)},
    "a label of another width": {
        "input_ids": torch.arange(4), "aux_hidden_states": torch.ones(4, 64), "hidden_states": torch.ones(4, 63),
    },
}  # fmt: skip


@pytest.mark.parametrize("case", ODD)
def test_an_odd_sample_is_a_sentence(case: str) -> None:
    """Whatever lies under the keys of a layout."""
    with pytest.raises(UnreadableInput, match=r"^a\.pt: "):
        recognise(ODD[case], "a.pt", width=64, most_tokens=8)


def test_what_is_odd_and_does_no_harm_is_a_note() -> None:
    """Several samples in one file, another number of ids than of states, a flag as a tensor, values that are not finite."""
    sample = {
        "input_ids": torch.arange(10)[None].repeat(2, 1),
        "aux_hidden_states": torch.full((2, 4, 128), float("nan")),
        "hidden_states": torch.ones(4, 64),
        "hidden_states_prenorm": torch.tensor(True),
    }
    dump = recognise(sample, "a.pt", width=64, most_tokens=8)
    assert (len(dump.ids), len(dump.slots), dump.label_normed) == (4, 2, False)
    assert dump.notes == (
        "aux_hidden_states [2, 4, 128] holds 2 samples: the first is compared",
        "aux_hidden_states holds values that are not finite",
        "input_ids has 10 tokens and aux_hidden_states has states of 4",
    )


def test_a_model_that_is_none_is_a_sentence(checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No directory, no weights, a type that transformers does not know, and no model named at all."""
    monkeypatch.chdir(tmp_path)
    torch.save(sample("llama"), "a.pt")
    (tmp_path / "unknown").mkdir()
    (tmp_path / "unknown/config.json").write_text('{"model_type": "kimi_k99", "hidden_size": 64}')
    (tmp_path / "bare").mkdir()
    shutil.copy(checkpoints / "llama/config.json", tmp_path / "bare/config.json")
    said = {"nowhere": "has no config.json", "unknown": "transformers does not know", "bare": "holds no weights"}
    for model, words in said.items():
        result = probe("--dump", "a.pt", "--model", model)
        assert isinstance(result.exception, UnreadableInput)
        assert words in str(result.exception)
    shutil.copytree(checkpoints / "llama", tmp_path / "cut")
    weights = tmp_path / "cut/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    result = probe("--dump", "a.pt", "--model", "cut")
    assert isinstance(result.exception, UnreadableInput)
    assert "cut cannot be loaded as a model of transformers" in str(result.exception)
    result = probe("--dump", "a.pt")
    assert isinstance(result.exception, WrongUsage)
    assert "name its checkpoint with --model" in str(result.exception)
    assert isinstance(probe("--dump", "nothing.pt", "--model", checkpoints / "llama").exception, UnreadableInput)
