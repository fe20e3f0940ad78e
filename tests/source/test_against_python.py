"""The interpreter on plain Python: it gives Python's own result, or says that it does not know; never another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eaglelint.source.calls import call_value
from eaglelint.source.lookup import global_value
from eaglelint.source.machine import Machine, Raised
from eaglelint.source.tree import SourceTree
from eaglelint.source.values import Unknown

PROGRAMS = {
    "list comprehension with a shift": "def f():\n    return [v + 1 for v in [2, 30, 58]]",
    "set comprehension, sorted": "def f():\n    return sorted({v % 4 for v in range(9)}, reverse=True)",
    "default list by depth": "def f(n=61):\n    return [2, n // 2, n - 3]",
    "tuple unpacking with a star": "def f():\n    a, *b, c = range(5)\n    return a, b, c",
    "slices": "def f():\n    x = list(range(9))\n    return x[1:-1:2], x[::-1], x[-3:]",
    "aliases": "def f():\n    a = [1]\n    b = a\n    b.append(2)\n    return a",
    "augmented assignment of an alias": "def f():\n    a = [1]\n    b = a\n    b += [2]\n    return a, b",
    "a missing key falls back": "def f():\n    try:\n        return {}['ids']\n    except KeyError:\n        return 'default'",
    "a bare except": "def f():\n    try:\n        return None.get('x')\n    except:\n        return 'default'",
    "an index out of range": "def f():\n    try:\n        return [1][3]\n    except (ValueError, IndexError):\n        return 'out'",
    "finally runs": "def f():\n    log = []\n    try:\n        log.append(1)\n    finally:\n        log.append(2)\n    return log",
    "else of a loop": "def f():\n    for i in range(3):\n        if i == 7:\n            break\n    else:\n        return 'no break'\n    return 'break'",
    "continue and break": "def f():\n    out = []\n    for i in range(9):\n        if i % 2:\n            continue\n        if i > 5:\n            break\n        out.append(i)\n    return out",
    "while": "def f():\n    i, out = 0, []\n    while i < 4:\n        out.append(i)\n        i += 1\n    return out",
    "closure": "def f():\n    def shift(x, by=1):\n        return x + by + base\n    base = 10\n    return shift(1), shift(1, by=5)",
    "lambda in a default": "def f(g=lambda x: x * 2):\n    return g(21)",
    "star arguments": "def g(a, *rest, b=0, **more):\n    return a, rest, b, sorted(more)\n\ndef f():\n    return g(1, 2, 3, b=4, c=5)",
    "nested conditions": "def f():\n    ids = [1, 29, 57]\n    return [v + 1 for v in ids] if ids and ids[0] == 1 else list(ids)",
    "chained comparison": "def f():\n    return [i for i in range(10) if 2 < i <= 5]",
    "walrus": "def f():\n    return [y for x in range(5) if (y := x * x) > 3]",
    "dict methods": "def f():\n    d = {'a': 1}\n    d.update({'b': 2})\n    return d.get('a'), d.get('c', 3), d.pop('b'), sorted(d)",
    "enumerate and zip": "def f():\n    return [(i, a, b) for i, (a, b) in enumerate(zip('ab', [1, 2]), start=1)]",
    "any, all, min, max, sum": "def f():\n    return any([0, 1]), all([]), min(3, 1), max([2, 5]), sum(range(4))",
    "strings": "def f():\n    name = 'model'\n    return f'{name}.layers.{3}', 'a,b'.split(','), 'x'.upper()",
    "islice": "from itertools import islice\n\ndef f():\n    return list(islice(range(10), 2, 5))",
    "class with inheritance": "class A:\n    def __init__(self, n):\n        self.n = n\n        self.ids = [2, n // 2]\n    def get(self):\n        return self.ids\n\nclass B(A):\n    def __init__(self, n):\n        super().__init__(n + 1)\n        self.more = 7\n    def get(self):\n        return super().get() + [self.more]\n\ndef f():\n    return B(9).get()",
    "property, static and class methods": "class A:\n    k = 3\n    @property\n    def p(self):\n        return self.k + 1\n    @staticmethod\n    def s(x):\n        return x * 2\n    @classmethod\n    def c(cls):\n        return cls.k\n\ndef f():\n    a = A()\n    return a.p, a.s(4), A.s(5), a.c(), A.c()",
    "the last of two definitions": "def g():\n    return 1\n\ndef g():\n    return 2\n\ndef f():\n    return g()",
    "method resolution order": "class A:\n    def n(self):\n        return 'A'\nclass B(A):\n    def n(self):\n        return 'B' + super().n()\nclass C(A):\n    def n(self):\n        return 'C' + super().n()\nclass D(B, C):\n    pass\n\ndef f():\n    return D().n()",
    "hasattr, getattr, setattr": "class A:\n    pass\n\ndef f():\n    a = A()\n    before = hasattr(a, 'x')\n    setattr(a, 'x', 5)\n    return before, hasattr(a, 'x'), getattr(a, 'x'), getattr(a, 'y', 'none')",
    "isinstance": "def f():\n    return isinstance(1, int), isinstance(True, int), isinstance(1, bool), isinstance([], (tuple, list)), isinstance('x', int)",
    "module constants": "LAYERS = (3, 31, 59)\nSHIFT = len(LAYERS)\n\ndef f():\n    return [i + SHIFT for i in LAYERS]",
    "nonlocal": "def f():\n    n = 0\n    def step():\n        nonlocal n\n        n += 1\n        return n\n    step()\n    return step(), n",
    "deleted name": "def f():\n    a = [1, 2, 3]\n    del a[0]\n    return a",
    "conditional expression in a call": "def f():\n    return list(range(3 if True else 9))",
    "early return in a loop": "def f():\n    for i in range(9):\n        if i == 4:\n            return i",
    "mutable default": "def g(x, into=[]):\n    into.append(x)\n    return list(into)\n\ndef f():\n    g(1)\n    return g(2)",
    "generator": "def g():\n    for i in range(3):\n        yield i\n\ndef f():\n    return list(g())",
    "match": "def f(x=2):\n    match x:\n        case 1:\n            return 'one'\n        case 2:\n            return 'two'",
    "with": "class C:\n    def __enter__(self):\n        return 5\n    def __exit__(self, *a):\n        return False\n\ndef f():\n    with C() as c:\n        return c",
    "raised by name": "class Bad(ValueError):\n    pass\n\ndef f():\n    try:\n        raise Bad('x')\n    except ValueError:\n        return 'caught'",
}


def interpret(directory: Path, source: str) -> tuple[str, Any]:
    (directory / "program.py").write_text(source, encoding="utf-8")
    tree = SourceTree((directory,), relative_to=directory)
    module = tree.module("program")
    assert module is not None
    machine = Machine(tree)
    try:
        outcomes = machine.explore(lambda: call_value(machine, global_value(machine, module, "f"), (), {}, None), None)
    except Raised as error:
        return "raised", error.kind
    except RecursionError:  # a list that holds itself; deriving turns it into an unknown wiring
        return "unknown", None
    if len(outcomes) != 1:
        return "unknown", None
    if isinstance(outcomes[0].value, tuple) and any(holds_itself(item) for item in outcomes[0].value):
        return "unknown", None  # nothing to compare
    if outcomes[0].raised is not None:
        return "raised", outcomes[0].raised.kind
    return "unknown" if holds_unknown(outcomes[0].value) else "value", outcomes[0].value


def holds_itself(value: Any, above: tuple[int, ...] = ()) -> bool:
    if id(value) in above:
        return True
    return isinstance(value, list | tuple) and any(holds_itself(item, (*above, id(value))) for item in value)


def holds_unknown(value: Any) -> bool:
    if isinstance(value, Unknown):
        return True
    if isinstance(value, list | tuple | set):
        return any(holds_unknown(item) for item in value)
    return isinstance(value, dict) and any(holds_unknown(item) for item in (*value, *value.values()))


def run(source: str) -> Any:
    names: dict[str, Any] = {"__name__": "program"}
    exec(compile(source, "program.py", "exec"), names)
    return names["f"]()


@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_gives_pythons_result_or_none_at_all(tmp_path: Path, source: str) -> None:
    """What the interpreter says it knows is what Python computes."""
    how, value = interpret(tmp_path, source)
    assert how != "raised", value
    if how == "value":
        assert value == run(source)
        assert type(value) is type(run(source))


# Where "unknown" would be a loss: what setters and resolvers are made of must be computed, not given up.
KNOWN = [
    name for name in PROGRAMS if name not in {"generator", "match", "nonlocal", "with", "mutable default", "walrus"}
]


@pytest.mark.parametrize("name", KNOWN)
def test_what_resolvers_and_setters_are_made_of_is_computed(tmp_path: Path, name: str) -> None:
    """The constructs of engines' setters give a value."""
    assert interpret(tmp_path, PROGRAMS[name]) == ("value", run(PROGRAMS[name]))


