"""A checkpoint as its headers describe it: which tensors it has, how they are shaped, in which file each lies.

Weights are never loaded. Only the values of small maps (``d2t``, ``t2d``) are read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from eaglelint.artifacts.safetensors_header import read_safetensors
from eaglelint.artifacts.tensor_values import read_integers
from eaglelint.artifacts.tensors import LIMIT_BYTES, Tensor, TensorFile

__all__ = ["Checkpoint", "Tensor", "read_checkpoint"]

MAX_FILES = 2_000
"""Most files of one checkpoint; the largest public ones have some two hundred."""

# In the order in which SGLang and vLLM look (``weight_utils.py``): an index first, then what lies there.
_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_SINGLE = ("model.safetensors", "pytorch_model.bin")
# What trainers leave beside a checkpoint and no engine loads.
_NOT_WEIGHTS = ("optimizer", "scheduler", "rng_state", "training_args", "training_state", "scaler", "consolidated")
_MAPS = ("d2t", "t2d")


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """The tensors of one checkpoint.

    Attributes:
        path: Its one file, its index or its directory, as messages name it.
        tensors: By name; only those whose file lies there.
        names: Every name, also those that only the index knows.
        complete: Whether every file that belongs to it was read, so that a name that is not here is nowhere.
        maps: The values of ``d2t`` and ``t2d``, by the tensor's name.
        files: Where each file lies, by how messages name it.
        problems: Sentences on files that are broken.
        notes: Sentences on files that were left out.
    """

    path: str
    tensors: Mapping[str, Tensor]
    names: frozenset[str]
    complete: bool = True
    maps: Mapping[str, Sequence[int]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    files: Mapping[str, Path] = field(default_factory=dict)

    def find(self, suffix: str) -> Tensor | None:
        """The tensor of this name, below whatever prefix a trainer put before it; the outermost of several."""
        name = self.name_of(suffix)
        return None if name is None else self.tensors.get(name)

    def name_of(self, suffix: str) -> str | None:
        """The full name of :meth:`find`, also where only the index knows it; ``None`` where it is not clear."""
        if suffix in self.names:
            return suffix
        ending = f".{suffix}"
        found = sorted((name.count("."), name) for name in self.names if name.endswith(ending))
        if not found or (len(found) > 1 and found[0][0] == found[1][0]):
            return None
        return found[0][1]

    def map_of(self, name: str) -> Sequence[int] | None:
        """The values of ``d2t`` or ``t2d``; ``None`` where it is not there or cannot be read."""
        tensor = self.find(name)
        return None if tensor is None else self.maps.get(tensor.name)


def read_checkpoint(config: Path, display: str) -> Checkpoint | None:
    """Read the checkpoint that lies beside a config; ``None`` where none does.

    Args:
        config: The config's file.
        display: How messages name it.
    """
    directory = config.parent
    shown = PurePosixPath(display).parent
    try:
        present = {entry.name for entry in directory.iterdir() if not entry.name.startswith(".")}
    except OSError:
        return None
    for index in _INDEXES:
        if index in present:
            return _indexed(directory, shown, index, present)
    for name in _SINGLE:
        if name in present:
            return _from_files(directory, shown, (name,), by_name=True)
    for endings in ((".safetensors",), (".bin", ".pt", ".pth")):
        names = tuple(sorted(n for n in present if n.endswith(endings) and not n.startswith(_NOT_WEIGHTS)))
        if names:
            return _from_files(directory, shown, names)
    return None


def _indexed(directory: Path, shown: PurePosixPath, index: str, present: set[str]) -> Checkpoint:
    path = str(shown / index)
    where, problem = _weight_map(directory / index)
    if problem:
        return Checkpoint(path, {}, frozenset(), complete=False, problems=(f"{path} {problem}.",))
    files = sorted(set(where.values()))
    there = tuple(name for name in files if name in present)
    found = _from_files(directory, shown, there, by_name=True)
    notes = list(found.notes)
    missing = len(files) - len(there)
    if missing:
        first = next(name for name in files if name not in present)
        notes.append(f"{path}: {missing} of {len(files)} files that it names do not lie beside it, such as {first}")
    problems = list(found.problems)
    astray = [name for name, file in where.items() if file in there and name not in found.tensors]
    if astray and not problems and found.complete:
        problems.append(
            f"{path}: {astray[0]} does not stand in {where[astray[0]]}, where it says so"
            + (f", nor do {len(astray) - 1} others" if len(astray) > 1 else "")
            + ". Save the checkpoint again."
        )
    return Checkpoint(
        path,
        found.tensors,
        frozenset(where) | found.names,
        found.complete and not missing,
        found.maps,
        tuple(problems),
        tuple(notes),
        found.files,
    )


def _weight_map(path: Path) -> tuple[dict[str, str], str]:
    """Tensor names and the files that hold them, from an index; else the rest of a sentence."""
    try:
        if not path.is_file():
            return {}, "is not a regular file"
        with path.open("rb") as file:
            text = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        return {}, f"cannot be read: {error.strerror or error}"
    if len(text) > LIMIT_BYTES:
        return {}, f"is larger than {LIMIT_BYTES // 2**20} MiB and was not read"
    if text.count(b"{") + text.count(b"[") > 64 or text.count(b",") > 400_000:
        return {}, "is no index of tensors: it has more brackets and values than one"
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        return {}, f"is not JSON: {str(error)[:100]}"
    found: Any = data.get("weight_map") if isinstance(data, dict) else None
    if not isinstance(found, dict) or not all(isinstance(file, str) for file in found.values()):
        return {}, "has no weight_map from names to files"
    outside = next((file for file in found.values() if not file or "/" in file or "\\" in file or file == ".."), None)
    if outside is not None:
        return {}, f"names a file outside of its directory, {outside[:80]!a}"
    return found, ""


def _from_files(directory: Path, shown: PurePosixPath, names: Sequence[str], *, by_name: bool = False) -> Checkpoint:
    tensors: dict[str, Tensor] = {}
    problems: list[str] = []
    notes: list[str] = []
    complete = len(names) <= MAX_FILES
    paths: dict[str, Path] = {}
    for name in names[:MAX_FILES]:
        path, display = directory / name, str(shown / name)
        found = _read_file(path, display)
        # A loose file of torch may be anything; only one that an engine asks for by name has to be readable.
        (problems if name.endswith(".safetensors") or by_name else notes).extend(found.problems)
        if found.pointer:
            notes.append(f"{display} is a Git LFS pointer: the weights were not downloaded (git lfs pull)")
        complete = complete and not found.pointer and not (found.problems and not found.tensors)
        for tensor in found.tensors:
            if tensor.name in tensors:
                problems.append(f"{display}: {tensor.name} stands in {tensors[tensor.name].path} too.")
            tensors[tensor.name] = tensor
        paths[display] = path
    maps = {
        tensor.name: values
        for tensor in tensors.values()
        if tensor.name.rpartition(".")[2] in _MAPS and (values := read_integers(paths[tensor.path], tensor)) is not None
    }
    where = str(shown / names[0]) if len(names) == 1 else str(shown)
    return Checkpoint(
        where,
        tensors,
        frozenset(tensors),
        complete,
        maps,
        tuple(problems),
        tuple(notes),
        paths,
    )


def _read_file(path: Path, display: str) -> TensorFile:
    if path.name.endswith(".safetensors"):
        return read_safetensors(path, display)
    from eaglelint.artifacts.torch_archive import read_torch

    return read_torch(path, display)
