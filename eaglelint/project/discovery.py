"""Which files under the given paths matter: drafts' and targets' configs, Python code, engines."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import Path

from eaglelint.artifacts.document import Document, read_json
from eaglelint.artifacts.draft import is_draft_config, is_embedded_draft
from eaglelint.artifacts.target import is_target_config
from eaglelint.exceptions import UnreadableInput
from eaglelint.overlay import unsaved_text

__all__ = [
    "ENGINE_MARKS",
    "EXCLUDED_NAMES",
    "MAX_FILES",
    "Discovered",
    "EngineRoot",
    "discover",
    "display_path",
    "engine_named",
    "engine_root_of",
    "path_matcher",
]

EXCLUDED_NAMES = frozenset({"__pycache__", "build", "dist", "node_modules", "site-packages", "venv"})
"""Directories that hold nothing of the project's own; hidden ones (``.git``, ``.venv``, ``.tox``) are left out too."""

ENGINE_MARKS: Mapping[str, tuple[str, ...]] = {
    "sglang": ("srt",),  # sglang 0.5.9: python/sglang/srt/models/
    "lmdeploy": ("pytorch",),  # lmdeploy 0.14.0: lmdeploy/pytorch/models/
    "tensorrt_llm": ("_torch",),  # NVIDIA/TensorRT-LLM 001e670: tensorrt_llm/_torch/models/
    "vllm": ("model_executor",),  # vllm 0.33.0: vllm/model_executor/models/
}
"""Name of an engine's package directory, and the directories in it that no namesake has; see :func:`engine_named`."""

MAX_FILES = 200_000
"""Most directory entries that are looked at."""

MAX_JSON_BYTES = 1024 * 1024
"""Largest JSON file that is looked into; model configs have a few kilobytes, tokenizers are larger."""

MAX_SCRIPTS, MAX_SCRIPT_BYTES = 500, 64 * 1024
"""Most shell scripts that are looked into, and how far."""

_LAUNCH_MARKS = (b"launch_server", b"serve", b"api_server")

# Each config that counts holds one of these; most JSON files hold none and need no parsing.
_DRAFT_MARKS = (
    b"eagle", b"Eagle", b"EAGLE", b"dflash_config", b"DFlash", b"DSpark", b"dspark_", b"Domino", b"MTP", b"NextN",
    b"speculators_", b"target_layer_ids", b"aux_hidden_state", b"draft_vocab_size",
)  # fmt: skip
_TARGET_MARKS = (b"num_hidden_layers", b"n_layer", b"num_layers")


@dataclass(frozen=True, slots=True)
class EngineRoot:
    """The package directory of a serving engine."""

    name: str
    path: Path

    def __str__(self) -> str:
        return f"{self.name}@{self.path}"


@dataclass(frozen=True, slots=True)
class Discovered:
    """What was found, each sorted; a config that is both draft and target (DeepSeek V4) stands in both.

    ``python`` is what lies outside of the engines.
    """

    drafts: tuple[Path, ...]
    targets: tuple[Path, ...]
    python: tuple[Path, ...]
    engine_roots: tuple[EngineRoot, ...]
    notes: tuple[str, ...] = ()
    launches: tuple[Path, ...] = ()


