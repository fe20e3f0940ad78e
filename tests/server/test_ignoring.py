"""A rule ignored in one file by the settings: written where they are, in their form, and it works."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from eaglelint.overlay import overlaid
from eaglelint.project.ignoring import ignoring
from eaglelint.project.settings import load_settings
from eaglelint.session import Inputs, open_session

EXAMPLE = Path(__file__).parents[2] / "examples/kimi-k2.5"
LISTED = 'per-file-ignores = { "draft/config.json" = ["CAP004"], "b" = ["X"] }  # why\n'


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "kimi"))


def codes(root: Path) -> list[str]:
    return [finding.code for finding in open_session(Inputs(paths=[root], cache=False)).scan().findings]


def test_it_silences_the_finding(example: Path) -> None:
    """The file that is written makes the scan silent, and says what it said before."""
    assert codes(example) == ["CAP002"]
    change = ignoring("CAP002", example / "draft/config.json", example)
    assert change is not None and change.before is not None
    assert (change.path, change.after.startswith(change.before)) == (example / "eaglelint.toml", True)
    change.path.write_text(change.after, "utf-8")
    assert codes(example) == []
    assert ignoring("CAP002", example / "draft/config.json", example) is None  # it is there already


@pytest.mark.parametrize(
    ("name", "before", "added"),
    [
        ("eaglelint.toml", None, '[per-file-ignores]\n"draft/config.json" = ["CAP002"]\n'),
        (
            "pyproject.toml",
            "[project]\nname = 'x'\n",
            '[tool.eaglelint.per-file-ignores]\n"draft/config.json" = ["CAP002"]\n',
        ),
        (
            "pyproject.toml",
            "[tool.eaglelint]\ncache = true  # a\n\n[tool.ruff]\nx = 1\n",
            '"draft/config.json" = ["CAP002"]',
        ),
        ("eaglelint.toml", LISTED.replace('["X"]', '["CAP001"]'), '"draft/config.json" = ["CAP004", "CAP002"], "b"'),
        ("eaglelint.toml", "[per-file-ignores]\n'draft/*.json' = ['CAP004']\n", '"draft/config.json" = ["CAP002"]'),
    ],
)
def test_settings_keep_their_form(tmp_path: Path, name: str, before: str | None, added: str) -> None:
    """What stood there still stands there, comments included, and the new rule is read back."""
    if before is not None:
        (tmp_path / name).write_text(before, "utf-8")
    change = ignoring("CAP002", tmp_path / "draft/config.json", tmp_path)
    assert change is not None and change.path == tmp_path / name
    assert added in change.after
    assert [word for word in (before or "").replace('["CAP004"]', "").split() if word not in change.after] == []
    change.path.write_text(change.after, "utf-8")
    assert "CAP002" in load_settings(change.path).settings.per_file_ignores["draft/config.json"]


def test_a_file_beside_the_settings_is_meant_alone(example: Path) -> None:
    """``/config.json`` is no ``draft/config.json``."""
    (example / "draft/config.json").rename(example / "config.json")
    settings = example / "eaglelint.toml"
    settings.write_text(settings.read_text("utf-8").replace('draft = "draft"', 'draft = "config.json"'), "utf-8")
    change = ignoring("CAP002", example / "config.json", example)
    assert change is not None
    assert '"/config.json" = ["CAP002"]' in change.after
    assert codes(example) == ["CAP002"]
    settings.write_text(change.after, "utf-8")
    assert codes(example) == []
    settings.write_text(change.after.replace("/config.json", "/other/config.json"), "utf-8")
    assert codes(example) == ["CAP002"]


def test_settings_that_are_being_typed_count(example: Path) -> None:
    """The edit is one of the text in the editor, not of the file; half-typed settings are left alone."""
    settings = example / "eaglelint.toml"
    text = settings.read_text("utf-8")
    with overlaid({settings: f"# mine\n{text}".encode()}):
        change = ignoring("CAP002", example / "draft/config.json", example)
    assert change is not None and change.after.startswith("# mine\n")
    with overlaid({settings: f"{text}\n[pipe".encode()}):
        assert ignoring("CAP002", example / "draft/config.json", example) is None
