"""A trace as a Mermaid flowchart, for pull requests and documentation: one box for each function, one node a place."""

from __future__ import annotations

from eaglelint.report.printable import one_line
from eaglelint.trace.model import Flow, Occurrence, Trace

__all__ = ["render_mermaid"]

_LONGEST_CODE = 70


def render_mermaid(trace: Trace) -> str:
    """The trace as text that Mermaid draws."""
    lines = ["flowchart TD"]
    groups: dict[tuple[str, str | None], list[int]] = {}
    for index, item in enumerate(trace.occurrences):
        groups.setdefault((item.path, item.function), []).append(index)
    for number, ((path, function), members) in enumerate(groups.items()):
        title = _text(f"{function or 'module'} ({path})")
        lines.append(f'  subgraph f{number}["{title}"]')
        lines += [f"    n{index}{_node(trace.occurrences[index])}" for index in members]
        lines.append("  end")
    for index, item in enumerate(trace.occurrences):
        lines += [f"  n{index} {_arrow(flow)} n{flow.to}" for flow in item.flows]
    none = [f"n{index}" for index, item in enumerate(trace.occurrences) if item.may_be_none is not None]
    if none:
        lines += ["  classDef none stroke:#c33,stroke-width:2px", f"  class {','.join(none)} none"]
    return "\n".join(lines)


def _node(item: Occurrence) -> str:
    code = item.code if len(item.code) <= _LONGEST_CODE else f"{item.code[: _LONGEST_CODE - 1]}…"
    return f'["{_text(f"{item.name} · {item.kind} · {item.line}:{item.column}")}<br/>{_text(code)}"]'


def _arrow(flow: Flow) -> str:
    if flow.decides:
        return "-. decides .->"
    return "-->" if flow.certain else "-. perhaps .->"


def _text(text: str) -> str:
    """Text in a quoted label: what Mermaid or Markdown would read as markup is written as an entity."""
    escaped = one_line(text).replace("#", "#35;").replace("&", "#38;").replace('"', "#quot;")
    return escaped.replace("<", "#lt;").replace(">", "#gt;").replace("`", "#96;")
