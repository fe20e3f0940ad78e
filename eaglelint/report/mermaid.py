"""The wiring as a Mermaid flowchart, for READMEs and issues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eaglelint.report.picture import Panel, panels
from eaglelint.report.printable import one_line
from eaglelint.wiring import Wiring

__all__ = ["mermaid_document"]


def mermaid_document(wirings: Sequence[Wiring]) -> str:
    """One chart: the states of the target, the slots of fc, and an arrow for each party."""
    lines = ["flowchart LR"]
    for number, panel in enumerate(panels(wirings)):
        lines += [f"    {line}" for line in _panel(panel, f"p{number}")]
    return "\n".join(lines) + "\n"


def _panel(panel: Panel, name: str) -> Iterator[str]:
    sides = [(panel.trained, "trained"), (panel.served, "served")]
    title = " / ".join(_text(wiring.name) for wiring, _ in sides if wiring is not None)
    yield f'subgraph {name} ["{title}"]'
    states: dict[str, str] = {}
    edges = []
    for wiring, verb in sides:
        for index, slot in enumerate(wiring.slots if wiring is not None else ()):
            node = states.setdefault(str(slot), f"{name}_h{len(states)}")
            differs = index in panel.differing and verb == "served"
            arrow = f'-. "{verb} ≠" .->' if differs else f'-- "{verb}" -->'
            edges.append(f"{node} {arrow} {name}_s{index}")
    for state, node in states.items():
        yield f'    {node}["{_text(state)}"]'
    for index in range(_count(panel)):
        shape = ('{{"', '"}}') if index in panel.differing else ('["', '"]')
        yield f"    {name}_s{index}{shape[0]}slot {index}{shape[1]} --> {name}_fc"
    yield f'    {name}_fc[["fc"]] --> {name}_draft(["draft"])'
    yield from (f"    {edge}" for edge in edges)
    yield "end"


def _count(panel: Panel) -> int:
    return max((len(wiring.slots) for wiring in (panel.trained, panel.served) if wiring is not None), default=0)


def _text(text: str) -> str:
    """Mermaid's own entities for what would end a label."""
    return one_line(text).replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
