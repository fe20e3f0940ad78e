"""What is read by Python's own parser is what libcst's parser reads, node by node, with the same places."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import functools
import inspect
import sysconfig
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from eaglelint.source.read_statements import read_statements
from eaglelint.source.reading import NotRead, Reading

GRAMMAR = r'''
"""Doc."""
from . import a
from ..b.c import d as e, f
from g import *
import h.i as j, k
global l; nonlocal_ = 1; del m, n[0]
x: int
y: "list[int]" = [1, *z]
a = b = c, *d = (1, 2)
a += 1; a @= b; a //= 2; a **= 3; a >>= 1; a <<= 1; a &= 1; a |= 1; a ^= 1; a -= 1; a *= 1; a /= 1; a %= 1
assert a, "said"
assert a
del (a, b)
del a
raise
raise E
raise E(1) from e
é = {"ä": ü.ö, **ß}; ñ = é["ä"](õ=1)


@decorated
@decorated.twice(1, a=2)
async def f(a, /, b: int = 1, *args: int, c, d=2, **kw) -> tuple[int, ...]:
    """Doc."""
    async with a as b, c: pass
    async for i in j: continue
    else:
        break
    await x
    return [i async for i in j if i if not j]


def g(*, a): return a; pass
def g(a, *b): yield; yield a, b; yield from c
def g(a, b, /): x = yield a


class A: pass
class B(A, *C, metaclass=D, **E):
    def m(self): lambda: 0; lambda a, *b, c=1, **d: (a, b)
    async def n(self):
        nonlocal o, p


if a: b
elif c:
    d
elif e: f; g
else:
    if h:
        i
    else: j
while a:
    b; c
else: d
for (i, *j), k in l: m
for i in 1, 2: pass
with a: pass
with (a as b, c as (d, e),): pass
with (a, b): pass
try: a
except: b
try:
    a
except (E, F) as e:
    b
except G: c
else: d
finally:
    e
try:
    a
finally: b

x = (a + b) * -c ** ~d // +e % f @ g - h << 1 >> 2 & 3 | 4 ^ 5 / 6
x = a and b and (c or d) or (e and f) or not g
x = (a and (
    b  # a comment )
) and c) or d
x = a < b <= c == d != e > f >= g is h is not i in j not in k
x = a if b else (c if d else e)
x = a[1], a[1:2], a[::3], a[:, 1:2, ...], a[(1, 2)], a[(1), (2)], a[1,], a[()], a[b := 1]
x = f(), f(a), f((a)), f((a, b)), f(a, *b, c=1, *d, **e), f(x for x in y), f((x for x in y), z), f(**a, b=1)
x = (), (a,), [], {}, {1, *a}, {**a, 1: 2}, [*a, b]
x = [a for b in c for d in e if f if g], {a: b for c in d}, {a for b in c}, (a for b in c)
x = 1, 0x1F, 1_000, 1.5, 1e3, 2j, None, True, False, ...
x = "a", 'b', r"\d", b"c", "", '', """d
e""", "it's", 'a\'b', "a" "b", ("a"
"b"), f"{a}", f"{a!r:>{b}}{c=}", "a" f"{b}", "\"", """a"b""", rb"\"", "a\
b", '"' '"'
print(f"""{a
}""")
x = (
    a.  # a comment
    b
    .c
)
(y := f(x))
x = (yield_ := 1)
if (a) : pass
'''

NOT_READ = [
    "match a:\n    case 1:\n        pass\n",
    "try:\n    a\nexcept* E:\n    b\n",
]


def fields(kind: type[Any]) -> Iterator[str]:
    """Those that mean something: layout is left out."""
    layout = ("whitespace", "equal", "comma", "semicolon", "dot", "colon", "footer", "header", "lines", "indent")
    layout += ("bracket", "brace")
    for field in dataclasses.fields(kind):
        if field.name not in ("lpar", "rpar") and not any(mark in field.name for mark in layout):
            yield field.name


def differences(text: str) -> Iterator[tuple[Any, ...]]:
    reading = read_statements(text)
    module = cst.parse_module(text)
    positions = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)

    def of_places(read: cst.CSTNode, parsed: cst.CSTNode) -> Iterator[tuple[Any, ...]]:
        found = reading.span(read)
        if found is None:
            if isinstance(read, cst.BaseExpression | cst.BaseStatement | cst.Arg | cst.Param):
                yield "no place", type(read).__name__
            return
        code = reading.code(read)
        if code is None:
            return
        place = positions[parsed]
        # ast counts the parentheses of a tuple and of a generator as theirs.
        enclosed = isinstance(read, cst.Tuple | cst.GeneratorExp)
        if found[0] != (place.start.line, place.start.column) and not enclosed:
            yield "begins", code, found, (place.start.line, place.start.column)
        compound = isinstance(read, cst.BaseCompoundStatement | cst.ExceptHandler)  # libcst: up to the next line
        if found[1] != (place.end.line, place.end.column) and not (enclosed or compound):
            yield "ends", code, found, (place.end.line, place.end.column)

    def between(read: Any, parsed: Any, path: str) -> Iterator[tuple[Any, ...]]:
        if isinstance(parsed, list | tuple):
            if not isinstance(read, list | tuple) or len(read) != len(parsed):
                yield path, read, parsed
                return
            for number, pair in enumerate(zip(read, parsed, strict=True)):
                yield from between(*pair, f"{path}[{number}]")
        elif not isinstance(parsed, cst.CSTNode):
            if read != parsed:
                yield path, read, parsed
        elif type(read) is not type(parsed):
            yield path, type(read).__name__, type(parsed).__name__
        else:
            yield from of_places(read, parsed)
            for name in fields(type(parsed)):
                yield from between(getattr(read, name), getattr(parsed, name), f"{path}.{name}")

    yield from between(reading.body, module.body, "")


def test_the_grammar() -> None:
    """Each kind of statement and expression, with parentheses, comments and letters of two bytes."""
    assert list(differences(GRAMMAR)) == []


@pytest.mark.parametrize("module", [argparse, ast, functools, inspect, tarfile], ids=lambda module: module.__name__)
def test_files_of_the_standard_library(module: Any) -> None:
    assert list(differences(Path(module.__file__).read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("name", ["asyncio/base_events.py", "email/_header_value_parser.py", "json/decoder.py"])
def test_more_files_of_the_standard_library(name: str) -> None:
    text = Path(sysconfig.get_path("stdlib"), name).read_text(encoding="utf-8")
    assert list(differences(text)) == []


@pytest.mark.parametrize("text", NOT_READ)
def test_what_only_libcst_reads(text: str) -> None:
    """It is said, not guessed; the slice is then read by libcst's own parser."""
    with pytest.raises((NotRead, SyntaxError)):
        read_statements(text)


def test_a_node_is_shown_as_it_is_written() -> None:
    """With the parentheses inside, without those around; an expression inside a string by itself."""
    reading = read_statements('x = f((a), [(b + c)*d],\n  (e)) and (g); f"{h . i}"\n')
    codes = {reading.code(node) for node in _all(reading)}
    assert {"f((a), [(b + c)*d],\n  (e)) and (g)", "f((a), [(b + c)*d],\n  (e))", "a", "(b + c)*d", "g"} <= codes
    assert "h . i" not in codes


def _all(reading: Reading) -> Iterator[cst.CSTNode]:
    stack: list[cst.CSTNode] = list(reading.body)
    while stack:
        node = stack.pop()
        yield node
        stack += node.children
