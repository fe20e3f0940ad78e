"""``init``, ``config`` and what editors and hooks pass: settings made from what lies about, text from standard input."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from eaglelint.project.settings import Settings, load_settings, settings_schema

REPOSITORY = Path(__file__).parents[2]
REFRESH = (
    'python -c "import json; from eaglelint.project.settings import settings_schema as s; '
    'print(json.dumps(s(), indent=2, ensure_ascii=False))" > schemas/settings.schema.json'
)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return Path(shutil.copytree(REPOSITORY / "examples/kimi-k2.5", tmp_path / "kimi"))


@pytest.mark.parametrize("project", [None, '[project]\nname = "x"', "[tool.ruff]\n"])
def test_init_finds_what_lies_about(run: Callable[..., Any], example: Path, project: str | None) -> None:
    """Into a file of its own, or behind what a pyproject.toml holds; a scan with it finds what the example shows."""
    (example / "eaglelint.toml").unlink()
    name = "eaglelint.toml" if project is None else "pyproject.toml"
    if project is not None:
        (example / name).write_text(project)
    made = run("init", cwd=example)
    assert (made.code, made.stdout) == (0, "")
    assert made.stderr.startswith(f"{name}: 1 pipeline\n")
    assert (example / name).read_text().startswith(project or "# select")
    (pipeline,) = load_settings(example / name).settings.pipeline
    assert (pipeline.draft, pipeline.target, pipeline.serving) == (
        "draft/config.json",
        "target/config.json",
        ("sglang@serving/sglang",),
    )
    assert "CAP002" in run("scan", "--output-format", "concise", cwd=example).stdout
    again = run("init", cwd=example)
    assert (again.code, "Edit it" in again.stderr) == (2, True)


def test_init_where_there_is_nothing(run: Callable[..., Any], tmp_path: Path) -> None:
    """All is a comment, and valid; each setting is there with its default."""
    assert run("init", cwd=tmp_path).code == 0
    path = tmp_path / "eaglelint.toml"
    assert load_settings(path).settings == Settings()
    uncommented = [line[2:] for line in path.read_text().splitlines() if line.startswith("# ") and " = " in line]
    path.write_text("\n".join(line for line in uncommented if not line.startswith(("baseline", "draft", "target"))))
    keys = {line.split(" = ")[0] for line in uncommented}
    assert keys >= {field.alias for field in Settings.model_fields.values()} - {"pipeline"}


def test_help_names_the_table(run: Callable[..., Any]) -> None:
    """What stands in brackets is printed, and is no markup."""
    assert "Write [tool.eaglelint] from" in run("init", "--help").stdout
    assert "h[i+1]" in run("scan", "--help").stdout


def test_config_show(run: Callable[..., Any], example: Path) -> None:
    """What is shown is TOML that means the same."""
    shown = run("config", "show", cwd=example)
    assert (shown.code, shown.stdout.splitlines()[0]) == (0, "# eaglelint.toml")
    before = load_settings(example / "eaglelint.toml").settings
    (example / "eaglelint.toml").write_text(shown.stdout)
    assert load_settings(example / "eaglelint.toml").settings == before
    assert run("config", "show", cwd=example.parent).stdout.startswith("# no settings file: the defaults\n")


def test_the_settings_schema_is_fresh(run: Callable[..., Any]) -> None:
    """The published schema is that of the code, is a schema, and takes the settings of the example."""
    published = json.loads((REPOSITORY / "schemas/settings.schema.json").read_text("utf-8"))
    assert published == settings_schema(), f"run: {REFRESH}"
    jsonschema.Draft202012Validator.check_schema(published)
    validator = jsonschema.Draft202012Validator(published)
    validator.validate({"fail-on": "note", "pipeline": [{"draft": "d", "serving": ["sglang"]}]})
    assert not validator.is_valid({"fail_on": "note"})
    assert json.loads(run("config", "schema").stdout) == published


def standard_input(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))


def test_text_from_standard_input(run: Callable[..., Any], example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor's unsaved text is checked in place of the file, with the file's pipeline; the file stays as it is."""
    config = example / "draft/config.json"
    saved = config.read_bytes()
    standard_input(monkeypatch, saved.replace(b"[-1, 2, 30]", b"[2, 30, 58]"))
    assert run("scan", "--stdin-filename", "draft/config.json", cwd=example).stdout == "Found no problems\n"
    standard_input(monkeypatch, b"\n" + saved.replace(b"[-1, 2, 30]", b"[2, 30, 59]"))
    outcome = run("scan", "--stdin-filename", "draft/config.json", cwd=example)
    assert "slot 2 was trained on h[59] and is served h[60]" in outcome.stdout
    assert '"eagle_aux_hidden_state_layer_ids": [2, 30, 59]' in outcome.stdout  # the excerpt is of that text too
    standard_input(monkeypatch, saved.replace(b"30]", b"31]"))
    assert "+    " in run("scan", "--diff", "--stdin-filename", "draft/config.json", cwd=example).stdout
    refused = run("scan", "--fix", "--stdin-filename", "draft/config.json", cwd=example)
    assert (refused.code, config.read_bytes()) == (2, saved)


def test_python_from_standard_input(run: Callable[..., Any], example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training script too: with other layers dumped, the config is found wrong in another way."""
    script = example / "training/dump_hidden_states.py"
    standard_input(monkeypatch, script.read_bytes().replace(b"3, 31, 59", b"2, 31, 59"))
    outcome = run("scan", "--stdin-filename", "training/dump_hidden_states.py", cwd=example)
    assert "slot 0 was trained on h[2]" in outcome.stdout


def test_excluded_files_that_are_named(run: Callable[..., Any], example: Path) -> None:
    """A hook that names every changed file can still honour the excludes."""
    (example / "eaglelint.toml").write_text('exclude = ["draft"]\n')
    words = ("scan", "draft/config.json", "target", "serving", "training", "--output-format", "concise")
    assert "CAP002" in run(*words, cwd=example).stdout
    assert "CAP002" not in run(*words, "--force-exclude", cwd=example).stdout
