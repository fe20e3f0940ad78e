"""What goes wrong ends in one sentence on standard error and an exit code; nobody is shown a traceback."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import eaglelint.session

REPOSITORY = Path(__file__).parents[2]
DRAFT = "examples/kimi-k2.5/draft"
TARGET = "examples/kimi-k2.5/target"
ENGINE = "sglang@examples/kimi-k2.5/serving/sglang"
PIPELINE = ("--draft", DRAFT, "--target", TARGET)


def sentence(stderr: str) -> str:
    """The one line that standard error holds, without who says it."""
    assert "Traceback" not in stderr
    (line,) = stderr.splitlines()
    who, _, text = line.partition(": ")
    assert who in ("eaglelint", "error")
    return text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(
            ("scan", "--draft", DRAFT, "--target", "nowhere", "--serving", ENGINE),
            ("nowhere does not exist",),
            id="missing target",
        ),
        pytest.param(
            ("scan", "--draft", DRAFT, "--serving", ENGINE),
            (f"{DRAFT}/config.json: no target config is known", "Pass --target PATH", "--num-layers N"),
            id="no target for an engine",
        ),
        pytest.param(
            ("scan", *PIPELINE, "--serving", "sglang@examples/kimi-k2.5/training"),
            ("examples/kimi-k2.5/training holds no sglang package", "Pass the directory that holds sglang/"),
            id="no engine at the path",
        ),
        pytest.param(
            ("scan", *PIPELINE, "--serving", "sglang@nowhere"),
            ("there is no nowhere", "Pass the directory"),
            id="no such path of an engine",
        ),
        pytest.param(
            ("scan", *PIPELINE, "--serving", "other"),
            (
                "--serving other: no engine of that name",
                "Known are llama.cpp, lmdeploy, mlx-vlm, sglang, tensorrt-llm, transformers, vllm",
            ),
            id="unknown engine",
        ),
        pytest.param(
            ("scan", *PIPELINE, "--serving", "sglang==0.5.9999"),
            ("--serving sglang==0.5.9999", "no profile of sglang 0.5.9999", "engines learn"),
            id="release without a profile",
        ),
        pytest.param(
            ("scan", "--draft", DRAFT, "--num-layers", "61", "--target-class", "Other", "--serving", ENGINE),
            ("sglang 0.5.9+kimi at examples/kimi-k2.5/serving/sglang has no class Other", "--target-class"),
            id="class that the engine lacks",
        ),
        pytest.param(
            ("engines", "show", ENGINE, "--num-layers", "61", "--target-class", "Other"),
            ("sglang 0.5.9+kimi has no class Other", "without --target-class"),
            id="class that the shown engine lacks",
        ),
        pytest.param(
            ("scan", "--draft", DRAFT, "--num-layers", "61", "--serving", ENGINE),
            ("names no architecture", "--target-class CLASS"),
            id="layers without a class",
        ),
        pytest.param(("scan", DRAFT, "--select", "XYZ"), ("'XYZ' is no rule's code or name",), id="unknown --select"),
        pytest.param(
            ("scan", DRAFT, "--ignore", "boundary-mismatsch"),
            ("'boundary-mismatsch' is no rule's", "Did you mean 'boundary-mismatch'?"),
            id="unknown --ignore",
        ),
        pytest.param(("scan", "nowhere"), ("nowhere does not exist. Check the path.",), id="no such path"),
        pytest.param(("wiring", "nowhere"), ("nowhere does not exist. Check the path.",), id="no such path of wiring"),
        pytest.param(
            ("engines", "show", ENGINE, "--num-layers", "61", "--layer-ids", "2;30"),
            ("--layer-ids 2;30", "such as 2,30,58, or default"),
            id="bad --layer-ids",
        ),
        pytest.param(
            ("engines", "show", ENGINE, "--num-layers", "61", "--draft-kind", "other"),
            ("--draft-kind other", "known are eagle3"),
            id="bad --draft-kind",
        ),
        pytest.param(
            ("scan", *PIPELINE, "--serving", ENGINE, "--draft-kind", "other"),
            ("--draft-kind other", "eagle3"),
            id="bad --draft-kind of scan",
        ),
        pytest.param(
            ("scan", *PIPELINE, "--serving", ENGINE, "--training", "nowhere"),
            ("nowhere does not exist",),
            id="missing training",
        ),
        pytest.param(
            ("scan", *PIPELINE, "--trained-by", "other"),
            ("--trained-by other", "layer-output", "boundary", "--training PATH"),
            id="unknown --trained-by",
        ),
        pytest.param(("explain", "CAP999"), ("There is no rule 'CAP999'",), id="unknown rule"),
    ],
)
def test_wrong_usage(run: Callable[..., Any], words: tuple[str, ...], said: tuple[str, ...]) -> None:
    """Exit code 2, nothing on standard output, and one line that says what is wrong and what to do."""
    outcome = run(*words)
    assert (outcome.code, outcome.stdout) == (2, "")
    text = sentence(outcome.stderr)
    assert [part for part in said if part not in text] == []


@pytest.mark.parametrize("command", ["scan", "wiring"])
def test_a_config_that_is_not_json(run: Callable[..., Any], tmp_path: Path, command: str) -> None:
    """The sentence begins with the file, the line and the column of the mistake."""
    (tmp_path / "config.json").write_text('{\n  "architectures": ["LlamaForCausalLMEagle3"],\n  "ids": [1, 2}\n}\n')
    outcome = run(command, "--draft", "config.json", "--num-layers", "61", cwd=tmp_path)
    assert outcome.code == 2
    assert sentence(outcome.stderr).startswith("config.json:3:15: not valid JSON: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("scan", "nowhere"), "nowhere does not exist"),
        (("scan", *PIPELINE, "--serving", "other"), "no engine of that name is known"),
        (("engines", "show", ENGINE, "--num-layers", "61", "--layer-ids", "x"), "--layer-ids x"),
    ],
)
def test_from_a_shell(words: tuple[str, ...], said: str) -> None:
    """``python -m eaglelint`` ends in the same way: exit code 2 and one sentence on standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "eaglelint", *words],
        cwd=REPOSITORY,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert said in sentence(done.stderr)


