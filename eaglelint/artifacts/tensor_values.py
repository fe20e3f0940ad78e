"""Values of small tensors, read by offset: token maps as integers, a few rows of an embedding as numbers."""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from eaglelint.artifacts.tensors import BIT_WIDTHS, Tensor

__all__ = ["MAX_VALUES", "read_integers", "read_rows"]

MAX_VALUES = 1 << 20
"""Most values of one tensor that are read; the largest vocabularies have a quarter of that."""

_INTEGERS = {"I64": "q", "I32": "i", "I16": "h", "I8": "b", "U8": "B", "BOOL": "B"}


def read_integers(path: Path, tensor: Tensor) -> Sequence[int] | None:
    """The values of an integer or boolean tensor, flat; ``None`` where they cannot be read.

    Args:
        path: The file that holds the tensor.
        tensor: One with at most :data:`MAX_VALUES` values.
    """
    code = _INTEGERS.get(tensor.dtype)
    if code is None or tensor.start is None or tensor.numel > MAX_VALUES:
        return None
    size = BIT_WIDTHS[tensor.dtype] // 8 * tensor.numel
    data = _read(path, [(tensor.start, size)])
    if data is None:
        return None
    values = array(code, data[0])
    if sys.byteorder == "big":
        values.byteswap()
    return values


def read_rows(path: Path, tensor: Tensor, rows: Sequence[int]) -> tuple[tuple[float, ...], ...] | None:
    """Rows of a plain matrix as numbers; ``None`` where they cannot be read."""
    if not tensor.is_plain or len(tensor.shape) != 2 or tensor.start is None:
        return None
    height, width = tensor.shape
    if width * len(rows) > MAX_VALUES or any(not 0 <= row < height for row in rows):
        return None
    size = BIT_WIDTHS[tensor.dtype] // 8 * width
    data = _read(path, [(tensor.start + row * size, size) for row in rows])
    return None if data is None else tuple(_numbers(row, tensor.dtype) for row in data)


def _numbers(data: bytes, dtype: str) -> tuple[float, ...]:
    if dtype == "BF16":
        # A bfloat16 is the upper half of a float32.
        wide = b"".join(b"\0\0" + data[at : at + 2] for at in range(0, len(data), 2))
        return struct.unpack(f"<{len(wide) // 4}f", wide)
    code = {"F16": "e", "F32": "f", "F64": "d"}[dtype]
    return struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)


def _read(path: Path, stretches: Sequence[tuple[int, int]]) -> list[bytes] | None:
    """Stretches of a file as (offset, size); ``None`` where one does not lie in it."""
    try:
        with path.open("rb") as file:
            found = [_stretch(file, offset, size) for offset, size in stretches]
    except (OSError, OverflowError, ValueError):
        return None
    return [data for data in found if data is not None] if None not in found else None


def _stretch(file: BinaryIO, offset: int, size: int) -> bytes | None:
    file.seek(offset)
    data = file.read(size)
    return data if len(data) == size else None
