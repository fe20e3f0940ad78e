"""A dump of hidden states as its first sample's header and its manifest describe it; the states are never loaded.

A dump is a directory of samples, one file for each, written by ``torch.save`` or as safetensors, or one such file. What
is read of a sample are keys, types, shapes, and the plain values that stand beside the tensors, such as ModelOpt's
``hidden_states_prenorm`` (0.47.0, ``eagle/utils.py``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from eaglelint.artifacts.document import Document, Node, read_json
from eaglelint.artifacts.draft_kinds import IDS_KEYS
from eaglelint.artifacts.safetensors_header import read_safetensors
from eaglelint.artifacts.target import TargetConfig
from eaglelint.artifacts.tensors import Tensor
from eaglelint.exceptions import UnreadableInput
from eaglelint.finding import Span

__all__ = ["Dump", "DumpEntry", "DumpIds", "DumpedAs", "Layout", "read_dump"]

_TORCH_ENDINGS = (".bin", ".ckpt", ".pt", ".pth")
_ENDINGS = (".safetensors", *_TORCH_ENDINGS)

Layout = Literal["joined", "listed", "stacked at 0", "stacked at 1"]
"""How several states of one key are kept: side by side, in a list, or along an axis of their own."""

_MAX_ENTRIES = 20_000
_MAX_MANIFESTS = 16
_LONGEST_MANIFEST = 1024 * 1024
_MOST_STATES = 16  # a longer axis is one of tokens

# Where a manifest keeps ids, beside the keys of draft configs; read in ModelOpt 0.47.0 and speculators 0.9.0.
_MORE_IDS_KEYS = ("aux_layer_ids", "aux_layers", "capture_layers", "layer_ids", "target_layers")
# Whether the last state was dumped before the final norm (True), or after it: ModelOpt 0.47.0.
_BEFORE_NORM = ("base_hidden_prenorm", "hidden_states_prenorm", "last_hidden_state_prenorm", "prenorm")
_AFTER_NORM = ("last_hidden_state_normed", "last_state_normed", "normed")


@dataclass(frozen=True, slots=True)
class DumpEntry:
    """What stands under one key of a sample: a tensor, or a list of them."""

    key: str
    tensors: tuple[Tensor, ...]
    listed: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor, of a list that of its first."""
        return self.tensors[0].shape

    def __str__(self) -> str:
        return f"{len(self.tensors)} x {list(self.shape)}" if self.listed else str(list(self.shape))


