"""What a trace tells of small programs: the way of a value, its conditions, and where it is None."""

from __future__ import annotations

import pytest

from eaglelint.exceptions import UnreadableInput, WrongUsage
from eaglelint.trace import tracer
from tests.trace.conftest import Tracing, reached

MODES = """\
from enum import IntEnum


class Mode(IntEnum):
    NULL = 0
    LAST = 1
    FULL = 2

    def need_capture(self):
        return self != Mode.NULL

    def is_full(self):
        return self == Mode.FULL


def store(aux, mode: Mode):
    if not mode.need_capture():
        return None
    if mode.is_full():
        kept = aux
    else:
        kept = aux[0]
    return kept
"""


def test_conditions_name_branches_and_early_returns(traced: Tracing) -> None:
    """What is reached only after an early return did not happen carries the opposite of its test."""
    found = traced("aux", MODES)
    assert [(item.line, item.guards) for item in found.occurrences if item.name == "aux"] == [
        (16, ()),
        (20, ("mode.need_capture()", "mode.is_full()")),
        (22, ("mode.need_capture()", "not mode.is_full()")),
    ]


@pytest.mark.parametrize(("mode", "lines"), [("FULL", [16, 20]), ("LAST", [16, 22]), ("Mode.NULL", [16])])
def test_a_mode_keeps_what_it_reaches(traced: Tracing, mode: str, lines: list[int]) -> None:
    """The guards are asked for one member of the enum, through the enum's own methods."""
    found = traced("aux", MODES, mode=mode)
    assert [item.line for item in found.occurrences if item.name == "aux"] == lines


def test_a_position_of_a_tuple_goes_to_its_own_name(traced: Tracing) -> None:
    """Through a return of two values only the name at the same position is reached."""
    source = "def make(x, y):\n    return y, x\n\n\ndef use(a, b):\n    c, d = make(a, b)\n    print(c)\n    print(d)\n"
    assert reached(traced("a", source), 5, "a") & {(7, "c"), (8, "d")} == {(8, "d")}


def test_calls_across_files_and_classes(traced: Tracing) -> None:
    """By keyword, through a method of a base class in another file, an attribute and a renaming."""
    files = {
        "base.py": "class Base:\n    def keep(self, states):\n        self.kept = list(states)\n",
        "child.py": "from base import Base\n\n\nclass Child(Base):\n    def read(self):\n        return self.kept\n",
        "main.py": "from child import Child\n\n\ndef run(aux):\n    c = Child()\n    c.keep(states=aux)\n"
        "    out = c.read()\n    return out\n",
    }
    found = traced("aux", files)
    assert {(7, "out"), (8, "out"), (3, "kept"), (6, "kept"), (2, "states")} <= reached(found, 4, "aux")


def test_two_ends_prune(traced: Tracing) -> None:
    """--to keeps the way to one place, and --from the way from another."""
    source = "def f(a, g):\n    b = a\n    c = b\n    d = b\n    g(d)\n    return c\n"
    assert {item.name for item in traced("b", source, end="d").occurrences} == {"b", "d"}
    assert {item.name for item in traced("b", source, start="a").occurrences} == {"a", "b"}
    with pytest.raises(UnreadableInput, match="does not reach nothing"):
        traced("b", source, end="nothing")


NONE = """\
def prune(aux, full, logprob):
    kept = None
    if full:
        if aux is not None:
            kept = [a for a in aux]
    elif not logprob:
        if aux is not None:
            kept = aux[0]
    {filled}
    return kept


def store(aux, full, logprob):
    kept = prune(aux, full, logprob)
    if aux is not None:
        {checked}
        return cat(kept)
"""


@pytest.mark.parametrize(
    ("filled", "checked", "expected"),
    [
        ("", "", ("not full", "logprob", "aux is not None")),
        ("if kept is None and aux is not None: kept = aux", "", None),
        ("", "assert kept is not None", None),
        ("", "if not full and logprob: return", None),
        ("", "kept = kept or []", None),
    ],
)
def test_none_is_said_only_where_a_path_leaves_it(
    traced: Tracing, filled: str, checked: str, expected: tuple[str, ...] | None
) -> None:
    """The path goes over two functions; one that fills, checks or returns before is no such path."""
    source = NONE.format(filled=filled or "pass", checked=checked or "pass")
    found = traced("kept", source)
    (item,) = [item for item in found.occurrences if item.line == 17 and item.name == "kept"]
    assert item.may_be_none == expected


def test_a_loop_that_may_have_no_round_is_no_proof(traced: Tracing) -> None:
    """Whether a loop runs is not known: None that only an empty loop leaves is not reported."""
    source = "def f(xs, g):\n    kept = None\n    for x in xs:\n        kept = x\n    g(kept)\n"
    (item,) = [item for item in traced("kept", source).occurrences if item.line == 5]
    assert item.may_be_none is None


def test_a_test_of_another_local_is_no_proof(traced: Tracing) -> None:
    """Where another variable of the function decides, the two may be set together: nothing is claimed."""
    source = (
        "def f(aux, g):\n    kept = lists = None\n    if aux is not None:\n        lists = []\n    if lists is not None:\n"
        "        kept = lists\n    if aux is not None:\n        g(kept)\n"
    )
    (item,) = [item for item in traced("kept", source).occurrences if item.line == 8]
    assert item.may_be_none is None


def test_no_member_of_the_enum_means_no_path(traced: Tracing) -> None:
    """Conditions that no member of an enum answers all together are no path."""
    source = MODES + (
        "\n\ndef last(aux, mode: Mode):\n    out = None\n    if mode.is_full():\n        out = aux\n"
        "    if mode == Mode.FULL:\n        return out\n"
    )
    (item,) = [item for item in traced("out", source).occurrences if item.kind == "returned"]
    assert item.may_be_none is None


