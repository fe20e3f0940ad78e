"""Results are kept for as long as all that they were computed from is unchanged, and are then the very same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from eaglelint.cache import store as store_module
from eaglelint.cache.codec import decode, encode
from eaglelint.cache.units import caching, remember
from eaglelint.cli.app import app
from eaglelint.finding import Position, Span
from eaglelint.source.snapshot import Snapshot
from eaglelint.survey import work
from eaglelint.wiring import Condition, Evidence, Slot, Wiring

REPOSITORY = Path(__file__).parents[2]
MINI = REPOSITORY / "tests/rules/projects/mini-sglang/sglang"
HOUR = 3_600_000_000_000


@pytest.fixture(autouse=True)
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour from now, when the files of a test are old enough for their stamps to be trusted."""
    now = store_module._now
    monkeypatch.setattr(store_module, "_now", lambda: now() + HOUR)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return make_project(tmp_path, monkeypatch)


def make_project(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small engine with a second target, a draft for it, and a script that dumped its states."""
    models = directory / "engine/sglang/srt/models"
    shutil.copytree(MINI, directory / "engine/sglang", ignore=shutil.ignore_patterns("__pycache__"))
    other = (models / "llama.py").read_text("utf-8").replace("Llama", "Other")
    (models / "other.py").write_text(other, "utf-8")
    (directory / "draft").mkdir()
    (directory / "draft/config.json").write_text(
        '{"architectures": ["LlamaForCausalLMEagle3"], "eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 6, 8]}}'
    )
    (directory / "dump.py").write_text(
        "import torch\n\ndef dump(model, x, path):\n    states = []\n    for i, layer in enumerate(model.layers):\n"
        "        x = layer(x)\n        if i in [2, 6, 8]:\n            states.append(x)\n"
        "    torch.save({'aux_hidden_state': torch.cat(states, dim=-1)}, path)\n"
    )
    monkeypatch.chdir(directory)
    return directory


SURVEY = ("scan", "engine")
PIPELINE = (
    "scan", "--draft", "draft", "--num-layers", "12", "--target-class", "LlamaForCausalLM",
    "--training", "dump.py", "--serving", "sglang@engine",
)  # fmt: skip
SHOW = ("engines", "show", "sglang@engine", "--num-layers", "12", "--layer-ids", "1,5", "--format", "json")


def output(*words: str, cached: bool = True) -> tuple[int, str, str]:
    form = () if words[0] == "engines" else ("--output-format", "json")
    result = CliRunner().invoke(app, [*words, *form, *(() if cached else ("--no-cache",))])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("words", [SURVEY, PIPELINE, SHOW], ids=["survey", "pipeline", "show"])
def test_the_second_run_says_the_same_and_derives_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Byte for byte, with and without a cache."""
    plain = output(*words, cached=False)
    first = output(*words)

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("it was computed again")

    for name in (
        "eaglelint.derive.Deriver.derive",
        "eaglelint.derive.reads_ids_at",
        "eaglelint.trainers.scripts._runs",
    ):
        monkeypatch.setattr(name, refuse)
    assert plain == first == output(*words)
    assert '"status": "exact"' in plain[1]


def test_no_cache_leaves_nothing(project: Path, own_cache: Path) -> None:
    """Neither with the flag nor with the setting; with a cache there is a file."""
    output(*PIPELINE, cached=False)
    (project / "eaglelint.toml").write_text("cache = false\n")
    output(*PIPELINE)
    assert list(own_cache.iterdir()) == []
    (project / "eaglelint.toml").unlink()
    output(*PIPELINE)
    assert (own_cache / "cache.sqlite").is_file()


def test_what_is_scanned_is_not_written_to(project: Path, own_cache: Path) -> None:
    before = sorted(project.rglob("*"))
    output(*SURVEY)
    output(*PIPELINE)
    assert sorted(project.rglob("*")) == before


def test_a_warm_scan_imports_no_interpreter(project: Path) -> None:
    """What finds everything in the cache does without libcst."""
    code = (
        "import sys\nfrom eaglelint.cache import store\nnow = store._now\n"
        f"store._now = lambda: now() + {HOUR}\n"
        "from typer.testing import CliRunner\nfrom eaglelint.cli.app import app\n"
        "result = CliRunner().invoke(app, ['scan', 'engine'])\nprint(result.exit_code, 'libcst' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    seen = [
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert seen == ["0 True\n", "0 False\n"]


def test_an_edit_costs_the_classes_that_it_concerns(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an edit of one model the other one is not surveyed again; after one of what both use, both are."""
    surveyed: list[str] = []
    real = work._survey_part

    def noted(handle: Any, part: Any) -> Any:
        surveyed.extend(path.name for path, _ in part.classes)
        return real(handle, part)

    monkeypatch.setattr(work, "_survey_part", noted)
    output(*SURVEY)
    assert surveyed == ["llama.py", "other.py"]
    for name, expected in (("other.py", ["other.py"]), ("capture.py", ["llama.py", "other.py"])):
        surveyed.clear()
        path = project / "engine/sglang/srt/models" / name
        path.write_text(path.read_text("utf-8") + "\n# edited\n", "utf-8")
        output(*SURVEY)
        assert surveyed == expected


@pytest.mark.parametrize("words", [SURVEY, PIPELINE, SHOW], ids=["survey", "pipeline", "show"])
def test_lines_that_move(project: Path, words: tuple[str, ...]) -> None:
    """Evidence names the lines of the class as it is now."""
    output(*words)
    with_lines_moved(project / "engine/sglang/srt/models/llama.py")
    assert output(*words) == output(*words, cached=False)


def test_a_file_that_was_looked_for_in_vain(project: Path) -> None:
    """A module that appears before the one that was found changes what an import means."""
    models = project / "engine/sglang/srt/models"
    shift = models / "shift/__init__.py"
    shift.parent.mkdir()
    shift.write_text("SHIFT = 1\n")
    capture = models / "capture.py"
    text = capture.read_text("utf-8").replace("layer_id + 1", "layer_id + SHIFT")
    capture.write_text("from sglang.srt.models.shift import SHIFT\n" + text, "utf-8")
    before = output(*SHOW)
    (models / "shift.py").write_text("SHIFT = 0\n")
    after = output(*SHOW)
    assert after != before
    assert after == output(*SHOW, cached=False)


def test_a_class_that_is_defined_in_a_new_file(project: Path) -> None:
    """A class is searched for by its name; one that comes first in the order of files is taken."""
    words = (*PIPELINE[:5], "--target-class", "LateForCausalLM", "--serving", "sglang@engine")
    models = project / "engine/sglang/srt/models"
    assert output(*words)[0] == 2
    (models / "late.py").write_text((models / "llama.py").read_text("utf-8").replace("Llama", "Late"), "utf-8")
    found = output(*words)
    assert found[0] == 0 and found == output(*words, cached=False)


def test_an_unreadable_file_is_reported_each_time(project: Path) -> None:
    (project / "engine/sglang/srt/models/other.py").write_text("EntryClass = Broken\nclass Broken(:\n", "utf-8")
    first = output(*SURVEY)
    assert first[0] == 2 and "other.py:2" in first[2]
    assert output(*SURVEY) == first == output(*SURVEY, cached=False)


@pytest.mark.parametrize("damage", ["garbage", "truncated", "directory"])
def test_a_damaged_cache_changes_no_answer(project: Path, own_cache: Path, damage: str) -> None:
    expected = output(*SURVEY)
    file = own_cache / "cache.sqlite"
    if damage == "garbage":
        file.write_bytes(os.urandom(8192))
    elif damage == "truncated":
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    else:
        file.unlink()
        file.mkdir()
    assert output(*SURVEY) == expected
    assert output(*SURVEY) == expected


def test_without_a_place_for_a_cache(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "file").write_text("")
    monkeypatch.setenv("EAGLELINT_CACHE_DIR", str(project / "file/cache"))
    assert output(*SURVEY) == output(*SURVEY, cached=False)


# --- random edits --------------------------------------------------------------------------------------------------

FILES = ("capture.py", "llama.py", "other.py", "third.py", "sub/__init__.py", "capture/__init__.py")
Edit = Callable[[Path], None]


def shifted(path: Path) -> None:
    text = path.read_text("utf-8")
    path.write_text(text.replace("layer_id + 1", "layer_id + 9") if "+ 1" in text else text.replace("+ 9", "+ 1"))


def commented(path: Path) -> None:
    path.write_text(path.read_text("utf-8") + "# more\n", "utf-8")


def with_lines_moved(path: Path) -> None:
    path.write_text("# a line\n" + path.read_text("utf-8"), "utf-8")


def in_the_same_time_and_size(path: Path) -> None:
    """An edit that leaves size and time of change as they were."""
    stat = path.stat()
    text = path.read_text("utf-8")
    path.write_text(text.replace("- 3", "- 4") if "- 3" in text else text.replace("- 4", "- 3"), "utf-8")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def broken(path: Path) -> None:
    path.write_text(path.read_text("utf-8") + "def (\n", "utf-8")


def touched(path: Path) -> None:
    os.utime(path)


def renamed_class(path: Path) -> None:
    path.write_text(path.read_text("utf-8").replace("OtherForCausalLM", "AnotherForCausalLM"), "utf-8")


EDITS: tuple[Edit, ...] = (
    shifted, commented, with_lines_moved, in_the_same_time_and_size, broken, touched, renamed_class, Path.unlink,
)  # fmt: skip


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sampled_from(FILES), st.sampled_from([*EDITS, None])), min_size=1, max_size=4))
def test_after_any_edits_the_cache_says_what_a_fresh_run_says(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[str, Edit | None]]
) -> None:
    """Edits, new files, files that go and come back as they were: each scan is that of the files as they are."""
    with pytest.MonkeyPatch.context() as patch:
        directory = tmp_path_factory.mktemp("edited")
        patch.setenv("EAGLELINT_CACHE_DIR", str(directory / "cache"))
        (directory / "project").mkdir()
        project = make_project(directory / "project", patch)
        models = project / "engine/sglang/srt/models"
        original = {name: (models / name).read_bytes() for name in FILES if (models / name).is_file()}
        words = (SURVEY, PIPELINE)
        for command in words:
            output(*command)
        for name, edit in edits:
            path = models / name
            if edit is not None and path.is_file():
                edit(path)
            elif edit is None or not path.is_file():  # a new one, or one as it was
                path.parent.mkdir(exist_ok=True)
                source = original.get(name, original["llama.py"].replace(b"Llama", b"Third"))
                path.write_bytes(original["capture.py"] if name.startswith("capture/") else source)
            for command in words:
                assert output(*command) == output(*command, cached=False)


# --- the parts -----------------------------------------------------------------------------------------------------


def test_results_become_json_and_back() -> None:
    """Nested, with tuples, dicts and None."""
    wiring = Wiring(
        party="serving",
        name="x",
        slots=(Slot("stream", 3), Slot("unknown")),
        status="conditional",
        conditions=(Condition("when", (Slot("norm", 1),), Span("p", Position(1, 2), Position(1, 3))),),
        evidence=(Evidence("p", 1, "⊕", 0),),
        layer_ids=(1, 2),
    )
    assert decode(encode((wiring, None, {"a": (1, 2.5, True)}))) == (wiring, None, {"a": (1, 2.5, True)})


def test_nothing_foreign_is_kept_or_made() -> None:
    """A cache file cannot name what is to be made."""
    with pytest.raises(TypeError):
        encode(Path("x"))
    for name in ("os:system", "cache.store:Store", "wiring:compare", "wiring:Unheard"):
        with pytest.raises(ValueError, match=name):
            decode({name: []})


def test_a_unit_is_found_by_all_its_parts(tmp_path: Path) -> None:
    """Another name, another part or another content is another result; the same again is not computed again."""
    file = tmp_path / "file.py"
    file.write_text("one")
    counted = []

    def run(what: str, part: object) -> str:
        snapshot = Snapshot()

        def compute() -> str:
            counted.append(what)
            return f"{what} {part} {snapshot.read(file).decode()}"

        with caching(tmp_path / "cache"):
            return remember(what, part, snapshot, compute)

    asked = [("a", 1), ("a", 2), ("b", 1), ("a", [1]), ("a", True)]
    for text in ("one", "two", "one"):
        file.write_text(text)
        assert [run(*words) for words in asked] == [f"{what} {part} {text}" for what, part in asked]
    assert len(counted) == 2 * len(asked)


def test_a_file_that_changes_during_the_run(tmp_path: Path) -> None:
    """For that run it is what it was when it was first read; the next run finds it changed."""
    file = tmp_path / "file.py"
    file.write_text("one")
    runs = []

    def run() -> str:
        snapshot = Snapshot()

        def compute() -> str:
            runs.append(snapshot.read(file).decode())
            file.write_text("two")
            return snapshot.read(file).decode()

        with caching(tmp_path / "cache"):
            return remember("a", None, snapshot, compute)

    assert [run(), run(), run()] == ["one", "two", "two"]
    assert runs == ["one", "two"]


def test_a_file_that_another_process_saw_in_another_state(tmp_path: Path) -> None:
    """What was computed from two states of a file is not kept."""
    file = tmp_path / "file.py"
    file.write_text("one")
    runs = []

    def run() -> None:
        snapshot = Snapshot()

        def compute() -> str:
            text = snapshot.read(file).decode()
            other = Snapshot()
            file.write_text(f"{text} more")
            other.read(file)
            snapshot.adopt(other.answers)
            file.write_text(text)
            runs.append(text)
            return text

        with caching(tmp_path / "cache"):
            remember("a", None, snapshot, compute)

    run()
    run()
    assert runs == ["one", "one"]
