"""Every place where a name stands in code is listed: never fewer than Python's own tokenizer finds."""

from __future__ import annotations

import io
import tokenize
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eaglelint.trace import Occurrence, trace

PIECES = [
    "x = 1",
    "x: int = 2",
    "y = x = 3",
    "x += 1",
    "x, (y, *x) = 1, (2, 3)",
    "x[0] = x",
    "x.x = y.x",
    "del x",
    "del y.x, x[0]",
    "y = x if x else x.x",
    "y = [x for x in x if x]",
    "y = {x: x for x, x in x.items()}",
    "y = lambda x, *, y=x: x",
    "y = f(x, x=x, *x, **x)",
    "y = f'{x} and {x:>{x}}'",
    "y = f'{y}' 'x'",
    "y = (x := 4)",
    'y = \'x\', """x\nx"""  # x',
    "y = getattr(y, 'x', x)",
    "y = y['x'] + y.get('x')",
    "for x in x:\n    x\nelse:\n    x",
    "while x:\n    x\n    break",
    "with x as x, y(x) as (x, y):\n    x",
    "try:\n    x\nexcept x as x:\n    x\nelse:\n    x\nfinally:\n    x",
    "if x:\n    x\nelif x is None:\n    x\nelse:\n    x",
    "assert x, x",
    "@x\ndef f(x: x = x, /, *y: x, **x2) -> x:\n    '''x'''\n    def x(x):\n        nonlocal y\n        return x, y\n    return x",
    "async def x(x):\n    await x\n    async for x in x:\n        yield x\n    async with x as x:\n        pass",
    "class x(x, metaclass=x):\n    x = x\n    x: x\n    def x(self, x):\n        global y\n        return self.x(x).x",
    "@x.x\nclass y:\n    class x:\n        def f(self):\n            return x",
    "import x\nimport x.y as y, y.x as x\nfrom x import x as y, y as x\nfrom . import x",
    "def f():\n    global x, y\n    x = 1",
    "match x:\n    case x.x | {'x': x, **y}:\n        x\n    case y(x=x) if x:\n        x\n    case [x, *y] | (x as y):\n        x",
    "y = (\n    x\n    # x\n    + x\n)",
    "if x: x; y = x",
    "é = 'ü'; x = é; y = 'ß', x",
    "raise x from x",
    "print(x); return_ = x",
    "y = -x, not x, x < x <= x, x and x or x, x @ x",
    "y = x[x:x:x], x[x, ...]",
    "async def g():\n    return [x async for x in x]",
    "def g():\n    x = yield x\n    yield from x\n    return x",
]


def listed(source: str, word: str = "x") -> list[Occurrence]:
    with TemporaryDirectory() as name:
        file = Path(name) / "program.py"
        file.write_text(source, encoding="utf-8")
        found = trace(word, [file], relative_to=Path(name))
    return [item for item in found.occurrences if item.name == word]


def tokens(source: str, word: str = "x") -> set[tuple[int, int]]:
    return {
        (token.start[0], token.start[1] + 1)
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.NAME and token.string == word
    }


def indented(piece: str, depth: int) -> str:
    lines = piece.split("\n")
    # A string over several lines keeps its text.
    inside = '"""' in piece
    pad = "    " * depth
    return "\n".join(line if inside and number else pad + line for number, line in enumerate(lines))


@pytest.mark.parametrize("piece", PIECES)
def test_every_name_token_is_listed(piece: str) -> None:
    """Each syntactic place of a name, at the top of a module and in a function."""
    for source in (f"x = y = f = 0\n{piece}\n", f"def g0(y, f):\n{indented(piece, 1)}\n    x\n"):
        found = {(item.line, item.column) for item in listed(source)}
        assert tokens(source) - found == set(), source


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PIECES), st.integers(0, 2)), min_size=1, max_size=6))
def test_every_name_token_of_a_program_is_listed(parts: list[tuple[str, int]]) -> None:
    """Programs of such pieces, in functions, methods and branches."""
    lines = ["x = y = f = 0"]
    for number, (piece, depth) in enumerate(parts):
        if depth == 1:
            lines += [f"def f{number}(y):", indented(piece, 1), "    x"]
        elif depth == 2:
            lines += [f"class C{number}:", f"    def m{number}(self, x):", indented(piece, 2), "        x"]
        else:
            lines.append(piece)
    source = "\n".join(lines) + "\n"
    found = {(item.line, item.column) for item in listed(source)}
    assert tokens(source) - found == set(), source


@pytest.mark.parametrize(
    ("source", "places"),
    [
        ("x = 1  # x, not x\n'''x'''\n", [(1, 1)]),
        ("x = 'x is a text, and x'\n", [(1, 1)]),
        ("xx = x_ = 1\nx = y.ax\n", [(2, 1)]),
    ],
)
def test_comments_and_texts_are_no_code(source: str, places: list[tuple[int, int]]) -> None:
    """A name in a comment, in a longer text or in a longer name is no occurrence."""
    assert [(item.line, item.column) for item in listed(source)] == places


def test_strings_that_name_attributes_and_keys_are_code() -> None:
    """``getattr``, ``setattr``, ``hasattr``, ``in`` and subscripts: each is a key, with what is taken where it is absent."""
    source = "\n".join(
        [
            "def f(c):",
            "    a = getattr(c, 'ids', None)",
            "    b = c.get('ids', [1, 2])",
            "    d = c['ids'] if 'ids' in c else None",
            "    setattr(c, 'ids', a)",
            "    return hasattr(c, 'ids'), {'ids': b}, c.ids",
        ]
    )
    found = [(item.line, item.kind, item.fallback) for item in listed(source, "ids")]
    assert found == [
        (2, "config-key", "None"),
        (3, "config-key", "[1, 2]"),
        (4, "config-key", None),
        (4, "config-key", None),
        (5, "config-key", None),
        (6, "config-key", None),
        (6, "config-key", None),
        (6, "returned", None),
    ]


def test_kinds() -> None:
    """What happens to the value at each place."""
    source = "\n".join(
        [
            "def f(x, g):",
            "    x.append(1)",
            "    y = x[0]",
            "    g(x)",
            "    g(key=x)",
            "    x = [x]",
            "    x += [2]",
            "    del x[0]",
            "    x[1] = 3",
            "    if y:",
            "        return x, y",
            "    del x",
        ]
    )
    assert [(item.line, item.kind) for item in listed(source)] == [
        (1, "parameter"),
        (2, "mutation"),
        (3, "read"),
        (4, "passed"),
        (5, "passed"),
        (6, "assignment"),
        (6, "read"),
        (7, "mutation"),
        (8, "read"),
        (9, "mutation"),
        (11, "returned"),
        (12, "deleted"),
    ]
