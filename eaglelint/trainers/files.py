"""Which Python files hold training code, and which of their functions are worth running."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import libcst as cst

from eaglelint.cache.units import active_store
from eaglelint.source.index import ClassInfo, FunctionInfo
from eaglelint.source.snapshot import Snapshot
from eaglelint.source.tree import SourceModule, SourceTree

__all__ = [
    "Capturing",
    "Entry",
    "capturing",
    "entries",
    "find_files",
    "naming",
    "parameters",
    "rests_on_defaults",
    "source_tree",
]

# Engines are the serving side; tests capture what they please; the other names hold nothing of the project's own.
_SKIPPED = frozenset(
    ["__pycache__", "build", "dist", "node_modules", "sglang", "site-packages", "tensorrt_llm", "tests", "venv", "vllm"]
)
_MAX_FILES = 5_000
_MAX_ENTRIES = 400
_MAX_FUNCTIONS = 10_000
_MAX_ABOVE = 6
_TOP_MARKS = (".git", "pyproject.toml", "setup.py")

# Code that captures, saves or loads a state holds one of these.
_FILE_MARKS = (b"hidden", b"layer", b"states", b"register_forward", b"capture", b"aux_")
_FUNCTION_MARKS = ("hidden", "states", "layer", "forward", "save", "load", "cat(", "append(", "capture", "aux_")

_LAYER_MARKS = ("layers", "output_hidden_states", "register_forward", ".h:", ".h)", ".h[", "blocks")
_SOURCE_MARKS = (*_LAYER_MARKS, "capture", "aux_")
_MODEL_CALL = "model("
_ID_WORDS = ("aux", "capture", "id", "index", "layer")
_WORD = re.compile(r"\w+")
_IMPORT = re.compile(r"^[ \t]*(?:from|import)\b(?:[^\n(]*\([^)]*\)|[^\n]*)\n", re.M)

# Among very many functions: those that touch layers and keep states, or say on a model which layers are captured.
_MANY = 150
# The options under which engines hand hidden states out (vLLM 0.33.0, TensorRT-LLM 001e670, SGLang 0.5.23).
_ENGINE_MARKS = (b"extract_hidden_states", b"SaveHiddenStatesDecodingConfig", b"enable_return_hidden_states")
_STARTED = (
    ("vLLM", re.compile(r"[\"']method[\"']\s*:\s*[\"']extract_hidden_states[\"']")),
    ("TensorRT-LLM", re.compile(r"\bSaveHiddenStatesDecodingConfig\(")),
    ("SGLang", re.compile(r"\benable_return_hidden_states\s*=\s*True\b")),
)
_STATE_MARKS = ("hidden", "states", "hook", "residual", "aux")
_KEEPING_MARKS = ("append(", "cat(", "stack(", "hook", "hidden_states", "+= (", "+= [", "yield", "save")
_HIDDEN = re.compile(r"hidden_state|all_hidden|register_forward|residual")
_SAYS_LAYERS = re.compile(
    r"\.\w*(?:layers_to_capture|layer_ids|layer_indices|layers?_\w*ids|capture\w*layer)\w*\s*=(?!=)"
    r"|aux_hidden|capture_\w*(?:layer|hidden|state)"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """Code that may be started by itself: a function, a method, or a module's own statements (``function`` is None)."""

    module: SourceModule
    function: FunctionInfo | None
    owner: ClassInfo | None = None

    @property
    def name(self) -> str:
        if self.function is None:
            return self.module.display
        return f"{self.owner.name}.{self.function.name}" if self.owner else self.function.name

    @property
    def place(self) -> str:
        line = self.function.line if self.function else 1
        return f"{self.name} ({self.module.display}:{line})"

    @property
    def key(self) -> tuple[str, int]:
        return str(self.module.path), self.function.line if self.function else 0


def find_files(paths: tuple[Path, ...]) -> list[Path]:
    """The Python files at and below the paths, each once, in order; engines and environments left out."""
    found: dict[Path, None] = {}
    for path in paths:
        for file in _walk(path):
            if len(found) >= _MAX_FILES:
                return list(found)
            found[file] = None
    return list(found)


