"""The targets whose final norm multiplies with one more than its weight are those of transformers' own classes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from eaglelint.registry import find_rule, module_of
from tests.real.packages import TRANSFORMERS_5_24_0, package_directory

pytestmark = pytest.mark.real

_CLASS = re.compile(r"^class (\w*Norm)\(nn\.Module\):(.*?)(?=^class |\Z)", re.S | re.M)
_ADDS_ONE = re.compile(r"\(1(?:\.0)? \+ self\.weight")


def read() -> Iterator[str]:
    """The norms of transformers that add one to their weight, and that a model ends with."""
    for file in sorted(Path(package_directory(TRANSFORMERS_5_24_0), "models").glob("*/modeling_*.py")):
        text = file.read_text("utf-8")
        for name, body in _CLASS.findall(text):
            if _ADDS_ONE.search(body) and re.search(rf"self\.(?:final_)?norm = {name}\(", text):
                yield name


def test_the_list_is_what_the_classes_do() -> None:
    """Each class of the list is there and adds one, and none that does so is missing."""
    rule = import_module(module_of(find_rule("NRM004")))
    assert frozenset(read()) == rule.ONE_MORE_CLASSES
