"""Writes small checkpoints for tests: headers that are real, values that are zero unless given."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from eaglelint.artifacts.tensors import BIT_WIDTHS

__all__ = ["header_bytes", "tensors_from_text", "write_safetensors"]

Spec = tuple[str, Sequence[int]] | tuple[str, Sequence[int], Sequence[float]]

_CODES = {"I64": "q", "I32": "i", "U8": "B", "BOOL": "B", "F32": "f", "F16": "e"}


def header_bytes(header: Any) -> bytes:
    """Length and header, as a safetensors file begins."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text


def write_safetensors(path: Path, tensors: Mapping[str, Spec], metadata: Mapping[str, str] | None = None) -> Path:
    """A file with these tensors, each ``(dtype, shape)`` or ``(dtype, shape, values)``; without values a hole is left.

    A hole takes no room on disk, so a tensor may have the size that a real one has.
    """
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    position = 0
    contents: list[tuple[int, bytes]] = []
    for name, (dtype, shape, *values) in tensors.items():
        size = prod(shape) * BIT_WIDTHS[dtype] // 8
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [position, position + size]}
        if values:
            contents.append((position, _packed(dtype, values[0])))
        position += size
    start = header_bytes(header)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(start)
        for offset, data in contents:
            file.seek(len(start) + offset)
            file.write(data)
        file.truncate(len(start) + position)
    return path


def _packed(dtype: str, values: Sequence[float]) -> bytes:
    if dtype == "BF16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    return struct.pack(f"<{len(values)}{_CODES[dtype]}", *values)


def tensors_from_text(text: str) -> dict[str, Spec]:
    """Tensors as a rule's page shows them, ``{"fc.weight": "BF16 [4096, 12288]", "d2t": {"I64": [0, 0, 1]}}``.

    Values are a list, or rows of a matrix: ``{"F32": {"rows": [[0.1, 0.2], [0.3, 0.4]]}}``.
    """
    found: dict[str, Spec] = {}
    for name, shown in json.loads(text).items():
        if isinstance(shown, str):
            dtype, _, shape = shown.partition(" ")
            found[name] = (dtype, json.loads(shape))
        else:
            ((dtype, values),) = shown.items()
            found[name] = (dtype, [len(values)], values) if isinstance(values, list) else _matrix(dtype, values)
    return found


def _matrix(dtype: str, shown: Mapping[str, Any]) -> Spec:
    rows = shown["rows"]
    return dtype, [len(rows), len(rows[0])], [value for row in rows for value in row]
