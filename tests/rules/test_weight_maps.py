"""A stack's exporters in findings on weights: the name before, and the way of exporting that writes another one."""

from __future__ import annotations

import pytest

from eaglelint.artifacts.checkpoint import Checkpoint
from eaglelint.artifacts.tensors import Tensor
from eaglelint.draft_modules import BuiltModule, DraftModules
from eaglelint.exported import Saved, WeightMap
from eaglelint.finding import Finding
from eaglelint.registry import find_rule
from eaglelint.rule import Facts
from tests.rules.facts import eagle3, target

PLAIN = WeightMap(
    "convert.py", 3, (Saved("draft_model.midlayer.norm.weight", ("midlayer.norm.weight",), "convert.py", 4),)
)
RENAMING = WeightMap(
    "convert.py",
    3,
    (Saved("draft_model.midlayer.norm.weight", ("layers.0.norm.weight",), "convert.py", 9),),
    option="--vllm",
    stack="torchspec 1.0",
)


def checkpoint(*names: str) -> Checkpoint:
    tensors = {name: Tensor(name, "BF16", (4,), "draft/model.safetensors") for name in names}
    return Checkpoint("draft/model.safetensors", tensors, frozenset(names))


def found(code: str, names: tuple[str, ...], maps: tuple[WeightMap, ...], module: str = "") -> list[Finding]:
    """What the rule finds in a checkpoint of these names; the engine's class has one norm and loads nothing into it."""
    built = DraftModules("vllm 9", "Draft", (BuiltModule(module, True, "draft.py", 7),), (), (), ("draft.py", 20))
    rule = find_rule(code)
    facts = Facts(
        eagle3([2, 30, 58]),
        target(),
        None,
        (),
        checkpoint=checkpoint(*names),
        built=(built,) if module else (),
        weight_maps=maps,
    )
    return list(rule.check(rule, facts))


def test_the_exporter_that_renamed_what_a_loader_leaves_out() -> None:
    """With its line and the name before."""
    (finding,) = found("WGT005", ("layers.0.norm.weight",), (RENAMING,), "model.midlayer.norm")
    renamed = [related for related in finding.related if related.label == "renamed"]
    assert [(row.message, row.span.path, row.span.start.line) for row in renamed] == [
        ("draft_model.midlayer.norm.weight by torchspec 1.0 (--vllm)", "convert.py", 9)
    ]


def test_the_way_of_exporting_that_writes_the_name_asked_for() -> None:
    """The checkpoint was written without the option: the help names it."""
    (finding,) = found("WGT005", ("midlayer.norm.weight",), (RENAMING,), "model.layers.0.norm")
    assert finding.help is not None and finding.help.endswith(
        "torchspec 1.0 (--vllm) writes it as layers.0.norm.weight."
    )
    (other,) = found("WGT005", ("midlayer.norm.weight",), (PLAIN,), "model.layers.0.norm")
    assert other.help is not None and other.help.endswith("takes its names.")


def test_the_line_that_leaves_out_what_is_missing() -> None:
    """A converter that has no place for the layer."""
    losing = WeightMap("convert.py", 3, (Saved("midlayer.*", (), "convert.py", 5),), stack="speculators 0.3.0")
    (finding,) = found("WGT001", ("fc.weight",), (losing,))
    assert [(row.label, row.message, row.span.start.line) for row in finding.related] == [
        ("left out", "midlayer.* by speculators 0.3.0", 5)
    ]


@pytest.mark.parametrize(
    ("saved", "provisos", "findings"),
    [
        (Saved("embed_tokens.weight", (), "save.py", 5, trained=True), (), [("warning", "likely")]),
        (Saved("embed_tokens.weight", (), "save.py", 5, trained=True), ("if so",), [("note", "possible")]),
        (Saved("embed_tokens.weight", (), "save.py", 5, trained=False), (), []),
        (Saved("embed_tokens.weight", (), "save.py", 5, trained=None), (), []),
        (Saved("embed_tokens.weight", (), "save.py", 5, trained=True, condition="when x"), (), []),
        (Saved("embed_tokens.weight", ("embed_tokens.weight",), "save.py", 5, trained=True), (), []),
    ],
)
def test_what_was_trained_and_is_left_out(
    saved: Saved, provisos: tuple[str, ...], findings: list[tuple[str, str]]
) -> None:
    """Only what is known to be trained, in a checkpoint that does not have it."""
    whole = ("fc.weight", "midlayer.norm.weight")
    maps = (WeightMap("save.py", 1, (saved,), provisos=provisos, stack="angelslim 0.5.0"),)
    assert [(item.severity, item.confidence) for item in found("WGT001", whole, maps)] == findings
    assert found("WGT001", (*whole, "model.embed_tokens.weight"), maps) == []
