"""The symbol index: what a file defines, on which lines, whatever its encoding and line ends."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from eaglelint.source.index import Import, index_outline, index_source


def index(text: str):  # type: ignore[no-untyped-def]
    return index_source(dedent(text).lstrip("\n").encode())


def test_classes_functions_and_their_lines() -> None:
    """A function's lines begin at its first decorator; bases and decorators are kept as they are written."""
    found = index("""
    @one
    @two.three(4)
    def f():
        return 1

    class A(nn.Module, Base[int], metaclass=M):
        size: int = 3
        later: str

        @property
        def p(self):
            return 1

        @p.setter
        def p(self, value):
            pass
    """)
    f, a = found.functions["f"], found.classes["A"]
    assert (f.line, f.end_line, f.decorators) == (1, 4, ("one", "two.three"))
    assert (a.line, a.end_line, a.bases) == (6, 16, ("nn.Module", "Base"))
    assert (a.methods["p"].line, a.setters["p"].line) == (10, 14)
    assert a.assignments == {"size": (7, 7)}


def test_imports() -> None:
    """Modules, attributes, other names, relative levels and stars."""
    found = index("""
    import torch.nn.functional as F
    import os.path
    from a.b import c as d
    from ..x import y
    from .z import *
    """)
    assert found.imports == {
        "F": Import("torch.nn.functional", None),
        "os": Import("os", None),
        "d": Import("a.b", "c"),
        "y": Import("x", "y", 2),
    }
    assert found.star_imports == [Import("z", "*", 1)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("def f(): return 1\ndef f(): return 2\n", 2),
        ("if flag:\n    def f(): return 1\nelse:\n    def f(): return 2\n", 2),
        ("def f(): return 1\nif flag:\n    def f(): return 2\n", 1),
        ("try:\n    pass\nexcept ImportError:\n    def f(): return 1\n", 4),
        ("if flag:\n    def f(): return 1\ndef f(): return 2\n", 3),
        ("with context():\n    def f(): return 1\n", 2),
        ("from a import f\ndef f(): return 1\n", 2),
    ],
)
def test_which_definition_counts(text: str, line: int) -> None:
    """The last one that is sure to run, else the first one that may."""
    found = index(text)
    assert found.functions["f"].line == line
    assert "f" not in found.imports


def test_a_fallback_does_not_replace_an_import() -> None:
    """The definition after a failed import is for those who lack the package."""
    found = index("try:\n    from a import f\nexcept ImportError:\n    def f(): return 1\n    g = None\n")
    assert found.imports["f"] == Import("a", "f") and "f" not in found.functions
    assert found.assignments["g"] == (5, 5)


def test_all_statements_that_change_a_variable() -> None:
    """Assigned, extended, indexed, or set under a condition; a function's own variables are not the module's."""
    found = index("""
    IDS = [1]
    IDS.append(2)
    IDS[0] = 3
    OTHER = 1
    if flag:
        IDS += [4]
    def f():
        IDS = 5
    """)
    assert found.changes["IDS"] == [(1, 1), (2, 2), (3, 3), (5, 6)]
    assert found.changes["OTHER"] == [(4, 4)]


def test_defaults_for_type_checkers() -> None:
    """What stands below TYPE_CHECKING is how a lazy module says its defaults."""
    found = index("""
    if TYPE_CHECKING:
        from a import B
        PORT: int = 5
        HOST: str
    """)
    assert found.imports["B"] == Import("a", "B")
    assert found.changes == {"PORT": [(3, 3)]}
    assert found.assignments == {"PORT": (3, 3)}


def test_a_class_for_type_checkers_alone() -> None:
    """The other side has the real one; what it only imports for them is kept, as lazy modules need it."""
    found = index("""
    if TYPE_CHECKING:
        from a import B
        class Base(Protocol): ...
    else:
        Base = Real
        B = lazy("B")
    """)
    assert "Base" not in found.classes and found.assignments["Base"] == (5, 5)
    assert found.imports["B"] == Import("a", "B")


def test_a_base_of_the_same_name() -> None:
    """class Layer(Layer) extends what was imported under that name before."""
    found = index("from a import Layer\nclass Layer(Layer): pass\nclass Other(Layer): pass\n")
    assert found.classes["Layer"].shadowed == Import("a", "Layer")
    assert found.classes["Other"].shadowed is None


@pytest.mark.parametrize(
    "source",
    [
        b"\xef\xbb\xbfX = 1\nY = 2\n",
        b"X = 1\r\nY = 2\r\n",
        b"X = 1\rY = 2\r",
        b"X = 1\n\x0cY = 2\n",
        b"# -*- coding: latin-1 -*-\nX = '\xe9'; Y = 2\n",
        b"X = 1; Y = 2",
    ],
)
def test_encodings_and_line_ends(source: bytes) -> None:
    """A byte-order mark, CRLF, CR, a form feed, another declared encoding, no last line end."""
    found = index_source(source)
    assert set(found.assignments) == {"X", "Y"}
    assert found.assignments["Y"][0] in (1, 2)


