"""What torch's functions do to states, by name: keep their coordinates apart, scale them, add them."""

from __future__ import annotations

__all__ = ["ADDING", "CASTS", "KEEPING", "SCALING"]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


KEEPING = _names(
    """
    __get__ __set__ __setitem__ __getitem__ size dim numel element_size is_contiguous stride storage_offset data_ptr
    is_floating_point is_complex get_device clone contiguous view reshape flatten unflatten squeeze unsqueeze view_as
    reshape_as expand expand_as cat concat concatenate stack split tensor_split chunk narrow select unbind
    index_select gather transpose permute movedim swapaxes t detach to type type_as float double half bfloat16 cpu
    cuda copy_ add add_ sub sub_ rsub neg neg_ __add__ __iadd__ __radd__ __sub__ __isub__ __rsub__ sum
    zero_ zeros_like empty_like new_empty new_zeros record_stream index_copy_ repeat repeat_interleave pad hsplit
    vsplit dsplit requires_grad_ _make_subclass is_cuda roll masked_select __len__ __repr__ __hash__ __format__
    untyped_storage is_inference is_pinned pin_memory flip resize_ set_ unsafe_split unsafe_chunk atleast_2d
    atleast_3d ravel T mT equal allclose
    """
)
"""These are torch's own in a run."""

CASTS = _names("to type type_as float double half bfloat16 cpu cuda contiguous pin_memory")
"""These leave a state as it is: it is exact in float64 alone."""

SCALING = _names("mul mul_ multiply div div_ divide true_divide __mul__ __imul__ __rmul__ __truediv__ __itruediv__")
"""These are torch's own where the other side is a number."""

ADDING = _names(
    """
    add add_ sub sub_ rsub __add__ __iadd__ __radd__ __sub__ __isub__ __rsub__ cat concat concatenate stack copy_
    __setitem__ index_copy_
    """
)
"""In these a stand-in beside a state is a state."""
