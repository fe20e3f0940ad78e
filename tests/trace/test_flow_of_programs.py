"""Programs put together at random and run: where a marked value really is, the trace says that it may be."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from eaglelint.trace import trace
from tests.trace.conftest import reached

HEAD = """\
class Box:
    def __init__(self, p, xs):
        self.p = p
        self.xs = xs

    def get(self):
        return self.p

    def put(self, p):
        self.p = p


def same(x):
    return x


def second(x, y=0, *, z=0):
    if x:
        return y
    return z


def pair(x, y):
    return y, x


def fill(into, x):
    into.append(x)


def relay(x, *, into):
    fill(into, x)


def main(marked, flag, use):
    a = b = c = 0
    xs, ys, t, d = [0], [0], (0, 0), {"k": 0}
    o = Box(0, [0])
    a = marked
"""
NAMES = st.sampled_from("abc")
LISTS = st.sampled_from(["xs", "ys"])


def filled(template: str) -> st.SearchStrategy[str]:
    return st.tuples(NAMES, NAMES, NAMES, LISTS, LISTS).map(
        lambda n: template.format(p=n[0], q=n[1], r=n[2], l=n[3], m=n[4])
    )


STATEMENTS = st.one_of(
    *map(
        filled,
        [
            "{p} = {q}",
            "{p}, {q} = {q}, {p}",
            "{p} = same({q})",
            "{p} = second(1, {q})",
            "{p} = second(0, 1, z={q})",
            "{p}, {q} = pair({q}, {r})",
            "t = pair({p}, {q})",
            "t = ({p}, {q})",
            "{p}, {q} = t",
            "{p} = t[1]",
            "{l}.append({p})",
            "{l} = [{p}, {q}]",
            "{l} = {l} + {m}",
            "{l} += [{p}]",
            "{l}[0] = {p}",
            "fill({l}, {p})",
            "relay({p}, into={l})",
            "{p} = {l}[0]",
            "{p} = {l}[-1]",
            "{l} = [e for e in {m}]",
            "{l} = [(e, {p})[1] for e in {m}]",
            "{l}.extend({m})",
            "for {p} in {l}: {q} = {p}",
            "for i, {p} in enumerate({l}): {q} = {p}",
            "for {p}, {q} in zip({l}, {m}): {r} = {q}",
            "if flag: {p} = {q}",
            "{p} = {q} if flag else {r}",
            "{p} = {q} or {r}",
            "{p} = ({q} := {r})",
            "d['k'] = {p}",
            "{p} = d['k']",
            "d = {{'k': {p}, 'j': {q}}}",
            "{p} = d.get('k', {q})",
            "o.p = {p}",
            "{p} = o.p",
            "o.put({p})",
            "{p} = o.get()",
            "o = Box({p}, {l})",
            "o.xs.append({p})",
            "{l} = o.xs",
            "setattr(o, 'p', {p})",
            "{p} = getattr(o, 'p', {q})",
            "{p} = (lambda v: v)({q})",
            "{p} = 0",
            "try: {p} = {q}\n    except ValueError: {p} = {r}",
        ],
    )
)


@settings(max_examples=30, deadline=None)
@example(["o.put(a)", "b = o.get()"], False)
@example(["o = Box(a, xs)", "b = o.get()"], False)
@example(["setattr(o, 'p', a)", "b = getattr(o, 'p', c)"], False)
@example(["xs.append(a)", "for b in xs: c = b"], False)
@example(["xs.append(a)", "for i, b in enumerate(xs): c = b"], False)
@example(["xs.append(a)", "for b, c in zip(ys, xs): b = c"], False)
@example(["o.xs.append(a)", "ys = o.xs", "b = ys[-1]"], False)
@example(["t = pair(b, a)", "b, c = t"], False)
@example(["d['k'] = a", "b = d['k']"], False)
@example(["b = second(0, 1, z=a)"], True)
@example(["fill(xs, a)", "b = xs[-1]"], False)
@example(["relay(a, into=xs)", "b = xs[-1]"], False)
@given(st.lists(STATEMENTS, min_size=1, max_size=9), st.booleans())
def test_where_the_value_is_the_trace_comes(statements: list[str], flag: bool) -> None:
    """Every variable that holds the marked value after a statement is reached from where it was given."""
    source = HEAD
    for statement in statements:
        source += f"    {statement}\n"
        source += "    use(a, b, c, xs, ys, t)\n"
    held: list[tuple[int, str]] = []
    scope: dict[str, Any] = {}
    exec(compile(source, "program.py", "exec"), scope)

    def use(*values: Any) -> None:
        import sys

        line = sys._getframe(1).f_lineno
        held.extend(
            (line, name) for name, value in zip(["a", "b", "c", "xs", "ys", "t"], values, strict=True) if in_(value)
        )

    def in_(value: Any) -> bool:
        return value is MARK or (isinstance(value, list | tuple) and any(map(in_, value)))

    scope["main"](MARK, flag, use)
    with TemporaryDirectory() as name:
        file = Path(name) / "program.py"
        file.write_text(source)
        found = trace("marked", [file], relative_to=Path(name))
    line = next(n for n, text in enumerate(source.split("\n"), 1) if text.startswith("def main"))
    assert set(held) - reached(found, line, "marked") == set(), source


class Mark:
    """True, and itself wherever it goes."""


MARK = Mark()
