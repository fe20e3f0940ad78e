"""Where a probe runs, in which type, and what it took."""

from __future__ import annotations

import os
from typing import Any

import torch

from eaglelint.exceptions import WrongUsage

__all__ = ["DTYPES", "choose_device", "dtype_of", "machine_memory", "peak_memory"]

DTYPES = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32, "F64": torch.float64}
"""Types that are multiplied, by their names in a safetensors header."""

_OTHERS = {
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
    "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2,
}  # fmt: skip


def choose_device(name: str, *, values: bool) -> torch.device:
    """The device for ``auto``, ``cuda``, ``cpu`` or ``meta``.

    Args:
        name: What was asked for. ``auto`` is the meta device where shapes are enough, else a GPU, else the CPU.
        values: Whether values matter, so that the meta device will not do.

    Raises:
        WrongUsage: There is no such device here, or it cannot do what is asked.
    """
    if name == "auto":
        return torch.device(("cuda" if torch.cuda.is_available() else "cpu") if values else "meta")
    if name == "meta" and values:
        raise WrongUsage("--device meta has no values: take --device cpu or cuda for --weights and --dump.")
    if name == "cuda" and not torch.cuda.is_available():
        raise WrongUsage("--device cuda: torch sees no GPU here. Take --device cpu, or meta where shapes are enough.")
    return torch.device(name)


def dtype_of(name: str) -> torch.dtype | None:
    """A type by its name in a safetensors header."""
    return DTYPES.get(name) or _OTHERS.get(name)


def machine_memory() -> int:
    """Bytes of memory that the machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return 16 * 2**30


def peak_memory(device: torch.device) -> int:
    """Most bytes that the device has held since the process began; the process's own size where it is the CPU."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    if device.type == "meta":
        return 0
    try:
        import resource
    except ImportError:  # Windows
        return 0
    import sys

    used: Any = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(used) * (1 if sys.platform == "darwin" else 1024)
