"""Tensors of a checkpoint, mapped from their files: nothing is unpickled, and only what is touched is read."""

from __future__ import annotations

from pathlib import Path

import torch

from eaglelint.artifacts.tensors import BIT_WIDTHS, Tensor
from eaglelint.exceptions import UnreadableInput
from eaglelint.probe.device import dtype_of

__all__ = ["mapped"]


def mapped(path: Path, tensor: Tensor) -> torch.Tensor:
    """The tensor's values, on the CPU.

    Raises:
        UnreadableInput: They do not lie plainly in the file, or in a type that torch has not.
    """
    dtype = dtype_of(tensor.dtype)
    if dtype is None or tensor.start is None:
        raise UnreadableInput(f"{tensor.path}: the values of {tensor.name} ({tensor.dtype}) cannot be mapped.")
    size = tensor.numel * BIT_WIDTHS[tensor.dtype] // 8
    try:
        there = path.stat().st_size
        if tensor.start + size > there:
            raise UnreadableInput(f"{tensor.path} is cut short: {tensor.name} ends behind its {there} bytes.")
        # A private mapping: pages are read as they are touched, and the file is never written.
        whole = torch.from_file(str(path), shared=False, size=there, dtype=torch.uint8)
    except (OSError, RuntimeError) as error:
        raise UnreadableInput(f"{tensor.path} cannot be mapped: {error}") from None
    data = whole[tensor.start : tensor.start + size]
    if tensor.start % dtype.itemsize:
        data = data.clone()
    return data.view(dtype).view(tensor.shape)
