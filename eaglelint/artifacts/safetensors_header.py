"""The header of a safetensors file: names, types and shapes, read within bounds and without the weights.

The format: eight bytes with the header's length, the header (one JSON object), the values. See ``tensor.rs`` of
safetensors 0.8, whose checks are made here too: a file that fails one of them is loaded by no engine.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, BinaryIO

from eaglelint.artifacts.tensors import BIT_WIDTHS, LIMIT_BYTES, Tensor, TensorFile

__all__ = ["MAX_TENSORS", "SIZE_SUFFIX", "read_header", "read_safetensors"]

MAX_TENSORS = 100_000
"""Most tensors of one file; with it the memory that a header can ask for is bounded."""

_POINTER = b"version https://git-lfs.github.com/spec/"
_METADATA = "__metadata__"
SIZE_SUFFIX = ".eaglelint-size"
"""Behind the name of a file that was fetched up to the end of its header: the size of the whole is in there."""


class _Broken(Exception):
    """The header cannot be trusted at all; the message is the rest of a sentence."""


def read_safetensors(path: Path, display: str) -> TensorFile:
    """Read the header of a file; what is wrong becomes a sentence, never an exception."""
    try:
        if not path.is_file():
            return _problem(display, "is not a regular file")
        with path.open("rb") as file:
            return read_header(file, _whole_size(path) or path.stat().st_size, display)
    except OSError as error:
        return _problem(display, f"cannot be read: {error.strerror or error}")


def _whole_size(path: Path) -> int | None:
    """The size of the file of which only the header was fetched."""
    try:
        text = path.with_name(f"{path.name}{SIZE_SUFFIX}").read_bytes()[:20]
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def read_header(file: BinaryIO, size: int, display: str) -> TensorFile:
    """Read the header from a file of ``size`` bytes that stands at its beginning."""
    start = file.read(len(_POINTER))
    if start == _POINTER:
        return TensorFile(display, pointer=True)
    if len(start) < 8 or size < 8:
        return _problem(display, f"is no safetensors file: it has {size} bytes. Download it again")
    length = int.from_bytes(start[:8], "little")
    if length > size - 8:
        return _problem(
            display,
            f"is cut short or no safetensors file: it says that its header has {length} bytes, and {size - 8} follow. "
            "Download it again",
        )
    if length > LIMIT_BYTES:
        return _problem(display, f"has a header of {length} bytes; more than {LIMIT_BYTES // 2**20} MiB are not read")
    text = (start[8:] + file.read(max(0, length - len(start) + 8)))[:length]
    try:
        entries = _entries(text)
        tensors, problems = _tensors(entries, size - 8 - length, 8 + length, display)
    except _Broken as broken:
        return _problem(display, f"has a broken safetensors header: {broken}. Save or download it again")
    return TensorFile(display, tensors, tuple(f"{display}: {problem}." for problem in problems))


def _problem(display: str, rest: str) -> TensorFile:
    return TensorFile(display, problems=(f"{display} {rest}.",))


def _entries(text: bytes) -> dict[str, Any]:
    # Counted first: what JSON is read into can be many times larger than its text.
    if text.count(b"{") > MAX_TENSORS + 2 or text.count(b"[") > 2 * MAX_TENSORS or text.count(b",") > 8 * MAX_TENSORS:
        raise _Broken(f"more than {MAX_TENSORS:,} tensors")
    if not text.lstrip(b" \t\r\n").startswith(b"{"):
        raise _Broken("it does not begin with {")
    try:
        header = json.loads(text, object_pairs_hook=_without_duplicates)
    except UnicodeDecodeError:
        raise _Broken("it is not UTF-8") from None
    except RecursionError:
        raise _Broken("it is nested too deeply") from None
    except ValueError as error:
        raise _Broken(f"it is not JSON ({error})") from None
    assert isinstance(header, dict)
    metadata = header.get(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise _Broken(f"{_METADATA} is no object of texts")
    return header


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _Broken(f"{_shown(twice)} stands in it twice")
    return found


def _tensors(
    entries: dict[str, Any], size: int, data_start: int, display: str
) -> tuple[tuple[Tensor, ...], tuple[str, ...]]:
    tensors: list[Tensor] = []
    stretches: list[tuple[int, int, str]] = []
    problems: list[str] = []
    for name, entry in entries.items():
        if name == _METADATA:
            continue
        dtype, shape, begin, end = _entry(name, entry)
        tensor = Tensor(name, dtype, shape, display, data_start + begin)
        tensors.append(tensor)
        stretches.append((begin, end, name))
        bits = BIT_WIDTHS.get(dtype)
        if bits is not None and tensor.numel * bits != 8 * (end - begin):
            problems.append(
                f"{_shown(name)} is {dtype} {list(shape)[:8]} and takes {end - begin} bytes where that has "
                f"{tensor.numel * bits // 8}"
            )
    problems += _layout(sorted(stretches), size)
    return tuple(tensors), tuple(problems[:5])


def _entry(name: str, entry: Any) -> tuple[str, tuple[int, ...], int, int]:
    if not isinstance(entry, dict):
        raise _Broken(f"{_shown(name)} is no object")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or len(dtype) > 32:
        raise _Broken(f"{_shown(name)} has no dtype")
    if not isinstance(shape, list) or len(shape) > 64 or not all(_is_size(length) for length in shape):
        raise _Broken(f"{_shown(name)} has no shape")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(_is_size(offset) for offset in offsets):
        raise _Broken(f"{_shown(name)} has no data_offsets")
    if offsets[0] > offsets[1]:
        raise _Broken(f"{_shown(name)} ends before it begins")
    return dtype, tuple(shape), offsets[0], offsets[1]


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _layout(stretches: list[tuple[int, int, str]], size: int) -> list[str]:
    """What is wrong with where the values lie: they must fill the rest of the file without gap or overlap."""
    expected = 0
    for begin, end, name in stretches:
        if begin < expected:
            return [f"the values of {_shown(name)} overlap those before it"]
        if begin > expected:
            return [f"{begin - expected} bytes before {_shown(name)} belong to no tensor"]
        expected = end
    if expected > size:
        return [f"the file is cut short: its tensors take {expected} bytes, and {size} are there. Download it again"]
    if expected < size:
        return [f"{size - expected} bytes at its end belong to no tensor"]
    return []


def _shown(name: str) -> str:
    return name if len(name) <= 80 and name.isprintable() else ascii(name[:80])
