"""Settings are found by walking up, and what is wrong in them is said with file, line and advice."""

from __future__ import annotations

from pathlib import Path

import pytest

from eaglelint.exceptions import EaglelintError, UnreadableInput, WrongUsage
from eaglelint.project.settings import MAX_BYTES, ProjectSettings, Settings, find_settings, load_settings

PYPROJECT = """[project]
name = "drafts"

[tool.eaglelint]
select = ["CAP", "shape"]
fail-on = "warning"
min-confidence = "likely"
exclude = ["third_party/**"]
assume = ["can_run_tbo = false"]

[[tool.eaglelint.pipeline]]
name = "kimi"
draft = "draft/config.json"
target = "target"
training = ["training/dump.py"]
trained-by = "boundary"
serving = ["sglang==0.5.9", "vllm@../vllm"]
draft-kind = "eagle3"
"""


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def complaint(path: Path, text: str | bytes, kind: type[EaglelintError] = WrongUsage) -> str:
    with pytest.raises(kind) as caught:
        load_settings(write(path, text))
    return str(caught.value).replace(str(path.parent), "")


def test_every_key_is_read_in_kebab_case(tmp_path: Path) -> None:
    """The table and its pipelines become frozen values."""
    found = load_settings(write(tmp_path / "pyproject.toml", PYPROJECT))
    settings = found.settings
    assert tmp_path == found.root
    assert (
        settings.select, settings.ignore, settings.fail_on, settings.min_confidence,
    ) == (("CAP", "shape"), (), "warning", "likely")  # fmt: skip
    assert (settings.exclude, settings.assume) == (("third_party/**",), ("can_run_tbo = false",))
    (pipeline,) = settings.pipeline
    assert (pipeline.name, pipeline.draft, pipeline.target) == ("kimi", "draft/config.json", "target")
    assert (
        pipeline.training,
        pipeline.trained_by,
        pipeline.draft_kind,
    ) == (("training/dump.py",), "boundary", "eagle3")
    assert pipeline.serving == ("sglang==0.5.9", "vllm@../vllm")


def test_the_nearest_settings_above_count(tmp_path: Path) -> None:
    """A pyproject.toml that does not speak of eaglelint is walked past, however broken it is."""
    write(tmp_path / "pyproject.toml", PYPROJECT)
    write(tmp_path / "a" / "pyproject.toml", "[project\nname = broken")
    write(tmp_path / "a" / "b" / "pyproject.toml", '[project]\nname = "eaglelint-user"\n')
    assert tmp_path / "pyproject.toml" == find_settings(tmp_path / "a" / "b").path
    own = write(tmp_path / "a" / "b" / "eaglelint.toml", 'ignore = ["CAP001"]\n')
    found = find_settings(tmp_path / "a" / "b" / "c")
    assert (own, ("CAP001",)) == (found.path, found.settings.ignore)


def test_without_settings_the_defaults_count(tmp_path: Path) -> None:
    """Errors fail, everything is reported, nothing is left out."""
    defaults = Settings()
    assert (
        defaults.fail_on,
        defaults.min_confidence,
        defaults.select,
        defaults.pipeline,
    ) == ("error", "possible", (), ())
    assert ProjectSettings(defaults) == find_settings(tmp_path)
    path = write(tmp_path / "pyproject.toml", "[project]\n")
    assert ProjectSettings(defaults, path) == load_settings(path)


def test_an_unknown_key_is_named_with_its_line_and_the_likely_one(tmp_path: Path) -> None:
    """A typing mistake must not pass for a setting."""
    path = tmp_path / "pyproject.toml"
    assert (
        complaint(path, '[tool.eaglelint]\nselect = []\nfail_on = "error"\n')
        == "/pyproject.toml:3: unknown key fail_on. Did you mean fail-on?"
    )
    assert (
        complaint(
            path,
            '[[tool.eaglelint.pipeline]]\ndraft = "a"\n[[tool.eaglelint.pipeline]]\ndraft = "b"\ntrained_by = "x"\n',
        )
        == "/pyproject.toml:5: unknown key trained_by. Did you mean trained-by?"
    )
    assert complaint(path, "[tool.eaglelint]\n[tool.eaglelint.zzz]\na = 1\n").startswith(
        "/pyproject.toml:2: unknown key zzz. Known keys: select, ignore, fail-on,"
    )


