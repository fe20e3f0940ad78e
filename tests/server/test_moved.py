"""What is known of an earlier text stands on the same words in the new one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eaglelint.finding import Edit, Finding, Position, Related, Span
from eaglelint.server.check import Checked
from eaglelint.server.moved import moved

WORDS = st.text("ab\n ", max_size=20)


def position(text: str, offset: int) -> Position:
    return Position(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def known(text: str, word: str) -> Checked:
    start = text.index(word)
    span = Span("a.py", position(text, start), position(text, start + len(word)))
    edit = Edit("safe", span, "x", "")
    related = (Related("served", "", span), Related("trained", "", Span("b.py", Position(1, 1))))
    return Checked("a.py", (Finding("CAP002", "x", "error", "certain", "", span, related=related, edits=(edit,)),))


@given(WORDS, WORDS, WORDS, WORDS)
def test_a_mark_stays_on_its_word(before: str, after: str, new_before: str, new_after: str) -> None:
    """Whatever is typed or removed on one side of it, in the same line or in others."""
    text = f"{before}WORD{after}"
    for changed in (f"{new_before}WORD{after}", f"{before}WORD{new_after}"):
        (finding,) = moved(known(text, "WORD"), text, changed).findings
        (expected,) = known(changed, "WORD").findings
        assert (finding.span, finding.related[0].span) == (expected.span, expected.span)
        assert finding.related[1].span.path == "b.py"


@given(WORDS, WORDS)
def test_a_mark_stays_in_the_text(before: str, after: str) -> None:
    """Also where its word is gone; and no edit is left that was made for the old text."""
    text = f"{before}WORD{after}"
    (finding,) = moved(known(text, "WORD"), text, f"{before}{after}").findings
    lines = f"{before}{after}".split("\n")
    assert finding.span.end is not None
    for place in (finding.span.start, finding.span.end):
        assert 1 <= place.line <= len(lines) and 1 <= place.column <= len(lines[place.line - 1]) + 1
    assert finding.edits == ()