@pytest.mark.parametrize(
    "words",
    [
        ("scan", "--output-format", "other"),
        ("scan", "--fail-on", "other"),
        ("scan", "--other"),
        ("other",),
        ("engines", "show", ENGINE),
        ("engines", "show", ENGINE, "--num-layers", "0"),
    ],
)
def test_words_that_no_command_takes(run: Callable[..., Any], words: tuple[str, ...]) -> None:
    """An unknown flag, value or command, and a missing flag, are exit code 2 with how to get help."""
    outcome = run(*words)
    assert (outcome.code, outcome.stdout) == (2, "")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", outcome.stderr)  # typer colours its errors where CI asks for it
    assert plain.strip().startswith("Usage: ")
    assert "for help" in plain
    assert "Traceback" not in outcome.stderr


def test_a_fault_of_our_own(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """What should not happen is exit code 3, says what it was and asks for a report; no traceback unless wanted."""

    def broken(*_: object) -> None:
        raise ValueError("seven is not a tensor")

    monkeypatch.setattr(eaglelint.session, "scan_pipelines", broken)
    monkeypatch.delenv("EAGLELINT_TRACEBACK", raising=False)
    outcome = run("scan", "examples/kimi-k2.5")
    assert (outcome.code, outcome.stdout) == (3, "")
    first, second = outcome.stderr.splitlines()
    assert first == "eaglelint: internal fault, ValueError: seven is not a tensor"
    assert "bug in eaglelint" in second
    assert "EAGLELINT_TRACEBACK=1" in second
    monkeypatch.setenv("EAGLELINT_TRACEBACK", "1")
    with pytest.raises(ValueError, match="seven is not a tensor"):
        run("scan", "examples/kimi-k2.5")


@pytest.mark.parametrize("broken_first", [True, False])
def test_one_pipeline_of_two_is_unreadable(run: Callable[..., Any], tmp_path: Path, broken_first: bool) -> None:
    """The other one is still checked and its finding is reported; the exit code is 2."""
    shutil.copytree(REPOSITORY / "examples/kimi-k2.5", tmp_path, dirs_exist_ok=True)
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn/config.json").write_text('{"architectures": [\n')
    good = (tmp_path / "eaglelint.toml").read_text("utf-8")
    bad = '[[pipeline]]\nname = "torn"\ndraft = "torn"\ntarget = "target"\nserving = ["sglang@serving/sglang"]\n'
    (tmp_path / "eaglelint.toml").write_text("\n".join([bad, good] if broken_first else [good, bad]), "utf-8")
    outcome = run("scan", "--output-format", "json", cwd=tmp_path)
    assert outcome.code == 2
    assert [finding["code"] for finding in json.loads(outcome.stdout)["findings"]] == ["CAP002"]
    assert sentence(outcome.stderr).startswith("torn/config.json:")


@pytest.mark.parametrize("architecture", ["LlamaForCausalLMEagle", "DeepseekV3ForCausalLMNextN", "LlamaForCausalLM"])
def test_a_draft_that_captures_nothing(run: Callable[..., Any], tmp_path: Path, architecture: str) -> None:
    """A draft of EAGLE, of MTP or of no known kind is no fault of our own, whatever is said of it."""
    (tmp_path / "config.json").write_text(json.dumps({"architectures": [architecture]}))
    outcome = run("scan", "--draft", tmp_path, "--target", TARGET, "--serving", ENGINE)
    assert outcome.code in (0, 1, 2)
    assert "internal fault" not in outcome.stderr
