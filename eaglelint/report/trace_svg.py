"""A trace as a drawing: the places below each other, function by function, the ways of the value as arcs beside them.

One self-contained SVG without scripts or fonts of its own; it follows the reader's light or dark mode.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from eaglelint.report.printable import one_line
from eaglelint.trace.model import Occurrence, Trace

__all__ = ["render_svg"]

_ROW, _HEAD, _LANE = 40, 34, 14
_CODE = 96
_STYLE = """
:root{--ink:#1b1f24;--dim:#656d76;--paper:#fff;--line:#d0d7de;--flow:#0969da;--decides:#9a6700;--none:#cf222e;--key:#8250df}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#8b949e;--paper:#0d1117;--line:#30363d;--flow:#58a6ff;
--decides:#d29922;--none:#f85149;--key:#bc8cff}}
text{font:13px ui-sans-serif,system-ui,sans-serif;fill:var(--ink)}
.code{font:12px ui-monospace,SFMono-Regular,Menlo,monospace;fill:var(--dim)}
.dim{fill:var(--dim)}.name{font-weight:600}.head{font-weight:600;fill:var(--dim)}.none{fill:var(--none)}.key{fill:var(--key)}
.flow{fill:none;stroke:var(--flow);stroke-width:1.3}.decides{stroke:var(--decides);stroke-dasharray:5 3}
.perhaps{stroke-dasharray:2 3}.dot{fill:var(--flow)}.rule{stroke:var(--line)}
"""


@dataclass(frozen=True, slots=True)
class _Arc:
    start: int
    end: int
    style: str
    title: str


def render_svg(trace: Trace) -> str:
    """The trace as the text of an SVG file."""
    order = _order(trace.occurrences)
    arcs = [
        _Arc(index, flow.to, f"flow{' decides' if flow.decides else ''}{'' if flow.certain else ' perhaps'}", flow.how)
        for index in order
        for flow in trace.occurrences[index].flows
    ]
    heights, heads, height = _heights(trace.occurrences, order)
    lanes = _lanes(arcs, heights)
    left = 24 + _LANE * (max(lanes.values(), default=0) + 1)
    width = left + 40 + 8 * _CODE
    title = _text(f"{trace.symbol}: {len(trace.occurrences)} places")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{title}">',
        f"<title>{title}</title><style>{_STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="var(--flow)"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="var(--paper)"/>',
    ]
    for y, text in heads:
        parts.append(f'<line class="rule" x1="{left}" x2="{width - 16}" y1="{y - 20}" y2="{y - 20}"/>')
        parts.append(f'<text class="head" x="{left}" y="{y}">{_text(text)}</text>')
    for index in order:
        parts += _row(trace.occurrences[index], left, heights[index])
    for number, arc in enumerate(arcs):
        parts.append(_arc(arc, left - 8, heights, lanes[number]))
    parts.append("</svg>")
    return "\n".join(parts)


def _order(items: tuple[Occurrence, ...]) -> list[int]:
    """In the order of the flow: function after function as the value comes to them, the lines of each in order."""
    reached = {flow.to for item in items for flow in item.flows}
    pending = [index for index in range(len(items)) if index not in reached][::-1]
    groups: dict[tuple[str, str | None], None] = {}
    seen: set[int] = set()
    while pending:
        index = pending.pop()
        if index in seen:
            continue
        seen.add(index)
        groups.setdefault((items[index].path, items[index].function))
        pending += [flow.to for flow in reversed(items[index].flows)]
    for item in items:
        groups.setdefault((item.path, item.function))
    rank = {group: number for number, group in enumerate(groups)}
    return sorted(range(len(items)), key=lambda index: (rank[items[index].path, items[index].function], index))


def _heights(items: tuple[Occurrence, ...], order: list[int]) -> tuple[dict[int, int], list[tuple[int, str]], int]:
    """Where each row is, and each function's heading."""
    heights: dict[int, int] = {}
    heads: list[tuple[int, str]] = []
    y, group = 12, None
    for index in order:
        item = items[index]
        if (item.path, item.function) != group:
            group = (item.path, item.function)
            y += _HEAD
            heads.append((y, f"{item.function or 'module'} — {item.path}"))
            y += 26
        heights[index] = y
        y += _ROW
    return heights, heads, y + 4


def _lanes(arcs: list[_Arc], heights: dict[int, int]) -> dict[int, int]:
    """A lane for each arc, the short ones innermost, so that none lies on another."""
    lanes: dict[int, int] = {}
    taken: list[list[tuple[int, int]]] = []
    spans = {
        number: (min(heights[arc.start], heights[arc.end]), max(heights[arc.start], heights[arc.end]))
        for number, arc in enumerate(arcs)
    }
    for number in sorted(spans, key=lambda each: spans[each][1] - spans[each][0]):
        low, high = spans[number]
        for lane, used in enumerate(taken):
            if all(high < first or low > last for first, last in used):
                used.append((low, high))
                lanes[number] = lane
                break
        else:
            taken.append([(low, high)])
            lanes[number] = len(taken) - 1
    return lanes


def _arc(arc: _Arc, x: int, heights: dict[int, int], lane: int) -> str:
    start, end = heights[arc.start] - 4, heights[arc.end] - 6
    out = x - _LANE * (lane + 1)
    bend = min(10, abs(end - start) // 2)
    step = bend if end > start else -bend
    path = (
        f"M{x} {start}H{out + bend}Q{out} {start} {out} {start + step}V{end - step}Q{out} {end} {out + bend} {end}H{x}"
    )
    title = f"<title>{_text(arc.title)}</title>" if arc.title else ""
    return f'<path class="{arc.style}" d="{path}" marker-end="url(#tip)">{title}</path>'


def _row(item: Occurrence, x: int, y: int) -> list[str]:
    notes = ""
    if item.value is not None:
        notes += f'<tspan class="key"> = {_text(_cut(item.value, 60))}</tspan>'
    if item.may_be_none is not None:
        notes += '<tspan class="none"> may be None</tspan>'
    guards = " and ".join(item.guards)
    hint = f"<title>{_text(f'if {guards}')}</title>" if guards else ""
    return [
        f'<circle class="dot" cx="{x - 4}" cy="{y - 4}" r="2.5"/>',
        f'<text x="{x + 6}" y="{y}">{hint}<tspan class="name">{_text(item.name)}</tspan>'
        f'<tspan class="dim"> {item.kind} · {item.line}:{item.column}</tspan>{notes}</text>',
        f'<text class="code" x="{x + 6}" y="{y + 16}">{_text(_cut(item.code, _CODE))}</text>',
    ]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _text(text: str) -> str:
    return escape(one_line(text))
