"""What a user waits for at every start: the command must not import what it does not need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import eaglelint

ROOT = Path(__file__).parents[1]
HEAVY = ("libcst", "pydantic", "torch", "transformers", "jsonschema", "tree_sitter")

RUN = """
import json, sys
sys.argv = ["eaglelint", *json.loads(sys.argv[1])]
from eaglelint.__main__ import main
try:
    code = main()
except SystemExit as stop:
    code = stop.code
print(json.dumps({"code": code or 0, "modules": sorted(sys.modules)}))
"""


@pytest.mark.parametrize("heavy", HEAVY)
def test_the_version_is_printed_without(heavy: str, version_run: tuple[str, int, set[str]]) -> None:
    """`--version` imports none of the libraries that reading or probing needs."""
    _, _, modules = version_run
    assert heavy not in modules


def test_the_version_is_printed(version_run: tuple[str, int, set[str]]) -> None:
    """The command and the package agree."""
    printed, code, _ = version_run
    assert code == 0
    assert eaglelint.__version__ in printed


def test_the_package_is_typed() -> None:
    """The marker that tells type checkers to trust the annotations is part of the package."""
    assert (ROOT / "eaglelint/py.typed").is_file()


def test_a_draft_is_checked_without_the_interpreter(tmp_path: Path) -> None:
    """Files alone need nothing that reads source, and no library for schemas."""
    config = {"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 64, "draft_vocab_size": 32}
    (tmp_path / "config.json").write_text(json.dumps(config))
    _, code, modules = run(["scan", str(tmp_path)])
    assert code == 0
    assert "eaglelint.rules.shape.mismatched_fc" in modules
    assert {"libcst", "jsonschema", "torch", "eaglelint.derive", "eaglelint.serving", "pickletools"} & modules == set()


@pytest.fixture(scope="module")
def version_run() -> tuple[str, int, set[str]]:
    return run(["--version"])


def run(words: list[str]) -> tuple[str, int, set[str]]:
    """What a command prints, its exit code and the modules it has loaded at the end."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    process = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(words)],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    printed, _, last = process.stdout.rstrip().rpartition("\n")
    outcome = json.loads(last)
    return printed, outcome["code"], set(outcome["modules"])
