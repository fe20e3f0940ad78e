"""The command that starts an engine: its options whatever they are called, with their places."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eaglelint.artifacts.launch import Launch, parse_launch, read_launch
from eaglelint.exceptions import UnreadableInput

SGLANG = """#!/bin/bash
# vllm serve stands in a comment
cd /srv && CUDA_VISIBLE_DEVICES=0 python3 -m sglang.launch_server \\
  --model-path "meta/llama 8b" --speculative-algorithm EAGLE3 \\
  --speculative-draft-model-path "$DRAFT" --dtype=float16 \\
  --pp-size 2 2>&1 | tee --context-length 5
"""
VLLM = """vllm serve Qwen/Qwen3-8B --max_model_len 32k \\
    --speculative-config '{"method": "eagle3", "model": "draft", "num_speculative_tokens": 3}' -pp 4
"""


def launch(text: str) -> Launch:
    found = parse_launch("serve.sh", text)
    assert found is not None
    return found


def test_sglang() -> None:
    """Lines that go on, quotes, variables, what is before the command and what it is piped to."""
    found = launch(SGLANG)
    assert (found.engine, str(found.span)) == ("sglang", "serve.sh:3:46")
    assert {name: option.value for name, option in found.options.items()} == {
        "model": "meta/llama 8b",
        "algorithm": "EAGLE3",
        "draft": None,
        "dtype": "float16",
        "pipeline_stages": "2",
    }
    assert str(found.options["algorithm"].span) == "serve.sh:4:56"


def test_vllm() -> None:
    """The model that stands by itself, and the options inside of --speculative-config."""
    found = launch(VLLM)
    assert found.engine == "vllm"
    assert {name: option.value for name, option in found.options.items()} == {
        "model": "Qwen/Qwen3-8B",
        "context_length": "32k",
        "algorithm": "eagle3",
        "draft": "draft",
        "pipeline_stages": "4",
    }
    assert str(found.options["draft"].span) == "serve.sh:2:26"


@pytest.mark.parametrize(
    ("value", "number"),
    [("8", 8), ("32k", 32_000), ("32K", 32_768), ("1m", 1_000_000), ("auto", None), ("9" * 99, None)],
)
def test_numbers(value: str, number: int | None) -> None:
    assert launch(f"vllm serve m --max-model-len {value}").options["context_length"].number == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pip install vllm\nvllm bench serve",
        "# python -m sglang.launch_server",
        "echo 'python -m vllm'",
        "sglang generate --model-path m",
    ],
)
def test_no_command(text: str) -> None:
    assert parse_launch("serve.sh", text) is None


def test_options_without_values() -> None:
    found = launch("python -m sglang.launch_server --dtype --speculative-algorithm")
    assert found.options == {}


def test_a_file_without_a_command_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text("ls")
    with pytest.raises(UnreadableInput, match="holds no command that starts an engine"):
        read_launch(tmp_path / "a.sh", "a.sh")
    with pytest.raises(UnreadableInput, match=r"b\.sh cannot be read"):
        read_launch(tmp_path / "b.sh", "b.sh")


pieces = st.sampled_from(
    [
        "vllm",
        "serve",
        "sglang.launch_server",
        " ",
        "\n",
        "\\\n",
        "\\",
        "'",
        '"',
        "--dtype",
        "=",
        "$X",
        "#",
        ";",
        "&&",
        "{",
        "1k",
    ]
)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.lists(pieces | st.text(max_size=4), max_size=30).map("".join))
def test_any_text(text: str) -> None:
    """A place that is told lies in the text."""
    found = parse_launch("serve.sh", text)
    lines = text.split("\n")
    for option in () if found is None else found.options.values():
        assert 1 <= option.span.start.line <= len(lines)
        assert option.span.start.column <= len(lines[option.span.start.line - 1]) + 1
