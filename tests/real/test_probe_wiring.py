"""docs/probe-wiring.md is what the probe sees today: all of SGLang 0.5.9, and a stretch of vLLM 0.33.0."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("torch")

from eaglelint.probe.wiring.engine import ClassProbe
from eaglelint.report.probe_wiring import render_markdown
from tests.real.packages import SGLANG_0_5_9, VLLM_0_33_0, Package
from tools.probe_table import PAGE, probed

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif("sys.platform != 'linux'", reason="scanned code is contained on Linux alone"),
]


def _rows(label: str, probes: tuple[ClassProbe, ...]) -> list[str]:
    return [line for line in render_markdown(label, probes).splitlines() if line.startswith("| `")]


@pytest.mark.parametrize(
    ("package", "some"), [(SGLANG_0_5_9, slice(None)), (VLLM_0_33_0, slice(25, 50))], ids=["sglang", "vllm"]
)
def test_the_page_is_fresh(package: Package, some: slice) -> None:
    """Each class that is run has its row in the page, and no class that ran disagrees with the interpreter."""
    page = PAGE.read_text(encoding="utf-8")
    handle, probes = probed(package, some)
    assert [row for row in _rows(handle.label, probes) if row not in page] == []
    assert [probe.target_class for probe in probes if probe.verdict == "disagrees"] == []
    names = [binding.item.name for binding in handle.engine.target_classes(handle.source, "eagle3")]  # type: ignore[union-attr]
    section = page.partition(f"## {handle.label}\n")[2].partition("\n## ")[0]
    assert [row.split("`")[1] for row in section.splitlines() if row.startswith("| `")] == names


@pytest.mark.parametrize("label", ["sglang 0.5.9", "vllm 0.33.0"])
def test_most_classes_run_and_each_as_derived(label: str) -> None:
    """At least 70 % of a release's target classes run under stand-ins and capture states, all of them as derived."""
    counted = PAGE.read_text(encoding="utf-8").partition(f"## {label}\n\n")[2].splitlines()[0]
    total, ran, same, _, disagree, _ = (int(number) for number in re.findall(r"\b\d+\b", counted))
    assert ran >= 0.7 * total
    assert same == ran
    assert disagree == 0
