"""The wiring as a Mermaid flowchart, for READMEs and issues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eaglelint.report.picture import Panel
from eaglelint.report.printable import one_line

__all__ = ["mermaid_document"]


def mermaid_document(shown: Sequence[Panel]) -> str:
    """One chart: the states of the target, the slots of fc, and an arrow for each party."""
    lines = ["flowchart LR"]
    for number, panel in enumerate(shown):
        lines += [f"    {line}" for line in _panel(panel, f"p{number}")]
    return "\n".join(lines) + "\n"


def _panel(panel: Panel, name: str) -> Iterator[str]:
    title = " / ".join([*([_text(panel.about)] if panel.about else []), *(_text(side.name) for side, _ in panel.sides)])
    yield f'subgraph {name} ["{title}"]'
    states: dict[str, str] = {}
    edges = []
    for wiring, verb in panel.sides:
        for index, slot in enumerate(wiring.slots):
            node = states.setdefault(str(slot), f"{name}_h{len(states)}")
            differs = index in panel.differing and verb == panel.verbs[1]
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
    return max((len(wiring.slots) for wiring, _ in panel.sides), default=0)


def _text(text: str) -> str:
    """Mermaid's own entities for what would end a label."""
    return one_line(text).replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
