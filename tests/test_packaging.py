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


# What a check of a draft's config beside its target's, into a pipe, has no use for.
UNUSED_BY_CONFIGS = (
    "eaglelint.artifacts.dump",
    "eaglelint.artifacts.launch",
    "eaglelint.artifacts.torch_archive",
    "eaglelint.derive",
    "eaglelint.draft_class",
    "eaglelint.draft_modules",
    "eaglelint.exported",
    "eaglelint.practice",
    "eaglelint.report.json",
    "eaglelint.serving",
    "eaglelint.source.machine",
    "eaglelint.survey.facts",
    "eaglelint.trainers",
    "jsonschema",
    "libcst",
    "pickletools",
    "rich.console",
    "tomllib",
    "torch",
)


@pytest.mark.parametrize("unused", UNUSED_BY_CONFIGS)
def test_a_draft_is_checked_without(unused: str, draft_run: tuple[str, int, set[str]]) -> None:
    """Files alone need nothing that reads source, dumps or commands, and a pipe needs no colours."""
    _, code, modules = draft_run
    assert code == 0
    assert "eaglelint.rules.shape.mismatched_fc" in modules
    assert unused not in modules


@pytest.fixture(scope="module")
def draft_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, int, set[str]]:
    directory = tmp_path_factory.mktemp("project")
    for part, source in (("draft", "drafts/AQ-MedAI__Kimi-K25-eagle3.json"), ("target", "targets/kimi-k2.5.json")):
        (directory / part).mkdir()
        (directory / part / "config.json").write_bytes((ROOT / "tests/published" / source).read_bytes())
    return run(["scan", str(directory)])


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