def test_a_class_attribute_and_a_place(traced: Tracing) -> None:
    """``Class.attribute`` takes one class's, ``file:function:name`` one function's."""
    source = (
        "class A:\n    def __init__(self):\n        self.ids = [1]\n\n    def read(self):\n        return self.ids\n\n\n"
        "class B:\n    def __init__(self):\n        self.ids = [2]\n"
    )
    assert [item.line for item in traced("A.ids", source).occurrences if item.name == "ids"] == [3, 6]
    assert [item.line for item in traced("program.py:read:ids", source).occurrences if item.name == "ids"] == [6]
    with pytest.raises(WrongUsage, match="no class C"):
        traced("C.ids", source)


def test_a_key_with_its_transform_and_what_it_chooses(traced: Tracing) -> None:
    """From a config's key over the shift and the default to the list that a membership test fills."""
    source = (
        "def setup(config, model):\n    ids = getattr(config, 'layer_ids', None)\n    if ids is None:\n"
        "        model.layers = [1, 2]\n    else:\n        model.layers = [i + 1 for i in ids]\n\n\n"
        "def run(model, hidden):\n    aux = []\n    for i, layer in enumerate(model.blocks):\n"
        "        if i in model.layers:\n            aux.append(hidden)\n    return aux\n"
    )
    found = traced("layer_ids", source, end="aux")
    assert {(item.line, item.name) for item in found.occurrences} >= {
        (2, "layer_ids"), (2, "ids"), (3, "ids"), (4, "layers"), (6, "layers"), (12, "layers"), (13, "aux"),
    }  # fmt: skip
    key = next(item for item in found.occurrences if item.name == "layer_ids")
    assert key.fallback == "None"


def test_a_file_that_does_not_parse_is_named_and_skipped(traced: Tracing) -> None:
    """The rest is traced."""
    found = traced("x", {"good.py": "x = 1\n", "bad.py": "def f(:\n    x = 1\n"})
    assert [item.path for item in found.occurrences] == ["good.py"]
    assert [line.split(":")[0] for line in found.skipped] == ["bad.py"]


def test_what_does_not_occur_gets_a_sentence(traced: Tracing) -> None:
    """Names that are not there, symbols that are none, modes that no enum has."""
    with pytest.raises(UnreadableInput, match="y occurs nowhere"):
        traced("y", "x = 1\n")
    with pytest.raises(WrongUsage, match="is no symbol"):
        traced("x+1", "x = 1\n")
    with pytest.raises(WrongUsage, match="no enum in the files has a member OTHER"):
        traced("x", "x = 1\n", mode="OTHER")


def test_an_object_that_a_method_without_annotation_makes(traced: Tracing) -> None:
    """``self.model = self._make()``: calls of it are calls of what the method returns."""
    source = (
        "class Inner:\n    def forward(self, aux):\n        kept = aux\n        return kept\n\n\n"
        "class Outer:\n    def __init__(self):\n        self.model = self._make()\n\n"
        "    def _make(self):\n        return Inner()\n\n"
        "    def run(self, states):\n        out = self.model(states)\n        return out\n"
    )
    assert {(3, "kept"), (15, "out"), (16, "out")} <= reached(traced("states", source), 14, "states")
    assert (15, "out") in reached(traced("aux", source, end="out"), 2, "aux")


def test_a_module_that_only_a_registry_makes_is_called_as_what_a_loader_gave(traced: Tracing) -> None:
    """The way is found between two ends, and said to be a guess; a call with other arguments is none of it."""
    files = {
        "loader.py": "from torch import nn\n\n\ndef load_model(name) -> nn.Module:\n    return REGISTRY[name]()\n",
        "model.py": "from torch import nn\n\n\nclass Target(nn.Module):\n    def forward(self, ids, places):\n"
        "        aux = [ids]\n        return aux\n",
        "runner.py": "from loader import load_model\n\n\nclass Runner:\n    def __init__(self, model=None):\n"
        "        self.model = model or load_model('x')\n\n    def run(self, ids, places):\n"
        "        out = self.model(ids, places)\n        return out\n\n    def probe(self, ids):\n"
        "        other = self.model(ids)\n        return other\n",
    }
    found = traced("aux", files, end="out")
    assert (9, "out") in reached(found, 6, "aux")
    assert [flow.certain for item in found.occurrences for flow in item.flows if flow.how] == [False]
    with pytest.raises(UnreadableInput, match="does not reach other"):
        traced("aux", files, end="other")


def test_what_a_function_inside_returns_is_not_what_its_maker_returns(traced: Tracing) -> None:
    """A decorator without annotation gives back a function, not the object that the function makes."""
    source = (
        "class Kept:\n    def forward(self, aux):\n        inside = aux\n        return inside\n\n\n"
        "def maker(states):\n    def make():\n        return Kept()\n\n    return make\n\n\n"
        "def run(states):\n    thing = maker(0)\n    out = thing(states)\n    return out\n"
    )
    assert (3, "inside") not in reached(traced("states", source), 14, "states")


def test_calls_in_the_same_file_are_followed_before_words_are_looked_for(
    traced: Tracing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However large the tree is: the way back to the method that calls another one of its class is always told."""
    monkeypatch.setattr(tracer, "_MOST_SEARCHED", 0)
    source = (
        "class Processor:\n    def _pruned(self, states):\n        kept = states[0]\n        return kept\n\n"
        "    def forward(self, states):\n        mine = self._pruned(states)\n        return mine\n"
    )
    found = traced("kept", source)
    assert (7, "mine") in reached(found, 3, "kept")
    assert found.notes == ("The value goes to more places than are shown; give --to, --from or fewer paths.",)
