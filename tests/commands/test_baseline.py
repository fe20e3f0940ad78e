"""``baseline create`` and ``update``, and settings that silence: what is known is counted, not reported."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
CLEAN = "Found no problems; 1 in the baseline\n"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return Path(shutil.copytree(REPOSITORY / "examples/kimi-k2.5", tmp_path / "kimi"))


def settings(example: Path, text: str) -> None:
    path = example / "eaglelint.toml"
    path.write_text(text + path.read_text())


def test_a_baseline_hides_what_is_known(run: Callable[..., Any], example: Path) -> None:
    """Named by the option or the settings, and wherever the command is run."""
    made = run("baseline", "create", cwd=example)
    assert (made.code, made.stdout) == (0, "")
    assert made.stderr.startswith("eaglelint-baseline.json: 1 known\nUse it with --baseline eaglelint-baseline.json")
    (row,) = json.loads((example / "eaglelint-baseline.json").read_text())["findings"]
    assert (row["code"], row["path"]) == ("CAP002", "draft/config.json")
    outcome = run("scan", "--baseline", "eaglelint-baseline.json", cwd=example)
    assert (outcome.code, outcome.stdout) == (0, CLEAN)
    settings(example, 'baseline = "eaglelint-baseline.json"\n')
    assert run("scan", cwd=example).stdout == CLEAN
    assert run("scan", cwd=example / "draft").stdout == CLEAN


def test_a_baseline_only_shrinks(run: Callable[..., Any], example: Path) -> None:
    """``update`` takes out what is mended and lets nothing new in; ``create`` does not overwrite."""
    settings(example, 'baseline = "known.json"\n')
    assert run("baseline", "create", cwd=example).code == 0
    again = run("baseline", "create", cwd=example)
    assert (again.code, "known.json exists" in again.stderr) == (2, True)
    config = example / "draft/config.json"
    wrong = config.read_text()
    config.write_text(wrong.replace("[-1, 2, 30]", "[2, 30, 58]"))
    assert run("baseline", "update", cwd=example).stderr == "known.json: 0 known, 1 taken out\n"
    config.write_text(wrong)
    assert run("baseline", "update", cwd=example).stderr == "known.json: 0 known, 0 taken out\n"
    assert run("scan", cwd=example).code == 1


@pytest.mark.parametrize("text", ["[]", "{}", '{"schema_version": 1, "findings": [{}]}', "{"])
def test_what_is_no_baseline(run: Callable[..., Any], example: Path, text: str) -> None:
    """A sentence and exit 2: a lost baseline must not look like a clean project."""
    (example / "known.json").write_text(text)
    outcome = run("scan", "--baseline", "known.json", cwd=example)
    assert (outcome.code, outcome.stderr.startswith("eaglelint: known.json")) == (2, True)
    missing = run("scan", "--baseline", "missing.json", cwd=example)
    assert (missing.code, "missing.json does not exist" in missing.stderr) == (2, True)


def test_settings_that_silence(run: Callable[..., Any], example: Path) -> None:
    """A file's rules can be ignored and a rule's severity lowered; SARIF still names what is suppressed."""
    settings(example, 'severity = {CAP002 = "warning"}\n')
    assert run("scan", cwd=example).code == 0
    settings(example, 'per-file-ignores = {"draft/*.json" = ["boundary-mismatch"]}\n')
    outcome = run("scan", "--output-format", "sarif:o.sarif", "--output-format", "full", cwd=example)
    assert (outcome.code, outcome.stdout) == (0, "Found no problems; 1 suppressed\n")
    (result,) = json.loads((example / "o.sarif").read_text())["runs"][0]["results"]
    assert (result["level"], result["suppressions"]) == ("warning", [{"kind": "external"}])


def test_a_comment_in_a_directory_of_training_code_that_silences_nothing(
    run: Callable[..., Any], example: Path
) -> None:
    script = example / "training/dataset.py"
    script.write_text(script.read_text() + "\nleft = 1  # eaglelint: ignore[CAP001] of old\n")
    line = len(script.read_text().splitlines())
    assert f"training/dataset.py:{line}: ignore[CAP001] silences nothing any more." in run("scan", cwd=example).stderr


def test_statistics(run: Callable[..., Any], example: Path) -> None:
    """A line for each rule, apart from the document on standard output."""
    outcome = run("scan", "--statistics", "--output-format", "json", cwd=example)
    assert outcome.stderr == "    1  CAP002  boundary-mismatch\n"
    assert len(json.loads(outcome.stdout)["findings"]) == 1
