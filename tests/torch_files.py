"""Writes files as ``torch.save`` does, without torch: Python's own pickler, and stand-ins under torch's names."""

from __future__ import annotations

import io
import pickle
import struct
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["legacy_bytes", "sample_pickle", "state_dict_pickle", "write_zip"]

Shapes = Mapping[str, tuple[str, Sequence[int]]]

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL_VERSION = 1001


class _Storage:
    def __init__(self, kind: type, key: str, numel: int) -> None:
        self.kind, self.key, self.numel = kind, key, numel


class _Tensor:
    """Reduces as ``torch.Tensor.__reduce_ex__`` does (torch 2.9, ``_tensor.py``)."""

    def __init__(self, rebuild: Any, storage: _Storage, shape: Sequence[int]) -> None:
        self.rebuild, self.storage, self.shape = rebuild, storage, tuple(shape)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, tuple[Any, ...]]:
        strides = tuple(prod(self.shape[index + 1 :]) for index in range(len(self.shape)))
        return self.rebuild, (self.storage, 0, self.shape, strides, False, OrderedDict())


class _Pickler(pickle.Pickler):
    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, _Storage):
            return ("storage", value.kind, value.key, "cpu", value.numel)
        return None


@contextmanager
def _torch() -> Iterator[tuple[ModuleType, Any]]:
    """Modules under torch's names, so that the pickler can name what is in them."""
    torch, utils = ModuleType("torch"), ModuleType("torch._utils")

    def rebuild(*args: Any) -> None:
        raise AssertionError("a pickle was loaded")

    rebuild.__module__, rebuild.__qualname__, rebuild.__name__ = ("torch._utils", *["_rebuild_tensor_v2"] * 2)
    utils._rebuild_tensor_v2 = rebuild  # type: ignore[attr-defined]
    before = {name: sys.modules.get(name) for name in ("torch", "torch._utils")}
    sys.modules.update({"torch": torch, "torch._utils": utils})
    try:
        yield torch, rebuild
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _dump(value: Any) -> bytes:
    file = io.BytesIO()
    _Pickler(file, protocol=2).dump(value)
    return file.getvalue()


def state_dict_pickle(tensors: Shapes, *, wrapped_in: str | None = None) -> bytes:
    """An OrderedDict of tensors, ``{"fc.weight": ("BFloat16Storage", [2, 6])}``, maybe below a key of a trainer's."""
    with _torch() as (torch, rebuild):
        state: Any = OrderedDict()
        for number, (name, (storage, shape)) in enumerate(tensors.items()):
            kind = type(storage, (), {"__module__": "torch"})
            setattr(torch, storage, torch.__dict__.get(storage, kind))
            state[name] = _Tensor(rebuild, _Storage(getattr(torch, storage), str(number), prod(shape)), shape)
        return _dump(state if wrapped_in is None else {"epoch": 3, wrapped_in: state})


def sample_pickle(value: Any) -> bytes:
    """A dict of tensors, ``("FloatStorage", [2, 6])``, lists of them and plain values, as a dump's sample is saved."""
    with _torch() as (torch, rebuild):
        count = 0

        def saved(item: Any) -> Any:
            nonlocal count
            if isinstance(item, tuple):
                storage, shape = item
                count += 1
                kind = torch.__dict__.get(storage) or type(storage, (), {"__module__": "torch"})
                setattr(torch, storage, kind)
                return _Tensor(rebuild, _Storage(kind, str(count), prod(shape)), shape)
            if isinstance(item, list):
                return [saved(inner) for inner in item]
            return {key: saved(inner) for key, inner in item.items()} if isinstance(item, dict) else item

        return _dump(saved(value))


def write_zip(path: Path, pickle: bytes, storages: Mapping[str, bytes] | None = None) -> Path:
    """The layout of torch since 1.6: stored members below a folder."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", pickle)
        archive.writestr("archive/version", b"3\n")
        for key, data in (storages or {}).items():
            archive.writestr(f"archive/data/{key}", data)
    return path


def legacy_bytes(pickle: bytes) -> bytes:
    """The layout before: pickles in a row, and the storages behind them."""
    system = {
        "protocol_version": _PROTOCOL_VERSION,
        "little_endian": True,
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    parts = (_MAGIC, _PROTOCOL_VERSION, system)
    return b"".join(map(_dump, parts)) + pickle + _dump(["0", "1"]) + struct.pack("<q", 0)
