"""What two values become where two paths meet again."""

from __future__ import annotations

from eaglelint.source.same import Meeting
from eaglelint.source.values import Branch, Norm, Tensor


def test_branches_of_branches_keep_short_names() -> None:
    """Each meeting names what it joins; 60 of them, each of what the one before gave, do not double it 60 times."""
    meeting = Meeting(0, "a condition")
    state, others = Tensor.of(Branch(0, 0, "mlp")), []
    for serial in range(60):
        left, right = (Tensor.of(Norm(Tensor(state.terms | {Branch(0, serial, side)}))) for side in ("attn", "moe"))
        state = meeting.join(left, right)
        others.append(meeting.join(right, Tensor.of(Branch(0, serial, "other"))))
    names = [term.what for tensor in (state, *others) for term in tensor.terms if isinstance(term, Branch)]
    assert max(map(len, names)) < 1_000
    assert len(set(names)) == len(names) == 61
