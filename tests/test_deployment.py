"""The vocabulary of ``--assume``: names, values, defaults, and sentences for what is not known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eaglelint.deployment import CHOICES, DEFAULT, parse_assumptions
from eaglelint.exceptions import WrongUsage


def test_nothing_said_is_the_default() -> None:
    """One pipeline stage on one NVIDIA GPU, no overlap, all tokens kept."""
    values = {choice.name: DEFAULT.value(choice.name) for choice in CHOICES}
    assert values == {
        "pp": "1",
        "tp": "1",
        "dp-attention": "off",
        "tbo": "off",
        "images": "off",
        "platform": "cuda",
        "capture-mode": "full",
        "runner": "",
    }
    assert parse_assumptions(["pp=1", "tbo=off", "platform=cuda"]) == DEFAULT


def test_what_is_given_is_read() -> None:
    """Numbers, switches with and without a value, words in any case, environment variables; the last one holds."""
    found = parse_assumptions(["pp=4", "pp=2", "tbo", "platform=ROCm", "env:A=x=1", "env:B=", "runner=v1"])
    assert (found.number("pp"), found.on("tbo"), found.value("platform"), found.value("runner")) == (
        2,
        True,
        "rocm",
        "v1",
    )
    assert found.environment == {"A": "x=1", "B": ""}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("zz=1", "there is no assumption zz. Known are pp=N, tp=N, dp-attention=off|on"),
        ("", "there is no assumption"),
        ("pp", "pipeline stages: write pp=N with a number from 1 to 1024"),
        ("pp=0", "pipeline stages: write pp=N"),
        ("pp=two", "pipeline stages: write pp=N"),
        ("tbo=maybe", "two batches that overlap: write tbo=off|on"),
        ("platform=abacus", "the kind of device: write platform=cuda|rocm|cpu"),
        ("env:A", "write env:NAME=VALUE"),
        ("env:A-B=1", "write env:NAME=VALUE"),
    ],
)
def test_what_is_not_known_is_said(text: str, said: str) -> None:
    """A sentence with what was written and what is known."""
    with pytest.raises(WrongUsage) as caught:
        parse_assumptions([text])
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"--assume {text}")


@pytest.mark.parametrize("command", ["scan", "wiring"])
def test_settings_and_flags_are_both_heard(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that nobody knows in the settings is told as one on the command line is."""
    from eaglelint.cli.app import run

    root = Path(__file__).parents[1] / "examples/kimi-k2.5"
    text = (root / "eaglelint.toml").read_text("utf-8")
    for name in ("draft", "target", "training", "serving"):
        (tmp_path / name).symlink_to(root / name)
    (tmp_path / "eaglelint.toml").write_text('assume = ["pq=2"]\n' + text, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["eaglelint", command])
    with pytest.raises(SystemExit) as stop:
        run()
    assert stop.value.code == 2
    assert "there is no assumption pq" in capsys.readouterr().err


def test_the_command_line_tells_the_names(run_show: Callable[..., Any]) -> None:
    """``engines show --assume`` refuses what it does not know."""
    code, err = run_show("--assume", "overlap")
    assert (code, "there is no assumption overlap" in err) == (2, True)


@pytest.fixture
def run_show(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[Any, str]]:
    def call(*words: str) -> tuple[Any, str]:
        from eaglelint.cli.app import run

        root = Path(__file__).parents[1]
        monkeypatch.chdir(root)
        engine = "sglang@examples/kimi-k2.5/serving/sglang"
        monkeypatch.setattr("sys.argv", ["eaglelint", "engines", "show", engine, "--num-layers", "61", *words])
        with pytest.raises(SystemExit) as stop:
            run()
        return stop.value.code, capsys.readouterr().err

    return call
