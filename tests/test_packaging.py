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


@pytest.fixture(scope="module")
def version_run() -> tuple[str, int, set[str]]:
    """What `eaglelint --version` prints, its exit code and the modules it has loaded at the end."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    run = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(["--version"])],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    printed, _, last = run.stdout.rstrip().rpartition("\n")
    outcome = json.loads(last)
    return printed, outcome["code"], set(outcome["modules"])