@dataclass(frozen=True, slots=True)
class DumpIds:
    """The layers that a manifest says were dumped."""

    key: str
    values: tuple[int, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class DumpedAs:
    """A dump's word on its last state: whether it was taken before the final norm, and where that is said."""

    prenorm: bool
    key: str
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Dump:
    """A dump of hidden states.

    Attributes:
        path: As messages name it.
        sample: The file that was looked into; ``None`` where there is none, or it could not be read.
        entries: What the sample holds, by key.
        values: Plain values that stand beside the tensors.
        ids: The layers that were dumped, where a manifest says so.
        norm: Whether the last state was dumped before the final norm, where the sample or a manifest says so.
        problems: Sentences on files that are broken.
        notes: Sentences on what was left out.
    """

    path: str
    sample: str | None = None
    entries: Mapping[str, DumpEntry] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    ids: DumpIds | None = None
    norm: DumpedAs | None = None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def span(self) -> Span:
        """The place of a finding about the sample."""
        return Span.at(self.sample or self.path, 1)

    def states(self, target: TargetConfig) -> dict[str, tuple[int, Layout]]:
        """By key how many hidden states of the target stand there, none for other things, and how they are kept.

        A state is as wide as the target. Several are joined along the features, kept in a list, or stacked along an
        axis of their own, which stands before the features, or first of all.
        """
        node = target.text_node("hidden_size")
        width = node.value if node is not None and type(node.value) is int else 0
        found: dict[str, tuple[int, Layout]] = {}
        for key, entry in self.entries.items():
            shape = entry.shape
            is_state = width > 0 and len(shape) > 1 and shape[-1] % width == 0
            count = shape[-1] // width if is_state else 0
            if entry.listed:
                found[key] = (len(entry.tensors) * count, "listed")
            elif count == 1 and len(shape) == 3 and 1 < shape[1] <= _MOST_STATES < shape[0]:
                found[key] = (shape[1], "stacked at 1")  # [tokens, layers, features], as speculators keeps them
            elif count == 1 and len(shape) == 3 and 1 < shape[0] <= _MOST_STATES < shape[1]:
                found[key] = (shape[0], "stacked at 0")  # [layers, tokens, features]
            else:
                found[key] = (count, "joined")
        return {**{key: (0, "joined") for key in self.values}, **found}


def read_dump(path: Path, display: str) -> Dump:
    """Read a dump's first sample and its manifest; what is wrong becomes a sentence, never an exception.

    Args:
        path: The directory, or one sample.
        display: How messages name it.
    """
    if not path.exists():
        return Dump(display, problems=(f"{display} does not exist. Check --dump.",))
    if path.is_dir():
        first = _first_sample(path)
        manifests = _manifests(path, display)
    else:
        first, manifests = path, []
    problems: list[str] = []
    notes: list[str] = []
    documents = []
    for file in manifests:
        try:
            documents.append(read_json(file, _shown(file, path, display)))
        except UnreadableInput as error:
            problems.append(str(error))
    said = [_said(document) for document in documents]
    ids = next((ids for ids, _ in said if ids is not None), None)
    norm = next((norm for _, norm in said if norm is not None), None)
    if first is None:
        if ids is None and norm is None and not problems:
            problems.append(f"{display} holds no sample ({', '.join(_ENDINGS)}). Check --dump.")
        return Dump(display, ids=ids, norm=norm, problems=tuple(problems))
    shown = _shown(first, path, display)
    entries, values, wrong, pointer = _sample(first, shown)
    problems += wrong
    if pointer:
        notes.append(f"{shown} is a pointer of Git LFS and was not read. Run git lfs pull.")
    norm = norm or _flag(values, shown)
    sample = None if pointer or (wrong and not entries) else shown
    return Dump(display, sample, entries, values, ids, norm, tuple(problems), tuple(notes))


# --- samples -------------------------------------------------------------------------------------------------------


def _first_sample(directory: Path) -> Path | None:
    """The first sample in order of names, in the first directory that has one."""
    seen = 0
    for top, names, files in os.walk(directory):
        names[:] = sorted(name for name in names if not name.startswith("."))
        seen += len(files) + len(names)
        for name in sorted(files):
            if name.endswith(_ENDINGS) and not name.startswith("."):
                return Path(top) / name
        if seen > _MAX_ENTRIES:
            return None
    return None


def _shown(file: Path, path: Path, display: str) -> str:
    return display if file == path else f"{display.rstrip('/')}/{file.relative_to(path).as_posix()}"


def _sample(path: Path, display: str) -> tuple[dict[str, DumpEntry], dict[str, Any], list[str], bool]:
    """Entries and plain values of one sample, sentences on what is wrong, and whether it is a pointer of Git LFS."""
    if path.suffix == ".safetensors":
        file = read_safetensors(path, display)
        return {t.name: DumpEntry(t.name, (t,)) for t in file.tensors}, {}, list(file.problems), file.pointer
    from eaglelint.artifacts.torch_archive import read_torch_values  # what reads pickles is seldom needed

    found = read_torch_values(path, display)
    if found.problem is not None or found.pointer:
        return {}, {}, [found.problem] if found.problem else [], found.pointer
    value = found.value
    if isinstance(value, list) and value and isinstance(value[0], dict):
        value = value[0]  # a file that holds several samples
    if not isinstance(value, dict):
        value = {"": value}
    entries: dict[str, DumpEntry] = {}
    values: dict[str, Any] = {}
    for key, item in _flat(value):
        tensors = item if isinstance(item, list) else [item]
        if tensors and all(isinstance(tensor, Tensor) for tensor in tensors):
            entries[key] = DumpEntry(key, tuple(tensors), listed=isinstance(item, list))
        elif isinstance(item, bool | int | float | str):
            values[key] = item
    if not entries:
        return {}, values, [f"{display} holds no tensors that can be read without unpickling."], False
    return entries, values, [], False


def _flat(value: Mapping[Any, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The items of a dict and of those in it, nested keys joined by dots."""
    for key, item in value.items():
        name = f"{before}{key}"
        if isinstance(item, dict) and depth < 2:
            yield from _flat(item, f"{name}.", depth + 1)
        else:
            yield name, item


# --- manifests -----------------------------------------------------------------------------------------------------


def _manifests(directory: Path, display: str) -> list[Path]:
    """The small JSON files beside the samples."""
    try:
        files = sorted(file for file in directory.iterdir() if file.suffix == ".json" and file.is_file())
        return [file for file in files if file.stat().st_size <= _LONGEST_MANIFEST][:_MAX_MANIFESTS]
    except OSError:
        return []


def _said(document: Document) -> tuple[DumpIds | None, DumpedAs | None]:
    """What one manifest says of the layers and of the norm."""
    ids: DumpIds | None = None
    norm: DumpedAs | None = None
    for key, node in _nodes(document.root):
        if ids is None and (key in IDS_KEYS or key in _MORE_IDS_KEYS) and _is_ids(node):
            ids = DumpIds(key, tuple(node.value), node.span)
        if norm is None and isinstance(node.value, bool) and key in (*_BEFORE_NORM, *_AFTER_NORM):
            norm = DumpedAs(node.value == (key in _BEFORE_NORM), key, node.span)
    return ids, norm


def _is_ids(node: Node) -> bool:
    return node.kind == "array" and bool(node.elements) and all(type(e.value) is int for e in node.elements)


def _nodes(root: Node | None, depth: int = 0) -> Iterator[tuple[str, Node]]:
    if root is None or depth > 3:
        return
    for key, node in root.items():
        yield key, node
        if node.kind == "object":
            yield from _nodes(node, depth + 1)


def _flag(values: Mapping[str, Any], sample: str) -> DumpedAs | None:
    """The sample's own word on the norm, as ModelOpt writes it."""
    for key, value in values.items():
        name = key.rsplit(".", 1)[-1]
        if isinstance(value, bool) and name in (*_BEFORE_NORM, *_AFTER_NORM):
            return DumpedAs(value == (name in _BEFORE_NORM), name, Span.at(sample, 1))
    return None
