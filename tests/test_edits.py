"""Edits change what they name and nothing else, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eaglelint.artifacts.json_nodes import SourceText
from eaglelint.edits import applicable_edits, apply_edits
from eaglelint.finding import Edit, Finding, Position, Safety, Span


def edit(
    start: tuple[int, int], end: tuple[int, int], text: str, safety: Safety = "safe", path: str = "c.json"
) -> Edit:
    return Edit(safety, Span(path, Position(*start), Position(*end)), text, "")


def finding(*edits: Edit) -> Finding:
    return Finding("CAP002", "boundary-mismatch", "error", "certain", "", Span.at("c.json", 1), edits=edits)


def test_a_replacement_keeps_what_stands_around_it() -> None:
    """Line ends, a byte order mark, tabs and a missing last newline stay."""
    text = b'\xef\xbb\xbf{\r\n\t"ids": [1, 2],\r\n\t"name": "\xc3\xa4\xf0\x9f\xa6\x85" }'
    assert apply_edits(text, [edit((2, 9), (2, 15), "[3]")]) == text.replace(b"[1, 2]", b"[3]")


def test_columns_count_characters() -> None:
    """An edit behind characters of two, three and four bytes lands where an editor shows it."""
    text = '{"ä€🦅": 1, "ids": 2}'.encode()
    assert apply_edits(text, [edit((1, 19), (1, 20), "[3]")]) == '{"ä€🦅": 1, "ids": [3]}'.encode()


@given(
    st.text(st.characters(blacklist_categories=["Cs"]), max_size=60).filter(lambda text: not text.startswith("\ufeff")),
    st.lists(st.tuples(st.integers(0, 60), st.text(max_size=5)), max_size=6),
)
def test_edits_are_the_replacements_by_hand(text: str, cuts: list[tuple[int, str]]) -> None:
    """Made at any places at once, edits give what replacing stretch by stretch from behind gives."""
    data = text.encode(errors="surrogateescape")
    source = SourceText("c.json", data)
    places = sorted({min(place, len(text)) for place, _ in cuts})
    stretches = list(zip(places[::2], places[1::2], (new for _, new in cuts), strict=False))
    expected = text
    for start, end, new in reversed(stretches):
        expected = expected[:start] + new + expected[end:]
    edits = [
        Edit("safe", source.span(len(text[:start].encode()), len(text[:end].encode())), new, "")
        for start, end, new in stretches
    ]
    assert apply_edits(data, edits).decode() == expected


@pytest.mark.parametrize("place", [(0, 1), (3, 1), (1, 9), (2, 0)])
def test_an_edit_outside_of_the_text_is_refused(place: tuple[int, int]) -> None:
    """A text that became shorter since it was scanned is not edited somewhere else."""
    with pytest.raises(ValueError, match="outside of the text"):
        apply_edits(b"{\n}", [edit(place, place, "x")])


def test_overlapping_edits_wait() -> None:
    """Of two edits of the same stretch the earlier one is made; the same edit of two findings is made once."""
    early, late, apart = edit((1, 1), (1, 5), "a"), edit((1, 3), (1, 7), "b"), edit((1, 7), (1, 9), "c")
    assert applicable_edits([finding(late), finding(apart), finding(early), finding(early)], ["safe"]) == {
        "c.json": (early, apart)
    }


def test_insertions_at_one_place_wait() -> None:
    """Two members inserted at the same place would change each other's separator."""
    first, second = edit((1, 2), (1, 2), '"a": 1, '), edit((1, 2), (1, 2), '"b": 1, ')
    assert applicable_edits([finding(first), finding(second)], ["safe"]) == {"c.json": (first,)}


def test_only_permitted_edits_are_made() -> None:
    """Of a finding's edits the first permitted one counts; what is shown only is never made."""
    shown, unsafe, safe = (edit((1, 1), (1, 2), name, name) for name in ("display", "unsafe", "safe"))  # type: ignore[arg-type]
    assert applicable_edits([finding(shown, unsafe, safe)], ["safe"]) == {"c.json": (safe,)}
    assert applicable_edits([finding(shown, unsafe, safe)], ["safe", "unsafe"]) == {"c.json": (unsafe,)}
    assert applicable_edits([finding(shown)], ["safe", "unsafe"]) == {}