@dataclass(slots=True)
class _Walk:
    excluded: Callable[[str, str], bool]
    seen: set[str] = field(default_factory=set)
    entries: int = 0
    json: list[str] = field(default_factory=list)
    python: list[str] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    engines: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def discover(
    paths: Sequence[Path], *, exclude: Sequence[str] = (), root: Path | None = None, force_exclude: bool = False
) -> Discovered:
    """Look through files and directories; nothing is imported, and no link to a directory is followed.

    Args:
        paths: What the user named. A named file is taken whatever ``exclude`` says.
        exclude: Globs. One without a slash is matched against each name, one with a slash, also at its beginning,
            against the path relative to ``root``.
        root: The directory that globs are relative to; the working directory if left out.
        force_exclude: Leave out named files too, for callers that name every changed file.

    Raises:
        UnreadableInput: A named path does not exist, or a named JSON file cannot be read.
    """
    walk = _Walk(_excluder(exclude, (root or Path.cwd()).absolute()))
    drafts: dict[Path, None] = {}
    targets: dict[Path, None] = {}
    for path in paths:
        name = os.path.abspath(path)
        if force_exclude and path_matcher(exclude, root or Path.cwd())(path):
            continue
        if os.path.isdir(name):
            _walk(name, walk)
        elif not os.path.exists(name) and unsaved_text(path) is None:
            raise UnreadableInput(f"{display_path(path)} does not exist. Check the path.")
        elif name.endswith(".json"):
            if name not in walk.seen:
                walk.seen.add(name)
                data = read_json(path, display_path(path)).data
                if not _sort_in(Path(name), data, drafts, targets):
                    walk.notes.append(f"{display_path(path)} was not scanned: it is no draft's or target's config.")
        elif name.endswith(".py"):
            if name not in walk.seen:
                walk.seen.add(name)
                walk.python.append(name)
        elif name.endswith(".sh") and list(_launches([name], set())):
            walk.scripts.append(name)
        else:
            walk.notes.append(f"{display_path(path)} was not scanned: it is no directory, JSON or Python file.")
    engines = tuple(EngineRoot(engine, Path(path)) for path, engine in sorted(walk.engines.items()))
    for name in walk.json:
        data = _config_data(name)
        if data is not None:
            _sort_in(Path(name), data, drafts, targets)
    return Discovered(
        drafts=tuple(sorted(drafts)),
        targets=tuple(sorted(targets)),
        python=tuple(map(Path, sorted(_outside(walk.python, walk.engines)))),
        engine_roots=engines,
        notes=tuple(walk.notes),
        launches=tuple(_launches(walk.scripts, {engine.path for engine in engines})),
    )


def _outside(files: Iterable[str], directories: Iterable[str]) -> Iterator[str]:
    within = tuple(directory + os.sep for directory in directories)
    return (file for file in files if not file.startswith(within))


def display_path(path: Path, cwd: Path | None = None) -> str:
    """How messages name a path: relative to the working directory where it lies in it, with forward slashes."""
    base = os.path.abspath(cwd or Path.cwd())
    absolute = os.path.normpath(os.path.join(base, path))
    if absolute == base:
        return "."
    inside = absolute.startswith(base.rstrip(os.sep) + os.sep)
    shown = Path(os.path.relpath(absolute, base)) if inside else path if not path.is_absolute() else Path(absolute)
    return shown.as_posix()


def _walk(top: str, walk: _Walk) -> None:
    pending = [top]
    while pending:
        directory = pending.pop()
        if directory in walk.seen:
            continue
        walk.seen.add(directory)
        try:
            with os.scandir(directory) as entries:
                below = _scan(directory, entries, walk)
        except OSError as error:
            walk.notes.append(f"{display_path(Path(directory))} was not scanned: {error.strerror or error}.")
            continue
        if walk.entries > MAX_FILES:
            walk.notes.append(f"More than {MAX_FILES:,} files: the rest was not scanned. Name fewer paths.")
            return
        pending.extend(below)


def _scan(directory: str, entries: Iterable[os.DirEntry[str]], walk: _Walk) -> list[str]:
    below = {}
    for entry in entries:
        walk.entries += 1
        if walk.entries > MAX_FILES:
            break
        name = entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                if not name.startswith(".") and name not in EXCLUDED_NAMES and not walk.excluded(name, entry.path):
                    below[name] = entry.path
            elif (
                name.endswith((".py", ".json", ".sh"))
                and entry.path not in walk.seen
                and not walk.excluded(name, entry.path)
                and entry.is_file()
            ):
                walk.seen.add(entry.path)
                kind = walk.python if name.endswith(".py") else walk.json if name.endswith(".json") else walk.scripts
                kind.append(entry.path)
        except OSError:
            continue
    engine = os.path.basename(directory)
    if engine in ENGINE_MARKS and all(mark in below for mark in ENGINE_MARKS[engine]):
        walk.engines[directory] = engine_named(engine)
    return list(below.values())


