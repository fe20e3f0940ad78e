"""The first sample of a dump, as plain tensors by key. Nothing is unpickled: safetensors, or ``weights_only``."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from eaglelint.artifacts.safetensors_header import read_safetensors
from eaglelint.exceptions import UnreadableInput
from eaglelint.probe.mapped import mapped
from eaglelint.project.discovery import display_path

__all__ = ["first_sample", "read_sample"]

# SpecForge 0.2.0 (.ckpt, .ckpt.gz), ModelOpt 0.47.0 (.pt), speculators 0.9.0 and vLLM (.safetensors).
_ENDINGS = (".ckpt", ".ckpt.gz", ".pt", ".pth", ".bin", ".safetensors")
_MOST_UNPACKED = 4 * 2**30
_MOST_FILES = 100_000


def first_sample(path: Path) -> Path:
    """The file itself, or the first sample below a directory, in the order of names.

    Raises:
        UnreadableInput: There is none.
    """
    if path.is_file():
        return path
    seen = 0
    for directory, below, names in os.walk(path):
        below.sort()
        for name in sorted(names):
            if name.endswith(_ENDINGS):
                return Path(directory) / name
        seen += len(names)
        if seen > _MOST_FILES:
            break
    raise UnreadableInput(f"{display_path(path)} holds no dump: no file that ends in {', '.join(_ENDINGS)}.")


def read_sample(path: Path) -> dict[str, Any]:
    """Tensors, lists of tensors and plain values by key.

    Raises:
        UnreadableInput: The file cannot be read, or holds what only unpickling would give.
    """
    shown = display_path(path)
    try:
        if path.name.endswith(".safetensors"):
            return _from_safetensors(path, shown)
        return _checked(_from_torch(path, shown), shown)
    except OSError as error:
        raise UnreadableInput(f"{shown} cannot be read: {error.strerror or error}.") from None


def _from_safetensors(path: Path, shown: str) -> dict[str, Any]:
    found = read_safetensors(path, shown)
    if found.problems or found.pointer:
        raise UnreadableInput(found.problems[0] if found.problems else f"{shown} is a Git LFS pointer.")
    return {tensor.name: mapped(path, tensor) for tensor in found.tensors}


def _from_torch(path: Path, shown: str) -> Any:
    try:
        # Torch warns of odd pickles before it refuses them.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not path.name.endswith(".gz"):
                # Mapped where the format allows it, so that a prefix of a long sample costs its own size alone.
                return torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
            return torch.load(io.BytesIO(_unpacked(path, shown)), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise UnreadableInput(
            f"{shown} holds more than tensors and plain values; it is not unpickled. "
            "Save the sample as safetensors, or as a dict of tensors."
        ) from None
    except (RuntimeError, EOFError, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        words = str(error).strip().splitlines()
        raise UnreadableInput(
            f"{shown} cannot be read as a file of torch.save: {words[0][:160] if words else type(error).__name__}"
        ) from None


def _unpacked(path: Path, shown: str) -> bytes:
    with gzip.open(path, "rb") as file:
        data = file.read(_MOST_UNPACKED + 1)
    if len(data) > _MOST_UNPACKED:
        raise UnreadableInput(f"{shown} unpacks to more than {_MOST_UNPACKED // 2**30} GiB. Name another sample.")
    return data


def _checked(value: Any, shown: str) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise UnreadableInput(f"{shown} holds a {type(value).__name__} where a sample is a dict of tensors by name.")
    return dict(value)