def _walk(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for directory, names, files in os.walk(path):
        names[:] = sorted(name for name in names if name not in _SKIPPED and not name.startswith("."))
        if "pyvenv.cfg" in files:
            names.clear()
            continue
        for name in sorted(files):
            file = Path(directory) / name
            if name.endswith(".py") and file.is_file():
                yield file


def source_tree(paths: tuple[Path, ...], files: list[Path], relative_to: Path) -> SourceTree:
    """A tree in which scripts find each other: above each package, and beside each script, in a package too.

    They find the package of the checkout that they are part of as well: whoever starts them has it installed.
    """
    snapshot = Snapshot(active_store())
    roots: dict[Path, None] = {}
    beside: dict[Path, None] = {}
    for directory in [path.parent if path.is_file() else path for path in paths] + [file.parent for file in files]:
        top = directory
        while (top / "__init__.py").is_file() and top.parent != top:
            top = top.parent
        roots[top] = None
    for file in files:
        if file.parent not in roots and file.parent not in beside and _is_started(snapshot, file):
            beside[file.parent] = None
    checkouts = dict.fromkeys(place for root in roots for place in _checkout(root))
    return SourceTree(tuple({**roots, **beside, **checkouts}), relative_to=relative_to, snapshot=snapshot)


def _checkout(directory: Path) -> tuple[Path, ...]:
    """The top of the checkout that a directory is part of, and its ``src``; nothing where there is none."""
    for top in (directory, *directory.parents[:_MAX_ABOVE]):
        if any((top / mark).exists() for mark in _TOP_MARKS):
            return (top, *(() if not (top / "src").is_dir() else (top / "src",)))
    return ()


def _is_started(snapshot: Snapshot, file: Path) -> bool:
    """Whether a file is there to be started by its path: Python then looks for modules beside it."""
    try:
        return b"__main__" in snapshot.read(file)
    except OSError:
        return False


def entries(
    tree: SourceTree, files: list[Path], worth: Callable[[SourceModule, FunctionInfo], bool] | None = None
) -> list[Entry]:
    """What may be started in these files; files that do not parse are noted in the tree.

    ``worth`` chooses among the functions of all files; without it they are those that may capture, save or load states.
    """
    marks = _FILE_MARKS if worth is None else (b"",)
    worth = worth or _worth
    found: list[Entry] = []
    for path in files:
        try:
            source = tree.read(path)
        except OSError as error:
            tree.unreadable[tree.display(path)] = f"{tree.display(path)}: {error.strerror or error}"
            continue
        module = tree.module_at(path)
        if module is None or not any(mark in source for mark in marks):
            continue
        if module.index.statements:
            found.append(Entry(module, None))
        found += [Entry(module, info) for info in module.index.functions.values() if worth(module, info)]
        for cls in module.index.classes.values():
            found += [Entry(module, info, cls) for info in cls.methods.values() if worth(module, info)]
    return found[:_MAX_FUNCTIONS]


@dataclass(frozen=True, slots=True)
class Capturing:
    """The entries that can reach a capture.

    ``thinned`` where there are so many that only those were taken which keep states, and their callers by what is
    imported; ``left`` counts the ones beyond what can be run.
    """

    entries: tuple[Entry, ...]
    thinned: bool = False
    left: int = 0


def capturing(starts: list[Entry]) -> Capturing:
    """The entries that can reach a capture: those that touch a model's layers, and by name all that may call them."""
    texts = {entry.key: _text(entry) for entry in starts}
    found = _reaching(starts, texts, lambda text: any(mark in text for mark in _SOURCE_MARKS), _anyone)
    if not any(mark in texts[entry.key] for entry in found for mark in _LAYER_MARKS):
        return Capturing(())
    if len(found) <= _MANY:
        return Capturing(tuple(found))
    found = _reaching(found, texts, _keeps_states, _Imports().know)
    return Capturing(tuple(found[:_MAX_ENTRIES]), True, len(found[_MAX_ENTRIES:]))


def _reaching(
    starts: list[Entry],
    texts: dict[tuple[str, int], str],
    captures: Callable[[str], bool],
    knows: Callable[[Entry, Entry], bool],
) -> list[Entry]:
    """The entries whose text captures, and all whose text calls one of these by name and that know it."""
    naming: dict[str, list[Entry]] = {name: [] for entry in starts for name in _called_as(entry)}
    for entry in starts:
        text = texts[entry.key]
        for word in {*_WORD.findall(text), *((_MODEL_CALL,) if _MODEL_CALL in text else ())} & naming.keys():
            naming[word].append(entry)
    reached = {entry.key: entry for entry in starts if captures(texts[entry.key])}
    pending = list(reached.values())
    while pending:
        callee = pending.pop()
        for caller in (caller for name in _called_as(callee) for caller in naming[name]):
            if caller.key not in reached and knows(caller, callee):
                reached[caller.key] = caller
                pending.append(caller)
    return [entry for entry in starts if entry.key in reached]


def _keeps_states(text: str) -> bool:
    marks = (_LAYER_MARKS, _STATE_MARKS, _KEEPING_MARKS)
    if all(any(mark in text for mark in group) for group in marks) and _HIDDEN.search(text) is not None:
        return True
    return _SAYS_LAYERS.search(text) is not None


def _anyone(caller: Entry, callee: Entry) -> bool:
    return True


class _Imports:
    """Which entries know another one: those of its own module, and of modules that import it, or its class, by name."""

    def __init__(self) -> None:
        self._words: dict[Path, set[str]] = {}

    def know(self, caller: Entry, callee: Entry) -> bool:
        if caller.module.path == callee.module.path:
            return True
        name = callee.owner.name if callee.owner is not None else callee.name
        return name in self._imported(caller.module)

    def _imported(self, module: SourceModule) -> set[str]:
        if module.path not in self._words:
            lines = "".join(match.group() for match in _IMPORT.finditer("".join(module.lines)))
            self._words[module.path] = set(_WORD.findall(lines))
        return self._words[module.path]


def starting_engines(tree: SourceTree, files: list[Path]) -> list[tuple[str, str, int]]:
    """Where code starts an engine that captures hidden states by itself: the engine, the file and the line."""
    found = []
    for path in files:
        module = tree.module_at(path) if any(mark in _read(tree, path) for mark in _ENGINE_MARKS) else None
        for number, line in enumerate(module.lines if module is not None else (), 1):
            engine = next((name for name, pattern in _STARTED if pattern.search(line)), None)
            if module is not None and engine is not None:
                found.append((engine, module.display, number))
    return found


def _read(tree: SourceTree, path: Path) -> bytes:
    try:
        return tree.read(path)
    except OSError:
        return b""


def naming(starts: list[Entry], names: Collection[str]) -> list[Entry]:
    """Of very many entries those in files that have all these names; all where there are few, or no names."""
    if len(starts) <= _MAX_ENTRIES or not names:
        return starts
    files = {path: "".join(module.lines) for path, module in {e.module.path: e.module for e in starts}.items()}
    told = {path for path, text in files.items() if all(name in text for name in names)}
    return [entry for entry in starts if entry.module.path in told]


def _text(entry: Entry) -> str:
    if entry.function is not None:
        return entry.module.text(entry.function.line, entry.function.end_line)
    return "".join(entry.module.text(line, end_line) for line, end_line in entry.module.index.statements)


def _called_as(entry: Entry) -> tuple[str, ...]:
    """The words in a caller that mean this entry: its name, or its class's where the call names only the object."""
    if entry.function is None:
        return ()
    if entry.owner is not None and (entry.function.name.startswith("__") or entry.function.name == "forward"):
        return (entry.owner.name, _MODEL_CALL)
    return (entry.function.name,) if entry.function.name != "forward" else ("forward", _MODEL_CALL)


def parameters(entry: Entry) -> list[cst.Param]:
    """The parameters of an entry's function, the keyword-only ones last."""
    if entry.function is None:
        return []
    try:
        piece = entry.module.slice(entry.function.line, entry.function.end_line)
    except SyntaxError:
        return []
    node = next(statement for statement in piece.body if isinstance(statement, cst.FunctionDef))
    return [*node.params.posonly_params, *node.params.params, *node.params.kwonly_params]


def rests_on_defaults(entry: Entry) -> bool:
    """Whether a run of the entry alone takes ids, or numbers, from its parameters' defaults."""
    for parameter in parameters(entry):
        default, name = parameter.default, parameter.name.value
        if default is None:
            continue
        if not isinstance(default, cst.Name):  # no None, True or False
            return True
        if any(word in name for word in _ID_WORDS) and name not in ("input_ids", "position_ids"):
            return True
    return False


def _worth(module: SourceModule, info: FunctionInfo) -> bool:
    text = module.text(info.line, info.end_line)
    marks = ("register_forward",) if info.name == "__init__" else _FUNCTION_MARKS
    return any(mark in text for mark in marks)
