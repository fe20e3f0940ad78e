"""What holds for every answer about every target class of the released engines: none raises, no exact one is impossible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eaglelint.derive import ServingRequest, derive_serving
from eaglelint.serving import EngineHandle
from eaglelint.source.machine import Budget
from eaglelint.wiring import Evidence, LayerIds, Wiring

pytestmark = pytest.mark.real

_LAYERS = 24
_IDS = (1, 11, 20)
_DEFAULT = (2, 12, 21)  # both schools' own list, at this depth
_READINGS = {"sglang": {(2, 12, 21)}, "vllm": {(1, 11, 20)}}  # layer outputs, and boundaries
_PARTS = 4
_BUDGET = Budget(steps=30_000)


@pytest.mark.parametrize("part", range(_PARTS))
@pytest.mark.parametrize(("engine", "version"), [("sglang", "0.5.9"), ("sglang", "0.5.23"), ("vllm", "0.33.0")])
def test_no_exact_answer_is_impossible(engine: str, version: str, part: int, real_engine: Any) -> None:
    """Three ids bring three states of the stream, in order, at the boundaries that the engine's convention allows."""
    handle: EngineHandle = real_engine(engine, version)
    classes = handle.engine.target_classes(handle.source)
    assert len(classes) > 20
    wrong = []
    for target in classes[part::_PARTS]:
        explicit = _derive(handle, target, _IDS)
        wrong += _impossible(explicit, handle.source.package.parent, _READINGS[engine])
        if explicit.status != "unknown":  # else the default list would not be got through either
            wrong += _impossible(_derive(handle, target, "default"), handle.source.package.parent, {_DEFAULT})
    assert not wrong, "\n".join(wrong)


def _derive(handle: EngineHandle, target: Any, ids: LayerIds) -> Wiring:
    request = ServingRequest(target, _LAYERS, {"num_hidden_layers": _LAYERS}, layer_ids=ids)
    return derive_serving(handle.engine, handle.source, request, budget=_BUDGET)


def _impossible(wiring: Wiring, root: Path, readings: set[tuple[int, ...]]) -> list[str]:
    """What is wrong with a wiring whatever the class does."""
    name = f"{wiring.name} {wiring.layer_ids}: {wiring}"
    if wiring.status != "exact":
        return [] if wiring.reason or wiring.conditions else [f"{name} is {wiring.status} without a reason"]
    wrong = []
    if tuple(slot.boundary for slot in wiring.slots) not in readings:
        wrong.append(f"{name}, but the engine can only mean {readings}")
    if wiring.faults or wiring.conditions or wiring.reason:
        wrong.append(f"{name} is exact, and yet {wiring.faults or wiring.conditions or wiring.reason}")
    captures = {item.slot for item in wiring.evidence if item.slot is not None}
    if captures != set(range(len(wiring.slots))):
        wrong.append(f"{name} shows captures of {sorted(captures)}")
    if not wiring.evidence or wiring.evidence[0].slot is not None or "layer" not in wiring.evidence[0].note:
        wrong.append(f"{name} does not begin with the setter")
    wrong += [f"{name}: {item} does not read {item.note!r}" for item in wiring.evidence if not _is_there(item, root)]
    return wrong


def _is_there(item: Evidence, root: Path) -> bool:
    """Whether the line shown is one of the file, and begins or holds the code that the note quotes."""
    lines = (root / item.path).read_text(encoding="utf-8").splitlines()
    if not 1 <= item.line <= len(lines):
        return False
    quoted = item.note
    if " = [" in quoted:  # a list that was stored: the target of the assignment
        quoted = quoted.split(" = [")[0]
    text = "".join("".join(lines[item.line - 1 : item.line + 30]).split())
    # Its beginning: a long call is shown shortened, and without the comma and the line breaks before its end.
    return "".join(quoted.split())[:40].rstrip("…)") in text