numbers = st.integers(-20, 70).map(str)
names = st.sampled_from(["a", "b", "c"])
operators = st.sampled_from(["+", "-", "*", "//", "%", "<", "<=", "==", "and", "or", "in", "not in"])
expressions = st.recursive(
    numbers | names | st.just("None") | st.just("x"),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, operators, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("x[{}]".format, inner),
        st.builds("[i + {} for i in {}]".format, inner, inner),
        st.builds("len({})".format, inner),
        st.builds("sorted(set({}))".format, inner),
        st.builds("list(range({}))".format, inner),
    ),
    max_leaves=8,
)
statements = st.one_of(
    st.builds("{} = {}".format, names, expressions),
    st.builds("x.append({})".format, expressions),
    st.builds("{} += {}".format, names, expressions),
    st.builds("if {}:\n        {} = {}\n    else:\n        x.append({})".format, expressions, names, numbers, numbers),
    st.builds(
        "for {} in range({} % 5 if isinstance({}, int) else 2):\n        x.append({})".format,
        names,
        numbers,
        names,
        names,
    ),
    st.builds(
        "try:\n        {} = {}\n    except (TypeError, IndexError):\n        {} = 7".format, names, expressions, names
    ),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(statements, min_size=1, max_size=6), expressions)
def test_random_programs(tmp_path_factory: pytest.TempPathFactory, body: list[str], result: str) -> None:
    """Random programs give Python's value, or an unknown one; they raise only where Python does.

    Where Python raises, the interpreter may have met an unknown value, and gone on.
    """
    source = (
        "def f():\n    a, b, c, x = 1, 2, [3], [0, 5, 9]\n    " + "\n    ".join(body) + f"\n    return {result}, x\n"
    )
    try:
        expected: tuple[str, Any] = ("value", run(source))
    except RecursionError:
        return
    except Exception as error:
        expected = ("raised", type(error).__name__)
    how, value = interpret(tmp_path_factory.mktemp("random"), source)
    if how == "raised":
        assert expected[0] == "raised", (source, value)
    elif how == "value" and expected[0] == "value":
        assert value == expected[1], source