def engine_named(package: str) -> str:
    """The engine's name as ``--serving`` has it, from that of its package."""
    return package.replace("_", "-")


def engine_root_of(path: Path) -> EngineRoot | None:
    """The package of a serving engine that a file lies in."""
    for directory in path.parents:
        marks = ENGINE_MARKS.get(directory.name)
        if marks and all((directory / mark).is_dir() for mark in marks):
            return EngineRoot(engine_named(directory.name), directory)
    return None


def path_matcher(patterns: Sequence[str], root: Path) -> Callable[[Path], bool]:
    """Whether a file or one of its directories is meant by a glob, read as ``exclude`` of :func:`discover` is."""
    excluded = _excluder(patterns, root.absolute())
    base = os.path.abspath(root)

    def matches(path: Path) -> bool:
        absolute = os.path.abspath(path)
        inside = [
            absolute,
            *(str(parent) for parent in Path(absolute).parents if str(parent).startswith(base + os.sep)),
        ]
        return any(excluded(os.path.basename(place), place) for place in inside)

    return matches


def _excluder(patterns: Sequence[str], root: Path) -> Callable[[str, str], bool]:
    cleaned = [pattern.removeprefix("./").rstrip("/") for pattern in patterns]
    names = [re.compile(translate(pattern)) for pattern in cleaned if "/" not in pattern]
    paths = [
        re.compile(translate(form))
        for pattern in cleaned
        if "/" in pattern
        for form in _forms(pattern.removeprefix("/"))
    ]
    base = str(root)

    def excluded(name: str, path: str) -> bool:
        if _any_match(names, name):
            return True
        return bool(paths) and _any_match(paths, os.path.relpath(path, base).replace(os.sep, "/"))

    return excluded


def _forms(pattern: str) -> Iterator[str]:
    """A path glob, also for no directory at all where ``**/`` stands, and for the directory itself before ``/**``."""
    for start in (pattern, pattern.removeprefix("**/")):
        yield start
        yield start.removesuffix("/**")


def _any_match(patterns: Sequence[re.Pattern[str]], path: str) -> bool:
    return any(pattern.match(path) for pattern in patterns)


def _config_data(name: str) -> object:
    """The parsed JSON of a file that may be a config; ``None`` for every other file."""
    try:
        text = unsaved_text(name)
        if text is None:
            with open(name, "rb") as file:
                # No more than there is: room for the largest takes longer to get than most files to read.
                text = file.read(min(os.fstat(file.fileno()).st_size, MAX_JSON_BYTES) + 1)
    except OSError:
        return None
    if len(text) > MAX_JSON_BYTES or not any(mark in text for mark in (*_DRAFT_MARKS, *_TARGET_MARKS)):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        # A half-typed config still counts, so that reading it can say where it is broken.
        return Document.parse(name, text).data


def _launches(scripts: Sequence[str], engines: set[Path]) -> Iterator[Path]:
    """The scripts that start an engine, but for those of an engine itself."""
    for name in sorted(set(scripts))[:MAX_SCRIPTS]:
        path = Path(name)
        if not engines.isdisjoint(path.parents):
            continue
        try:
            if not path.is_file():
                continue
            with path.open("rb") as file:
                text = file.read(MAX_SCRIPT_BYTES)
        except OSError:
            continue
        if any(mark in text for mark in _LAUNCH_MARKS):
            from eaglelint.artifacts.launch import parse_launch

            if parse_launch(name, text.decode("utf-8", "replace")) is not None:
                yield path


def _sort_in(path: Path, data: object, drafts: dict[Path, None], targets: dict[Path, None]) -> bool:
    draft = is_draft_config(data)
    if draft:
        drafts[path] = None
    target = (not draft or is_embedded_draft(data)) and is_target_config(data)
    if target:
        targets[path] = None
    return draft or target
