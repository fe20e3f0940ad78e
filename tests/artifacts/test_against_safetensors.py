"""What the library that engines load with accepts is read without complaint, and what it refuses is complained of."""

from __future__ import annotations

import io
from math import prod
from typing import Any

import safetensors
from hypothesis import given, settings
from hypothesis import strategies as st

from eaglelint.artifacts.safetensors_header import read_header
from eaglelint.artifacts.tensors import BIT_WIDTHS
from tests.checkpoints import header_bytes

small = st.integers(0, 4)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Headers that are right or nearly so: tensors in a row, some moved, resized, or of another shape."""
    header: dict[str, Any] = {}
    position = 0
    for name in draw(st.lists(st.sampled_from(["fc.weight", "d2t", "a", "b", "ü"]), max_size=4, unique=True)):
        dtype, shape = draw(st.sampled_from(sorted(BIT_WIDTHS))), draw(st.lists(small, max_size=3))
        size = -(-prod(shape) * BIT_WIDTHS[dtype] // 8)
        moved, grown = draw(st.sampled_from([0, 0, 0, 0, 1, -1])), draw(st.sampled_from([0, 0, 0, 0, 1]))
        begin = max(0, position + moved)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, begin + size + grown]}
        position += size
    if draw(st.booleans()):
        header["__metadata__"] = draw(st.sampled_from([{}, {"format": "pt"}, {"format": 1}, []]))
    return header_bytes(header) + bytes(max(0, position + draw(st.sampled_from([0, 0, 0, 1, -1]))))


@settings(deadline=None, derandomize=True, max_examples=400)
@given(files())
def test_the_same_files_are_right(file: bytes) -> None:
    """And the shapes are the same where they are."""
    try:
        theirs = {name: (entry["dtype"], tuple(entry["shape"])) for name, entry in safetensors.deserialize(file)}
    except safetensors.SafetensorError:
        theirs = None
    ours = read_header(io.BytesIO(file), len(file), "m")
    assert (theirs is None) == bool(ours.problems)
    if theirs is not None:
        assert {tensor.name: (tensor.dtype, tensor.shape) for tensor in ours.tensors} == theirs
