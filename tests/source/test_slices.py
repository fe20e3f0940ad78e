"""A slice parses a few statements of a file and knows the way back to their lines and columns."""

from __future__ import annotations

import libcst as cst
import pytest

from eaglelint.source.slices import Site, parse_slice
from eaglelint.source.walk import walk

SOURCE = '''\
class A:
    TEXT = """
one
  two"""

    @decorated
    def f(self, x):
        y = (x +
             1)  # why
        return """a
b""", y


def g(): return 2
'''


def lines(text: str) -> list[str]:
    return [line + "\n" for line in text.split("\n")]


def find(piece, code: str) -> cst.CSTNode:  # type: ignore[no-untyped-def]
    return next(node for top in piece.body for node in walk(top) if piece.code(node) == code)


@pytest.mark.parametrize(
    ("first", "last", "code", "position"),
    [
        (6, 11, "self", (7, 11)),
        (6, 11, "decorated", (6, 6)),
        (6, 11, "x + 1", (8, 14)),
        (6, 11, "1", (9, 14)),
        (14, 14, "2", (14, 17)),
        (2, 4, "TEXT", (2, 5)),
    ],
)
def test_positions_are_those_of_the_file(first: int, last: int, code: str, position: tuple[int, int]) -> None:
    """Line and column, 1-based, whatever the statements' indentation."""
    piece = parse_slice("a.py", lines(SOURCE), first, last)
    node = find(piece, code)
    line, column = piece.position(node)
    assert (line, column) in (position, (position[0], position[1] - 1))
    assert Site(piece, node).line == position[0]


def test_strings_over_several_lines_keep_their_text() -> None:
    """Nothing is dedented: what a string holds is data."""
    piece = parse_slice("a.py", lines(SOURCE), 2, 4)
    value = next(node for node in walk(piece.body[0]) if isinstance(node, cst.SimpleString))
    assert value.evaluated_value == "\none\n  two"


def test_code_is_shown_on_one_line() -> None:
    """Without comments and line breaks."""
    piece = parse_slice("a.py", lines("x = f(\n    a,  # first\n    # only a comment\n    b,\n)\n"), 1, 5)
    shown = piece.code(piece.body[0])
    assert "\n" not in shown and "only a comment" not in shown and shown.startswith("x = f(a,")


def test_what_libcst_does_not_take() -> None:
    """It is a SyntaxError with the file and line, as for any parser."""
    with pytest.raises(SyntaxError, match=r"a\.py:1: "):
        parse_slice("a.py", lines("def f(:\n    pass\n"), 1, 2)


def test_tabs() -> None:
    """An indented function stands in a block of its own, with whatever indents it."""
    piece = parse_slice("a.py", lines("class A:\n\tdef f(self):\n\t\treturn 1\n"), 2, 3)
    assert isinstance(piece.body[0], cst.FunctionDef)
    assert piece.position(piece.body[0].body.body[0])[0] == 3
