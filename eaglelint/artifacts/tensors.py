"""What a checkpoint says of one tensor: name, element type, shape, and where its values lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

__all__ = ["BIT_WIDTHS", "FLOAT_TYPES", "LIMIT_BYTES", "Tensor", "TensorFile"]

BIT_WIDTHS: Mapping[str, int] = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F16": 16, "BF16": 16, "F32": 32, "F64": 64, "C64": 64,
}  # fmt: skip
"""Bits of one element by the type's name in a safetensors header (safetensors 0.8, ``tensor.rs``)."""

FLOAT_TYPES = frozenset({"F16", "BF16", "F32", "F64"})
"""Types in which a weight is stored as it is; every other type may be packed, scaled or quantised."""

LIMIT_BYTES = 16 * 1024 * 1024
"""Most bytes of a header, an index or a pickle that are read; a draft's have some ten kilobytes."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor, without its values.

    Attributes:
        name: As the checkpoint names it.
        dtype: In the spelling of safetensors, ``BF16``; of legacy files translated to that.
        shape: Its dimensions; empty for a scalar.
        path: The file that holds it, as messages name it.
        start: Offset in that file of its first value; ``None`` where the values do not lie there plainly.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    path: str
    start: int | None = None

    def __str__(self) -> str:
        return f"{self.name} {self.dtype} {list(self.shape)}"

    @property
    def numel(self) -> int:
        return prod(self.shape)

    @property
    def is_plain(self) -> bool:
        """Whether its shape is that of the weight: a packed or quantised weight has another one."""
        return self.dtype in FLOAT_TYPES


@dataclass(frozen=True, slots=True)
class TensorFile:
    """What one file of a checkpoint holds.

    ``problems`` are sentences on what is wrong with the file; tensors that are sure in spite of it are still there.
    ``pointer`` says that a Git LFS pointer lies in the weights' place.
    """

    path: str
    tensors: tuple[Tensor, ...] = ()
    problems: tuple[str, ...] = ()
    pointer: bool = False
