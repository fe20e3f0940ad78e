"""Tensors of a file written by ``torch.save``: names, types and shapes, never by unpickling.

Two layouts (torch 2.9, ``serialization.py``): a zip archive with ``data.pkl`` and one stored file for each storage, and
the older one, pickles in a row (magic number, protocol, system, state dict, storage keys) and the storages behind them.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from eaglelint.artifacts.pickle_reader import BrokenPickle, Call, Name, Persistent, read_pickle
from eaglelint.artifacts.tensors import LIMIT_BYTES, Tensor, TensorFile

__all__ = ["TorchValues", "read_torch", "read_torch_values"]

_MAGIC = 0x1950A86A20F9469CFC6C
_POINTER = b"version https://git-lfs.github.com/spec/"
_MAX_DEPTH = 3
_MAX_NESTING = 6
_MAX_TENSORS = 100_000

_DTYPES: Mapping[str, str] = {
    "DoubleStorage": "F64", "FloatStorage": "F32", "HalfStorage": "F16", "BFloat16Storage": "BF16",
    "LongStorage": "I64", "IntStorage": "I32", "ShortStorage": "I16", "CharStorage": "I8", "ByteStorage": "U8",
    "BoolStorage": "BOOL",
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
    "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
}  # fmt: skip
"""Torch's storage classes and dtypes in the spelling of safetensors."""

_SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}


@dataclass(frozen=True, slots=True)
class TorchValues:
    """What ``torch.save`` was given: dicts and lists of tensors and plain values; the rest is None.

    ``problem`` is a sentence that says why there is nothing; ``pointer`` a Git LFS pointer in the file's place.
    """

    value: Any = None
    problem: str | None = None
    pointer: bool = False


def read_torch(path: Path, display: str) -> TensorFile:
    """Read a file's tensors; what is wrong becomes a sentence, never an exception."""
    state, offsets, wrong = _open(path, display)
    if wrong is not None:
        return wrong
    tensors = tuple(_tensors(state, display, offsets))
    if not tensors:
        return _problem(display, "holds no tensors that can be read without unpickling. Save it as safetensors")
    return TensorFile(display, tensors)


def read_torch_values(path: Path, display: str) -> TorchValues:
    """Read what a file holds, arranged as it was saved; what is wrong becomes a sentence, never an exception."""
    state, offsets, wrong = _open(path, display)
    if wrong is not None:
        return TorchValues(problem=wrong.problems[0] if wrong.problems else None, pointer=wrong.pointer)
    return TorchValues(_plain(state, display, offsets, [_MAX_TENSORS], 0))


def _plain(value: Any, display: str, offsets: Mapping[str, int], left: list[int], depth: int) -> Any:
    """A value of the pickle with tensors in the place of the calls that rebuild them; ``left`` bounds their number."""
    left[0] -= 1
    tensor = _tensor("", value, display, offsets)
    if tensor is not None or left[0] < 0 or depth > _MAX_NESTING:
        return tensor
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item, display, offsets, left, depth + 1) for item in value[: max(0, left[0])]]
    items = _items(value)
    return {key: _plain(item, display, offsets, left, depth + 1) for key, item in items.items()} if items else None


def _open(path: Path, display: str) -> tuple[Any, Mapping[str, int], TensorFile | None]:
    """What the file's pickle describes and where its storages begin; a file with a sentence where it has none."""
    try:
        if not path.is_file():
            return None, {}, _problem(display, "is not a regular file")
        with path.open("rb") as file:
            start = file.read(len(_POINTER))
            if start == _POINTER:
                return None, {}, TensorFile(display, pointer=True)
            file.seek(0)
            if start.startswith(b"PK"):
                return *_from_zip(file, path.stat().st_size), None
            return _from_pickles(io.BytesIO(file.read(LIMIT_BYTES))), {}, None
    except OSError as error:
        return None, {}, _problem(display, f"cannot be read: {error.strerror or error}")
    except BrokenPickle as error:
        return None, {}, _problem(display, f"cannot be read as a file of torch.save: {error}. Save it as safetensors")


def _problem(display: str, rest: str) -> TensorFile:
    return TensorFile(display, problems=(f"{display} {rest}.",))


def _from_zip(file: BinaryIO, size: int) -> tuple[Any, dict[str, int]]:
    """The state dict of a zip archive, and where each of its stored storages begins."""
    _check_directory(file, size)
    try:
        with zipfile.ZipFile(file) as archive:
            names = {info.filename: info for info in archive.infolist()}
            pickle = next((name for name in names if name == "data.pkl" or name.endswith("/data.pkl")), None)
            if pickle is None:
                raise BrokenPickle("the archive has no data.pkl")
            with archive.open(names[pickle]) as member:
                text = member.read(LIMIT_BYTES + 1)
            if len(text) > LIMIT_BYTES:
                raise BrokenPickle(f"its data.pkl has more than {LIMIT_BYTES // 2**20} MiB")
            state = read_pickle(io.BytesIO(text))
            folder = pickle.removesuffix("data.pkl") + "data/"
            offsets = {
                name.removeprefix(folder): start
                for name, info in names.items()
                if name.startswith(folder)
                and info.compress_type == zipfile.ZIP_STORED
                and (start := _stored_at(file, info)) is not None
            }
            return state, offsets
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, struct.error) as error:
        raise BrokenPickle(str(error)[:120] or type(error).__name__) from None
    except Exception as error:
        # A damaged member fails in its decompressor, with that one's own kind of error.
        if type(error).__module__ in ("zlib", "_lzma", "lzma"):
            raise BrokenPickle(str(error)[:120]) from None
        raise