def test_in_its_own_file_the_keys_stand_at_the_top(tmp_path: Path) -> None:
    """eaglelint.toml needs no table around the settings, and says so."""
    found = load_settings(write(tmp_path / "eaglelint.toml", 'fail-on = "note"\n[[pipeline]]\ndraft = "d"\n'))
    assert (found.settings.fail_on, found.settings.pipeline[0].draft) == ("note", "d")
    assert (
        complaint(tmp_path / "eaglelint.toml", '[tool.eaglelint]\nfail-on = "note"\n')
        == "/eaglelint.toml:1: in eaglelint.toml the settings stand at the top level. Leave out [tool.eaglelint]."
    )
    assert (
        complaint(tmp_path / "eaglelint.toml", "ignore = []\nselct = []\n")
        == "/eaglelint.toml:2: unknown key selct. Did you mean select?"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('fail-on = "never"', ":1: fail-on is 'never'. Expected 'error', 'warning' or 'note'."),
        ('select = "CAP"', ":1: select is 'CAP'. Expected a list."),
        ("select = [1]", ":1: select is 1. Expected a string."),
        ("pipeline = 3", ":1: pipeline is 3. Expected a list."),
        ("pipeline = [3]", ":1: pipeline is 3. Expected a table."),
        ('[[pipeline]]\nname = "x"', ":1: a pipeline without draft. Add it."),
        ('[[pipeline]]\ndraft = "x"\ndraft-kind = "eagle4"', ":3: pipeline.draft-kind is 'eagle4'. Expected 'eagle3',"),
    ],
)
def test_a_value_of_the_wrong_kind_is_shown_beside_what_was_expected(tmp_path: Path, text: str, sentence: str) -> None:
    """What was seen, where, and what belongs there."""
    assert complaint(tmp_path / "eaglelint.toml", text).startswith(f"/eaglelint.toml{sentence}")


def test_two_mistakes_are_two_sentences(tmp_path: Path) -> None:
    """Nobody should have to run twice to learn of the second."""
    assert len(complaint(tmp_path / "eaglelint.toml", 'a = 1\nfail-on = "x"\n').splitlines()) == 2


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    """Missing, not TOML, not UTF-8, nested without end, huge."""
    path = tmp_path / "eaglelint.toml"
    with pytest.raises(UnreadableInput, match=r"eaglelint\.toml does not exist"):
        load_settings(path)
    assert complaint(path, "select = [\nfail-on", UnreadableInput).startswith("/eaglelint.toml:2:1: not valid TOML:")
    assert complaint(path, b"a = '\xff'", UnreadableInput) == "/eaglelint.toml is not UTF-8. Save it as UTF-8."
    assert "nested too deeply" in complaint(path, "a = " + "[" * 100_000, UnreadableInput)
    assert "larger than 4 MiB" in complaint(path, b" " * (MAX_BYTES + 1), UnreadableInput)
    with pytest.raises(UnreadableInput, match="cannot be read"):
        load_settings(tmp_path)


def test_a_table_that_is_none_is_refused(tmp_path: Path) -> None:
    """``tool.eaglelint = 3`` is a mistake, ``tool = 3`` somebody else's."""
    assert complaint(tmp_path / "pyproject.toml", "[tool]\neaglelint = 3\n").endswith("is 3. Expected a table.")
    assert Settings() == load_settings(write(tmp_path / "pyproject.toml", "tool = 3\n# eaglelint\n")).settings
