"""Some rows of a draft's embedding or head beside those of its target's: whether one was made from the other."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from eaglelint.artifacts.checkpoint import Checkpoint, Tensor
from eaglelint.artifacts.tensor_values import read_rows

__all__ = ["EMBEDDING", "HEAD", "EmbeddingRows", "read_beside"]

EMBEDDING, HEAD = "embed_tokens.weight", "lm_head.weight"
_ALIKE = 1 / 128  # bfloat16 keeps eight bits of a number
_ROWS = 8


@dataclass(frozen=True, slots=True)
class EmbeddingRows:
    """Rows that stand at the same place in both embeddings, or in both heads.

    Attributes:
        draft: The draft's tensor.
        target: The target's.
        rows: Which rows were compared.
        cosines: How alike each pair is: 1 the same up to a factor, about 0 unrelated.
        norms: The lengths of the draft's rows and of the target's.
    """

    draft: Tensor
    target: Tensor
    rows: tuple[int, ...]
    cosines: tuple[float, ...]
    norms: tuple[tuple[float, float], ...]

    @property
    def same(self) -> bool:
        """Whether each pair is one row, but for the rounding of another type."""
        pairs = zip(self.cosines, self.norms, strict=True)
        return all(
            abs(own - other) <= _ALIKE * max(own, other) and (cosine >= 1 - _ALIKE or not own)
            for cosine, (own, other) in pairs
        )


def read_beside(draft: Checkpoint | None, target: Checkpoint | None, name: str) -> EmbeddingRows | None:
    """Compare a few rows; ``None`` where one tensor is missing, or they differ in width or cannot be read."""
    if draft is None or target is None:
        return None
    own, other = draft.find(name), target.find(name)
    if own is None or other is None or len(own.shape) != 2 or len(other.shape) != 2 or own.shape[1] != other.shape[1]:
        return None
    height = min(own.shape[0], other.shape[0])
    rows = tuple(sorted({height * position // (_ROWS + 1) for position in range(1, _ROWS + 1)}))
    left = read_rows(draft.files[own.path], own, rows)
    right = read_rows(target.files[other.path], other, rows)
    if left is None or right is None or not rows:
        return None
    norms = tuple((_norm(a), _norm(b)) for a, b in zip(left, right, strict=True))
    cosines = tuple(
        sum(x * y for x, y in zip(a, b, strict=True)) / (n * m) if n * m else 0.0
        for a, b, (n, m) in zip(left, right, norms, strict=True)
    )
    return EmbeddingRows(own, other, rows, cosines, norms)


def _norm(row: tuple[float, ...]) -> float:
    return sqrt(sum(value * value for value in row))
