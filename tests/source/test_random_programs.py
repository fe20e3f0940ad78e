"""Programs put together at random: the interpreter gives Python's own result, or says that it does not know."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from eaglelint.source.machine import Raised
from eaglelint.source.tree import SourceTree
from tests.source.conftest import call_main
from tests.source.test_programs import as_source, by_python, holds_unknown, plain

numbers = st.integers(-5, 9).map(str)
number_names = st.sampled_from(["a", "b"])
list_names = st.sampled_from(["xs", "ys"])
atoms = st.one_of(numbers, number_names, list_names.map("len({})".format), list_names.map("sum({})".format))
operators = st.sampled_from(["+", "-", "*", "//", "%", "<", "==", "and", "or", "<<", "&", "|"])
sums = st.tuples(atoms, operators, atoms).map(lambda p: f"({p[0]} {p[1]} {p[2]})")
ints = st.one_of(
    atoms,
    sums,
    st.tuples(sums, operators, atoms).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
    st.tuples(atoms, atoms, sums).map(lambda p: f"({p[0]} if {p[2]} else {p[1]})"),
    st.tuples(list_names, atoms).map(lambda p: f"{p[0]}[{p[1]}]"),
    atoms.map(lambda atom: f"d.get({atom}, 7)"),
    st.tuples(atoms, list_names).map(lambda p: f"({p[0]} in {p[1]})"),
)
lists = st.one_of(
    list_names,
    st.lists(ints, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
    st.tuples(list_names, atoms, atoms).map(lambda p: f"{p[0]}[{p[1]}:{p[2]}]"),
    st.tuples(list_names, st.sampled_from(["-1", "2", "-2"])).map(lambda p: f"{p[0]}[::{p[1]}]"),
    st.tuples(list_names, st.sampled_from(["sorted({})", "list(reversed({}))", "list(set({}))", "{}.copy()"])).map(
        lambda p: p[1].format(p[0])
    ),
    st.tuples(list_names, ints).map(lambda p: f"[i + {p[1]} for i in {p[0]} if i % 2]"),
    st.tuples(list_names, list_names).map(lambda p: f"{p[0]} + {p[1]}"),
    list_names.map(lambda name: f"[i for i, _ in enumerate({name}, 1)]"),
)
simple = st.one_of(
    st.tuples(number_names, ints).map(lambda p: f"{p[0]} = {p[1]}"),
    st.tuples(number_names, st.sampled_from(["+=", "-=", "*="]), ints).map(" ".join),
    st.tuples(list_names, lists).map(lambda p: f"{p[0]} = {p[1]}"),
    st.tuples(list_names, lists).map(lambda p: f"{p[0]} += {p[1]}"),
    st.tuples(list_names, ints).map(lambda p: f"{p[0]}.append({p[1]})"),
    st.tuples(list_names, st.sampled_from(["0", "-1", "1"]), ints).map(lambda p: f"{p[0]}.insert({p[1]}, {p[2]})"),
    st.tuples(list_names, atoms, ints).map(lambda p: f"{p[0]}[{p[1]}] = {p[2]}"),
    st.tuples(list_names, atoms).map(lambda p: f"del {p[0]}[{p[1]}]"),
    st.tuples(list_names, st.sampled_from(["pop()", "reverse()", "sort()", "clear()", "pop(0)"])).map(".".join),
    st.tuples(atoms, ints).map(lambda p: f"d[{p[0]}] = {p[1]}"),
    atoms.map(lambda atom: f"del d[{atom}]"),
    ints.map(lambda i: f"s.add({i})"),
    st.tuples(list_names, list_names).map(lambda p: f"{p[0]} = {p[1]}"),
    ints.map(lambda value: f"bump({value})"),
)


def block(lines: list[str]) -> str:
    return "\n".join("    " + line for text in lines for line in text.split("\n"))


bodies = st.lists(simple, min_size=1, max_size=2)
statements = st.one_of(
    simple,
    st.tuples(ints, bodies, bodies).map(lambda p: f"if {p[0]}:\n{block(p[1])}\nelse:\n{block(p[2])}"),
    st.tuples(lists, bodies).map(lambda p: f"for b in list({p[0]}):\n{block(p[1])}"),
    st.tuples(ints, bodies).map(lambda p: f"for i in range(3):\n{block([*p[1], f'if {p[0]}:', '    break'])}"),
    bodies.map(
        lambda b: f"try:\n{block(b)}\nexcept (IndexError, KeyError):\n    a = -1\nexcept Exception:\n    b = -2"
    ),
    bodies.map(lambda b: f"n = 3\nwhile n:\n    n -= 1\n{block(b)}"),
    st.tuples(number_names, ints, ints).map(lambda p: f"{p[0]} = (lambda x, y={p[1]}: x - y)({p[2]})"),
)
programs = st.lists(statements, min_size=1, max_size=6)

START = (
    "a, b, xs, ys, d, s = 1, 2, [3, 1], [4], {1: 5}, {6}\ndef bump(n):\n    nonlocal a\n    a += n\n    ys.append(n)\n"
)


@settings(max_examples=250, deadline=None, derandomize=True)
@given(programs)
def test_python_or_unknown(program: list[str]) -> None:
    """The same values, or the same exception."""
    check(program)


def check(program: list[str]) -> None:
    source = as_source(START + "\n".join(program) + "\nreturn [a, b, xs, ys, d, sorted(s)]")
    expected: Any
    try:
        expected = repr(by_python(source))
    except Exception as error:
        expected = type(error)
    with TemporaryDirectory() as directory:
        (Path(directory) / "program.py").write_text(source, "utf-8")
        try:
            found = plain(call_main(SourceTree((Path(directory),))))
        except Raised as error:
            assert isinstance(expected, type) and issubclass(expected, Exception), (error, expected)
            assert error.kind == expected.__name__
            return
    assert holds_unknown(found) or repr(found) == expected
