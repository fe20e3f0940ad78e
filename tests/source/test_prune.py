"""What of an ``__init__`` leads to one attribute."""

from __future__ import annotations

from textwrap import dedent

import libcst as cst
import pytest

from eaglelint.source.prune import assigns_attribute, prune

BODY = """
size = config.size
unused = expensive()
names = []
for i in range(3):
    names.append(i)
if config.flag:
    self.norm = Norm(size)
    other = 1
else:
    self.norm = None
self.items = []
self.items.append(1)
self.setup()
self.a, self.b = names, size
with context() as c:
    self.inner = c
try:
    self.tried = size
except ValueError:
    self.tried = None
self.other = other_call()
"""


def kept(name: str) -> str:
    module = cst.parse_module(dedent(BODY))
    found = prune(
        module.body, "self", name, lambda call: "setup" in module.code_for_node(call.func) and name == "z", {}
    )
    return "".join(module.code_for_node(statement) for statement in found)


@pytest.mark.parametrize(
    ("name", "present", "absent"),
    [
        (
            "norm",
            ["size = config.size", "self.norm = Norm(size)", "self.norm = None"],
            ["expensive", "other = 1", "items"],
        ),
        ("a", ["names = []", "names.append(i)", "size = config.size"], ["expensive", "norm"]),
        ("items", ["self.items = []", "self.items.append(1)"], ["names", "norm"]),
        ("inner", ["context()", "self.inner = c"], ["names"]),
        ("tried", ["self.tried = size", "except ValueError", "size = config.size"], ["names"]),
        ("z", ["self.setup()"], ["names"]),
    ],
)
def test_what_is_kept(name: str, present: list[str], absent: list[str]) -> None:
    """The statements that set it, those that set what they read, and the conditions around them."""
    code = kept(name)
    assert [text for text in present if text not in code] == []
    assert [text for text in absent if text in code] == []


@pytest.mark.parametrize("made", ["self.parts = config.parts", "self.parts: list = config.parts"])
def test_what_is_a_parameter_s_is_not_changed_here(made: str) -> None:
    """It is made elsewhere: what is called on it afterwards is not a part of what this object is."""
    module = cst.parse_module(f"{made}\nregister(self.parts)\n")
    found = prune(module.body, "self", "parts", lambda call: False, {}, frozenset(["config"]))
    assert "".join(module.code_for_node(statement) for statement in found) == f"{made}\n"


def test_an_attribute_that_is_not_set() -> None:
    """Nothing leads to it."""
    assert kept("nowhere") == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("self.x = 1", True),
        ("self.x: int = 1", True),
        ("self.x += 1", True),
        ("self.a, self.x, self.b = 1, 2, 3", True),
        ("self.x.append(3)", True),
        ("self.x == 1", False),
        ("self.xy = 1", False),
        ("return self.x", False),
        ("f(self.x)", False),
    ],
)
def test_a_quick_test_on_text(text: str, found: bool) -> None:
    """May a method set the attribute?"""
    assert assigns_attribute(text, "x") is found


@pytest.mark.parametrize(
    ("text", "assigned"),
    [
        ("self.x: int = 2", {"x"}),
        ("self.x //= 2", {"x"}),
        ("self.x = self.y = 3", {"x", "y"}),
        ("self.d[3] = 4", {"d"}),
        ("self.l.append(3)", {"l"}),
        ("    self.a, *self.b = f()", {"a", "b"}),
        ("(self.a,\n  self.b,\n) = f()", {"a", "b"}),
        ("[self.a, self.b] = f()", {"a", "b"}),
        ("if q: self.z, self.w = 1, 2", {"z", "w"}),
        ("f(self.a, b=1)", set()),
        ("f(\n    self.a,\n    b=1,\n)", set()),
        ('f"{self.device=} {self.x}"', set()),
        ("f(a=self.b, c=self.d)", set()),
        ("if self.a == 3:\n    pass", set()),
    ],
)
def test_what_a_text_assigns(text: str, assigned: set[str]) -> None:
    """Targets of every form count; what is handed to a call by name, compared or shown does not."""
    names = {name for name in ("a", "b", "d", "device", "l", "w", "x", "y", "z") if assigns_attribute(text, name)}
    assert names == assigned
