"""What two values become where two paths meet again."""

from __future__ import annotations

import pytest

from eaglelint.source.same import Meeting, NotJoinable, join
from eaglelint.source.values import Branch, Norm, Tensor, Unknown


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


def test_a_number_that_is_a_text_on_the_other_path_counts_nothing() -> None:
    """The name of a module, 0 or model.0, becomes unknown; a number that may be anything else keeps the paths apart."""
    text = Unknown("a string built at run time", present=True, text=True)
    for left, right in ((0, text), (text, 0), (0, "model.0")):
        assert isinstance(join(left, right), Unknown)
    for other in (1, Unknown("anything")):
        with pytest.raises(NotJoinable):
            join(0, other)