@pytest.mark.parametrize(
    "source",
    [
        b"def f(:\n",
        b"x = '\xff'\n",
        b"x = 1\x00\n",
        b"x = " + b"(" * 300 + b")" * 300,
        b"x = " + b"-" * 100_000 + b"1",
        b"# -*- coding: no-such-encoding -*-\n",
        b"if True:\nx = 1\n",
        b" " * (9 * 1024 * 1024),
    ],
)
def test_what_is_no_python_is_a_syntax_error(source: bytes) -> None:
    """Bad grammar, bytes that are no text, nesting beyond the parser, files beyond all measure: one kind of error."""
    with pytest.raises(SyntaxError):
        index_source(source)


def test_an_empty_file() -> None:
    """It has nothing, and that is no error."""
    assert index_source(b"").changes == {}


def test_what_a_class_of_its_base_s_name_inherits(interpret: Any) -> None:
    """The imported class is followed: its ``__init__`` sets what its heir of the same name has."""
    found = interpret(
        """
        from llama import Layer

        class Layer(Layer):
            def __init__(self, n):
                super().__init__(n)
                self.more = 1

        def main():
            return Layer(3).heads, Layer(3).more
        """,
        llama="class Layer:\n    def __init__(self, n):\n        self.heads = 2 * n\n",
    )
    assert found == (6, 1)


SHAPES = [
    "def f(a, b=(1, 2)):\n    return a\n\n\nX = 1\n",
    "@decorated(\n    1\n)\nasync def f(\n    a,\n) -> dict[\n    str, int\n]:  # said\n    x = [\n1,\n]\n    return x\nY = 2\n",
    'class A(B[int], C):\n    """def no():"""\n\n    x: int = 1\n\n    @property\n    def p(self): return 1\n\n    @p.setter\n    def p(self, v):\n        self.v = v\n    # after\n\n    y = 2\n',
    'def f():\n    """\nX = 1\ndef g():\n    """\n    def inner():\n        pass\n    class Inner:\n        pass\n\n\nZ = f()\n',
    'def f():\n    return """\ndef g():\n    pass\n"""\n\ndef h(): return [\n    1,\n]\nW = 1\n',
    'def f(): """one\nline"""\n\nV = 1\n',
    "if A:\n    def f():\n        return 1\n    X = 1\nelse:\n    from b import f\nX[0] = f()\n",
    "try:\n    import a\nexcept ImportError:\n    def a():\n        pass\n\n\nwith a() as b:\n    def c():\n        d = 1\n",
    "def f():\n    x = 1 + \\\n2\n    return x\n\n\nU = 1\n",
    "def f():\n    x = (1 +\n2)\n    return x\n\n\ndef g():\n\treturn 1\n",
    "def f():\n    pass\n    # the end\n\n# of all",
    "# -*- coding: latin-1 -*-\ndef f():\n    return '\\xe9'\n",
    "# -*- coding: utf-8 -*-\ndef f(\n    a='é',\n):\n    return a\nT = 'é'\n",
    "#!/usr/bin/python\n# vim: fileencoding=latin-1\nS = '\\xe9'\n",
    "def f(a: int,\n      b=lambda: (\n  1)) -> int:\n    c = a @ b\n    return c @ \\\n        a\n@a.b(\n    1)\n@c\ndef g(): pass\n",
    "class A:\n\t@property\n\tasync def f(\n\t\tself,\n\t):\n\t\treturn 1\n\tdef g(self, x=1):\n\t\tpass\n",
    "def f():\r\n    return 1\r\n\r\nX = 1\r\n",
    '# """ in a comment\ndef f():\n    r"""a \\""" b\ndef no():\n    """\n    return \'#\', """\ndef no():\n    """\n\nR = 1\n',
    "class A:\n    def f(self):\n        match self:\n            case 1:\n                return 2\n    def g(self):\n        return lambda: (\n            1)\n",
]


@pytest.mark.parametrize("text", SHAPES)
def test_an_index_without_a_look_into_functions(text: str) -> None:
    """It is the same as that of the whole file."""
    assert told(index_outline(text.encode())) == told(index_source(text.encode()))


def test_what_a_function_takes_is_not_looked_at() -> None:
    """No more than what it does: that it is no Python is told when somebody asks for the function."""
    text = "def f(a, 1):\n    return a\n\n\nX = 1\n"
    assert set(index_outline(text.encode()).assignments) == {"X"}
    with pytest.raises(SyntaxError):
        index_source(text.encode())


def test_every_module_of_eaglelint() -> None:
    for path in (Path(__file__).parents[2] / "eaglelint").rglob("*.py"):
        assert told(index_outline(path.read_bytes())) == told(index_source(path.read_bytes())), path


def told(found: Any) -> Any:
    """An index as plain data: its classes and functions are equal to none but themselves."""
    if isinstance(found, dict):
        return {name: told(value) for name, value in found.items()}
    if isinstance(found, list | tuple):
        return [told(value) for value in found]
    return [told(getattr(found, each.name)) for each in fields(found)] if is_dataclass(found) else found


@pytest.mark.parametrize(
    "source", [b"def f(:\n", b"x = '\xff'\n", b"x = 1\x00\n", b"if True:\nx = 1\n", b"def f():\nx = 1\n"]
)
def test_what_is_no_python_outside_of_functions(source: bytes) -> None:
    with pytest.raises(SyntaxError):
        index_outline(source)