def _check_directory(file: BinaryIO, size: int) -> None:
    """Refuse an archive whose directory is too large to be read at once."""
    file.seek(max(0, size - 65_557))
    tail = file.read(65_557)
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or len(tail) < end + 22:
        raise BrokenPickle("the archive has no directory; the file is cut short")
    (directory,) = struct.unpack_from("<L", tail, end + 12)
    far = tail.rfind(b"PK\x06\x06", 0, end)
    if far >= 0 and len(tail) >= far + 56:
        (directory,) = struct.unpack_from("<Q", tail, far + 40)
    if directory > LIMIT_BYTES:
        raise BrokenPickle(f"its directory has more than {LIMIT_BYTES // 2**20} MiB")
    file.seek(0)


def _stored_at(file: BinaryIO, info: zipfile.ZipInfo) -> int | None:
    """Where the bytes of an uncompressed member begin: behind its local header, name and extra field."""
    file.seek(info.header_offset)
    header = file.read(30)
    if len(header) < 30 or not header.startswith(b"PK\x03\x04"):
        return None
    name, extra = struct.unpack_from("<HH", header, 26)
    return info.header_offset + 30 + int(name) + int(extra)


def _from_pickles(file: io.BytesIO) -> Any:
    if read_pickle(file) != _MAGIC:
        raise BrokenPickle("it is neither a zip archive nor torch's older format")
    read_pickle(file)  # protocol
    read_pickle(file)  # system
    return read_pickle(file)


def _tensors(state: Any, display: str, offsets: Mapping[str, int]) -> Iterator[Tensor]:
    """The tensors of the innermost dictionary that holds any: trainers wrap the state dict in one of their own."""
    level = [_items(state)]
    for _ in range(_MAX_DEPTH):
        for items in level:
            found = [
                tensor
                for name, value in list(items.items())[:_MAX_TENSORS]
                if isinstance(name, str) and (tensor := _tensor(name, value, display, offsets)) is not None
            ]
            if found:
                yield from found
                return
        level = [inner for items in level for value in list(items.values())[:64] if (inner := _items(value))][:64]


def _items(value: Any) -> dict[Any, Any]:
    if isinstance(value, Call):
        return value.items
    return value if isinstance(value, dict) else {}


def _tensor(name: str, value: Any, display: str, offsets: Mapping[str, int]) -> Tensor | None:
    """A tensor that the pickle would rebuild: ``_rebuild_tensor_v2(storage, offset, size, stride, ...)``."""
    for _ in range(_MAX_DEPTH):
        if not isinstance(value, Call) or not isinstance(value.function, Name):
            return None
        if value.function.name not in ("_rebuild_parameter", "_rebuild_parameter_with_state"):
            break
        value = value.args[0] if value.args else None
    if not isinstance(value, Call) or not isinstance(value.function, Name):
        return None
    if value.function.name not in ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3"):
        return None
    if len(value.args) < 4:
        return None
    storage, first, shape, stride = value.args[:4]
    dtype, key = _storage(storage)
    if value.function.name == "_rebuild_tensor_v3" and len(value.args) > 6 and isinstance(value.args[6], Name):
        dtype = _DTYPES.get(value.args[6].name, dtype)
    if not isinstance(shape, tuple) or len(shape) > 64 or not all(type(n) is int and 0 <= n < 2**63 for n in shape):
        return None
    start = offsets.get(key) if key is not None else None
    if start is not None and type(first) is int and 0 <= first < 2**63 and _contiguous(shape, stride):
        start += first * _SIZES.get(dtype, 0) if first else 0
    else:
        start = None
    return Tensor(name, dtype, shape, display, start)


def _storage(storage: Any) -> tuple[str, str | None]:
    """Type and key of ``('storage', torch.FloatStorage, '0', 'cpu', 1024)``."""
    found = storage.id if isinstance(storage, Persistent) else None
    if not isinstance(found, tuple) or len(found) < 3 or not isinstance(found[1], Name):
        return "unknown", None
    return _DTYPES.get(found[1].name, "unknown"), found[2] if isinstance(found[2], str) else None


def _contiguous(shape: tuple[int, ...], stride: Any) -> bool:
    if not isinstance(stride, tuple) or len(stride) != len(shape):
        return False
    expected = 1
    for length, step in zip(reversed(shape), reversed(stride), strict=True):
        if length != 1 and step != expected:
            return False
        expected *= length
    return True
