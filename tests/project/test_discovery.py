"""Discovery finds the configs, code and engines under the named paths, quickly and without being led astray."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from eaglelint.exceptions import UnreadableInput
from eaglelint.project import discovery
from eaglelint.project.discovery import EngineRoot, discover, display_path

DRAFT = {"architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1}
TARGET = {"architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 61}
EMBEDDED = {"architectures": ["DeepseekV4ForCausalLM"], "num_hidden_layers": 43, "dspark_target_layer_ids": [40]}


def tree(root: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return root


def names(root: Path, paths: Iterable[Path]) -> list[str]:
    return [path.relative_to(root).as_posix() for path in paths]


def test_configs_and_code_are_told_apart(tmp_path: Path) -> None:
    """Drafts, targets, and one that is both; tokenizers, packages and generation settings are nothing."""
    tree(
        tmp_path,
        {
            "draft/config.json": DRAFT,
            "target/config.json": TARGET,
            "v4/config.json": EMBEDDED,
            "target/tokenizer_config.json": {"tokenizer_class": "EagleTokenizer", "num_layers": 3},
            "target/generation_config.json": {"eos_token_id": 2},
            "package.json": {"name": "eagle", "num_layers": "1"},
            "list.json": ["draft_vocab_size"],
            "training/dump.py": "",
            "notes.md": "eagle",
        },
    )
    found = discover([tmp_path])
    assert names(tmp_path, found.drafts) == ["draft/config.json", "v4/config.json"]
    assert names(tmp_path, found.targets) == ["target/config.json", "v4/config.json"]
    assert names(tmp_path, found.python) == ["training/dump.py"]
    assert (found.engine_roots, found.notes) == ((), ())


def test_a_broken_config_is_still_found(tmp_path: Path) -> None:
    """So that reading it can say where it is broken; a file that is too large is not looked into."""
    tree(tmp_path, {"a.json": '{"eagle_config": {"x": 1}, "model_type": "llama",', "b.json": "{" + "[" * 9000 + "MTP"})
    (tmp_path / "c.json").write_bytes(json.dumps(DRAFT).encode() + b" " * discovery.MAX_JSON_BYTES)
    assert names(tmp_path, discover([tmp_path]).drafts) == ["a.json"]


def test_directories_of_tools_are_left_out_unless_named(tmp_path: Path) -> None:
    """Caches, virtual environments, build output and hidden directories hold nothing of the project's own."""
    left_out = [".git", ".venv", ".tox", ".hidden", "node_modules", "__pycache__", "build", "dist", "venv"]
    tree(tmp_path, {f"{name}/x.py": "" for name in left_out} | {"src/x.py": ""})
    assert names(tmp_path, discover([tmp_path]).python) == ["src/x.py"]
    assert names(tmp_path, discover([tmp_path / "build"]).python) == ["build/x.py"]


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("third_party", ["a.py", "deep/b.py"]),
        ("third_party/", ["a.py", "deep/b.py"]),
        ("*.py", []),
        ("deep/third_party", ["a.py", "deep/b.py", "third_party/d.py"]),
        ("deep/**", ["a.py", "third_party/d.py"]),
        ("./deep/b.py", ["a.py", "deep/third_party/c.py", "third_party/d.py"]),
        ("**/third_party/**", ["a.py", "deep/b.py"]),
        ("**/b.py", ["a.py", "deep/third_party/c.py", "third_party/d.py"]),
        ("nothing", ["a.py", "deep/b.py", "deep/third_party/c.py", "third_party/d.py"]),
    ],
)
def test_exclude_globs_match_names_or_paths(tmp_path: Path, pattern: str, left: list[str]) -> None:
    """Without a slash a glob is a name anywhere, with one a path from the root."""
    tree(tmp_path, dict.fromkeys(["a.py", "deep/b.py", "deep/third_party/c.py", "third_party/d.py"], ""))
    assert left == names(tmp_path, discover([tmp_path], exclude=[pattern], root=tmp_path).python)


def test_a_named_file_is_taken_whatever_is_excluded(tmp_path: Path) -> None:
    """Once, however often it is named; what is neither code nor JSON is said not to be read."""
    tree(tmp_path, {"a.py": "", "draft.json": DRAFT, "notes.md": ""})
    paths = [tmp_path / "a.py", tmp_path / "a.py", tmp_path / "draft.json", tmp_path, tmp_path / "notes.md"]
    found = discover(paths, exclude=["a.py", "*.json"])
    assert (names(tmp_path, found.python), names(tmp_path, found.drafts)) == (["a.py"], ["draft.json"])
    (note,) = found.notes
    assert note.endswith("notes.md was not scanned: it is no directory, JSON or Python file.")


def test_a_named_file_that_cannot_be_read_ends_the_command(tmp_path: Path) -> None:
    """Missing or broken: the user asked for it, so the user is told."""
    with pytest.raises(UnreadableInput, match="does not exist"):
        discover([tmp_path / "nowhere"])
    tree(tmp_path, {"draft.json": '{"a": }'})
    with pytest.raises(UnreadableInput, match=r"draft\.json:1:7: not valid JSON"):
        discover([tmp_path / "draft.json"])


