"""DTY002's list of SGLang's quantisation methods against the released sources: each asks for a file of its own."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import pytest

from eaglelint.serving import EngineHandle
from eaglelint.source.calls import call_value
from eaglelint.source.lookup import get_attribute, global_value
from eaglelint.source.machine import Machine
from eaglelint.source.values import ClassValue

pytestmark = pytest.mark.real


@pytest.mark.parametrize("version", ["0.5.9", "0.5.23"])
def test_the_methods_of_the_rule_are_built_by_a_file(
    version: str, real_engine: Callable[[str, str], EngineHandle]
) -> None:
    """Of the methods that DTY002 speaks of, those that a release registers name files, as its classes say."""
    source = real_engine("sglang", version).source
    machine = Machine(source.tree)
    module = source.tree.module_at(source.package / "srt/layers/quantization/__init__.py")
    assert module is not None
    table = global_value(machine, module, "BASE_QUANTIZATION_METHODS")
    assert isinstance(table, dict)
    listed = import_module("eaglelint.rules.dtype.misstated_quantization")._BY_A_FILE
    classes = {method: table[method] for method in listed if isinstance(table.get(method), ClassValue)}
    files = {
        method: call_value(machine, get_attribute(machine, cls, "get_config_filenames"), (), {}, None)
        for method, cls in classes.items()
    }
    assert {"awq", "awq_marlin", "gptq_marlin", "moe_wna16"} <= files.keys()
    assert [method for method, names in files.items() if not names or not all(isinstance(n, str) for n in names)] == []
