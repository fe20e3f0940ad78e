"""Writes files as ``torch.save`` does, without torch: the pickle is put together opcode by opcode."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path

__all__ = ["legacy_bytes", "state_dict_pickle", "write_zip"]

Shapes = Mapping[str, tuple[str, Sequence[int]]]

_MAGIC = b"\x80\x02\x8a\x0a" + (0x1950A86A20F9469CFC6C).to_bytes(10, "little") + b"."


def _text(value: str) -> bytes:
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def _integer(value: int) -> bytes:
    return b"K" + bytes([value]) if value < 256 else b"J" + struct.pack("<i", value)


def _integers(values: Sequence[int]) -> bytes:
    return b"(" + b"".join(map(_integer, values)) + b"t"


def _tensor(key: str, storage: str, shape: Sequence[int]) -> bytes:
    """``_rebuild_tensor_v2(storage, 0, shape, stride, False, OrderedDict())`` as torch 2.9 pickles it."""
    strides = [prod(shape[index + 1 :]) for index in range(len(shape))]
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + b"("
        + _text("storage")
        + f"ctorch\n{storage}\n".encode()
        + _text(key)
        + _text("cpu")
        + _integer(prod(shape))
        + b"tQ"
        + _integer(0)
        + _integers(shape)
        + _integers(strides)
        + b"\x89ccollections\nOrderedDict\n)RtR"
    )


def state_dict_pickle(tensors: Shapes, *, wrapped_in: str | None = None) -> bytes:
    """An OrderedDict of tensors, ``{"fc.weight": ("BFloat16Storage", [2, 6])}``, maybe below a key of a trainer's."""
    body = b"ccollections\nOrderedDict\n)R("
    for number, (name, (storage, shape)) in enumerate(tensors.items()):
        body += _text(name) + _tensor(str(number), storage, shape)
    body += b"u"
    if wrapped_in is not None:
        body = b"}(" + _text("epoch") + _integer(3) + _text(wrapped_in) + body + b"u"
    return b"\x80\x02" + body + b"."


def write_zip(path: Path, pickle: bytes, storages: Mapping[str, bytes] | None = None) -> Path:
    """The layout of torch since 1.6: stored members below a folder."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", pickle)
        archive.writestr("archive/version", b"3\n")
        for key, data in (storages or {}).items():
            archive.writestr(f"archive/data/{key}", data)
    return path


def legacy_bytes(pickle: bytes) -> bytes:
    """The layout before: pickles in a row."""
    protocol = b"\x80\x02M\xe9\x03."
    system = b"\x80\x02}(" + _text("little_endian") + b"\x88u."
    keys = b"\x80\x02]" + b"."
    return _MAGIC + protocol + system + pickle + keys