def test_a_named_json_file_that_is_no_config_is_said_not_to_be_read(tmp_path: Path) -> None:
    """A commit hook hands over every changed JSON file; data and tokenizers must not stop the commit."""
    tree(tmp_path, {"list.json": [1, 2], "tokenizer_config.json": {"tokenizer_class": "X"}, "t.json": TARGET})
    found = discover(sorted(tmp_path.glob("*.json")))
    assert (names(tmp_path, found.drafts), names(tmp_path, found.targets)) == ([], ["t.json"])
    assert [note.endswith("it is no draft's or target's config.") for note in found.notes] == [True, True]


@pytest.mark.parametrize(
    ("files", "engines"),
    [
        (["python/sglang/srt/models/llama.py"], [("sglang", "python/sglang")]),
        (["vllm/model_executor/models/llama.py"], [("vllm", "vllm")]),
        (["vllm/vllm/model_executor/models/llama.py"], [("vllm", "vllm/vllm")]),
        (["sglang/docs/conf.py", "vllm/readme.py"], []),
    ],
)
def test_an_engine_is_known_by_its_package(tmp_path: Path, files: list[str], engines: list[tuple[str, str]]) -> None:
    """A directory of that name alone is not enough."""
    tree(tmp_path, dict.fromkeys(files, ""))
    expected = tuple(EngineRoot(name, tmp_path / path) for name, path in engines)
    assert expected == discover([tmp_path]).engine_roots


def test_the_named_directory_may_be_the_engine_itself(tmp_path: Path) -> None:
    """``scan .../site-packages/sglang`` names the package directory."""
    tree(tmp_path, {"site-packages/sglang/srt/a.py": ""})
    root = tmp_path / "site-packages" / "sglang"
    assert f"sglang@{root}" == str(discover([root]).engine_roots[0])


def test_links_cannot_lead_in_circles(tmp_path: Path) -> None:
    """No link to a directory is followed; a linked file, as in a Hugging Face cache, is."""
    tree(tmp_path, {"blobs/1234": DRAFT, "a/x.py": ""})
    try:
        os.symlink(tmp_path, tmp_path / "a" / "loop", target_is_directory=True)
        os.symlink(tmp_path / "blobs" / "1234", tmp_path / "a" / "config.json")
        os.symlink(tmp_path / "a" / "self.py", tmp_path / "a" / "self.py")
    except OSError:
        pytest.skip("no symbolic links here")
    found = discover([tmp_path])
    assert (names(tmp_path, found.python), names(tmp_path, found.drafts)) == (["a/x.py"], ["a/config.json"])


def test_too_many_files_end_the_walk_with_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree without end is not walked to its end."""
    tree(tmp_path, {f"d{number}/x.py": "" for number in range(30)})
    monkeypatch.setattr(discovery, "MAX_FILES", 40)
    found = discover([tmp_path])
    assert len(found.python) <= 11
    assert found.notes == ("More than 40 files: the rest was not scanned. Name fewer paths.",)


def test_a_tree_of_an_engines_size_is_walked(tmp_path: Path) -> None:
    """5,000 files, of which 500 are JSON that is no config."""
    for directory in range(100):
        (tmp_path / f"d{directory}").mkdir()
        for number in range(45):
            (tmp_path / f"d{directory}" / f"f{number}.py").touch()
        for number in range(5):
            (tmp_path / f"d{directory}" / f"t{number}.json").write_text('{"block": [1, 2, 3]}')
    found = discover([tmp_path])
    assert (len(found.python), len(found.drafts)) == (4500, 0)


def test_paths_are_shown_from_the_working_directory(tmp_path: Path) -> None:
    """Relative inside, as given outside; never with a back slash."""
    assert display_path(tmp_path / "draft" / "config.json", tmp_path) == "draft/config.json"
    assert display_path(Path("./x/../draft/config.json"), tmp_path) == "draft/config.json"
    assert display_path(tmp_path, tmp_path) == "."
    assert display_path(Path("../other/config.json"), tmp_path) == "../other/config.json"
    assert (tmp_path / "b").as_posix() == display_path(tmp_path / "b", tmp_path / "bb")


def test_scripts_that_start_an_engine(tmp_path: Path) -> None:
    """Those of an engine itself, and scripts that do something else, are none."""
    tree(
        tmp_path,
        {
            "serve.sh": "vllm serve Qwen/Qwen3-8B",
            "install.sh": "pip install vllm  # then serve",
            "serve.txt": "vllm serve Qwen/Qwen3-8B",
            "sglang/srt/a.py": "",
            "sglang/test/run.sh": "python -m sglang.launch_server --model-path m",
        },
    )
    assert names(tmp_path, discover([tmp_path]).launches) == ["serve.sh"]
    assert names(tmp_path, discover([tmp_path / "serve.sh"]).launches) == ["serve.sh"]
