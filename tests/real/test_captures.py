"""What eaglelint derives from released engines against what a person read in the same sources (captures.toml)."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from eaglelint.deployment import parse_assumptions
from eaglelint.derive import ServingRequest, derive_serving
from eaglelint.serving import EngineHandle
from eaglelint.wiring import LayerIds, Wiring

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.real

_TABLE = Path(__file__).with_name("captures.toml")


@dataclass(frozen=True)
class Place:
    """A line of a package, or the lines of one statement: any of them names it."""

    path: str
    first: int
    last: int

    @classmethod
    def read(cls, text: str) -> Place:
        path, _, lines = text.rpartition(":")
        first, _, last = lines.partition("-")
        return cls(path, int(first), int(last or first))

    def holds(self, path: str, line: int) -> bool:
        return path.replace("\\", "/").endswith("/" + self.path) and self.first <= line <= self.last

    def __str__(self) -> str:
        return f"{self.path}:{self.first}"


def _rows() -> list[Any]:
    """The table's rows, named by class, release and ids."""
    with _TABLE.open("rb") as file:
        rows = tomllib.load(file)["row"]
    return [pytest.param(row, id=_name(row)) for row in rows]


def _name(row: dict[str, Any]) -> str:
    ids = row.get("ids", "from-config")
    if isinstance(ids, list):
        ids = ",".join(map(str, ids))
    elif "draft" in row:
        ids = "from-config" if "found" in row else "not-in-config"
    assumed = "".join(f"-{text}" for text in row.get("assume", ()))
    return f"{row['engine']}-{row['version']}-{row['class']}-{ids}{assumed}"


def _derive(row: dict[str, Any], handle: EngineHandle) -> Wiring:
    target = handle.engine.target_class(handle.source, row["class"])
    assert target is not None, f"{handle.source.label} has no {row['class']}"
    ids: LayerIds = tuple(row["ids"]) if isinstance(row.get("ids"), list) else "default"
    layers = row["layers"]
    data = {"architectures": [row["class"]], **row.get("target", {"num_hidden_layers": layers})}
    deployment = parse_assumptions(row.get("assume", ()))
    request = ServingRequest(target, layers, data, draft_data=row.get("draft"), layer_ids=ids, deployment=deployment)
    return derive_serving(handle.engine, handle.source, request)


def _for_slots(places: str | list[str], count: int) -> list[Place | None]:
    """One place, or none, for each slot; a single one stands for all."""
    texts = places if isinstance(places, list) else [places] * count
    assert len(texts) == count
    return [Place.read(text) if text else None for text in texts]


def _shown(wiring: Wiring) -> str:
    lines = [f"{wiring.status}: {wiring}", *(f"  {item} (slot {item.slot}) {item.note}" for item in wiring.evidence)]
    lines += [f"  faults: {fault}" for fault in wiring.faults]
    lines += [f"  when {condition.text}: {condition.slots}" for condition in wiring.conditions]
    return "\n".join([*lines, f"  reason: {wiring.reason}"])


@pytest.mark.parametrize("row", _rows())
def test_the_answer_is_what_the_source_says(row: dict[str, Any], real_engine: Any) -> None:
    """An exact answer has the table's slots and the table's lines; a required row has an exact answer."""
    wiring = _derive(row, real_engine(row["engine"], row["version"]))
    shown = _shown(wiring)
    if "refuses" in row:
        assert wiring.status == "unknown", shown
        assert not wiring.slots, shown
        assert row["refuses"] in (wiring.reason or ""), shown
        return
    if "stops" in row:
        _stops(row, wiring, shown)
        return
    if not row.get("required", True) and wiring.status != "exact":
        return
    assert wiring.status == "exact", shown
    assert "slots" in row, f"no exact answer describes what happens: {row['idiom']}\n{shown}"
    slots = [str(slot) for slot in wiring.slots]
    assert slots == row["slots"].split(), shown
    _evidence(row, wiring, shown)
    if "draft" in row:
        found = row.get("found")
        assert wiring.ids_from == (tuple(found.split(".")) if found else None), shown


def _stops(row: dict[str, Any], wiring: Wiring, shown: str) -> None:
    """Not an exact answer: the line at which the code stops is told, and no state is claimed that it does not give."""
    assert wiring.status != "exact", shown
    place = Place.read(row["stops"])
    if any(f"{row['stops']})" in condition.text for condition in wiring.conditions):
        return  # conditional on the code not stopping at that line
    told = [(fault.path, fault.line) for fault in wiring.faults]
    told += [(item.path, item.line) for item in wiring.evidence if item.note.startswith("raises")]
    if row.get("required", True) or told:
        assert any(place.holds(path, line) for path, line in told), shown
    expected = row.get("slots", "").split()
    claimed = [(index, str(slot)) for index, slot in enumerate(wiring.slots) if slot.known]
    assert all(index < len(expected) and slot == expected[index] for index, slot in claimed), shown


def _evidence(row: dict[str, Any], wiring: Wiring, shown: str) -> None:
    """The lines that were read are among those that are shown, each with its slot."""
    count = len(wiring.slots)
    missing = []
    for name in ("setter", "concat"):
        if name in row:
            place = Place.read(row[name])
            if not any(item.slot is None and place.holds(item.path, item.line) for item in wiring.evidence):
                missing.append(f"{name} {place}")
    for name in ("capture", "hands"):
        if name in row:
            for index, place in enumerate(_for_slots(row[name], count)):
                items = [item for item in wiring.evidence if item.slot == index]
                if place is not None and not any(place.holds(item.path, item.line) for item in items):
                    missing.append(f"{name} {place} of slot {index}")
    assert not missing, f"not in the evidence: {', '.join(missing)}\n{shown}"
