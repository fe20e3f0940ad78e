"""The wiring as one HTML file: the pictures, and below each the lines that prove it. No script, no network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from eaglelint.report.picture import STYLE, Panel, panel_svg, panels
from eaglelint.report.printable import one_line
from eaglelint.wiring import Wiring

__all__ = ["html_document"]

_PAGE = """
body {
  font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 0 auto; max-width: 760px; padding: 16px; overflow-wrap: anywhere;
}
svg { max-width: 100%; height: auto; }
h2 { font-size: 1.1em; margin: 1.6em 0 .4em; }
ul { padding-left: 1.2em; }
code { font: 13px ui-monospace, monospace; }
a { color: inherit; }
.faint { color: var(--faint); }
"""


def html_document(wirings: Sequence[Wiring], title: str = "eaglelint: wiring") -> str:
    """A page that reads well on a narrow screen, in light and dark, and without colours."""
    body = "\n".join(part for panel in panels(wirings) for part in _section(panel)) or "<p>No wiring is known.</p>"
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{STYLE}{_PAGE}</style></head>\n"
        f"<body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def _section(panel: Panel) -> Iterator[str]:
    yield f"<section>{panel_svg(panel)}"
    differing = sorted(panel.differing)
    if differing:
        assert panel.trained is not None and panel.served is not None
        yield "<ul>"
        for index in differing:
            states = [
                wiring.slots[index].describe() if index < len(wiring.slots) else "nothing"
                for wiring in (panel.trained, panel.served)
            ]
            yield f"<li><b>slot {index}</b> was trained on {escape(states[0])} and is served {escape(states[1])}</li>"
        yield "</ul>"
    elif panel.trained is not None and panel.served is not None:
        sure = {panel.trained.status, panel.served.status} == {"exact"}
        yield f"<p>{'Every slot is served what it was trained on.' if sure else 'No slot is known to differ.'}</p>"
    for wiring, verb in ((panel.trained, "trained"), (panel.served, "served")):
        if wiring is not None:
            yield from _evidence(wiring, verb)
    yield "</section>"


def _evidence(wiring: Wiring, verb: str) -> Iterator[str]:
    yield f"<h2>{verb}: {escape(one_line(wiring.name))}</h2>"
    yield f"<p>{escape(str(wiring))} <span class='faint'>({wiring.status})</span></p>"
    if wiring.reason:
        yield f"<p>{escape(one_line(wiring.reason))}</p>"
    rows = [f"when: {escape(one_line(condition.text))}" for condition in wiring.conditions]
    rows += [f"assumes {escape(one_line(assumption))}" for assumption in wiring.assumptions]
    for item in wiring.evidence:
        link = f'<a href="{escape(f"{item.path}#L{item.line}")}">{escape(str(item))}</a>'
        slot = "" if item.slot is None else f"slot {item.slot}: "
        rows.append(f"{link} {slot}<code>{escape(one_line(item.note))}</code>")
    yield "<ul>" + "".join(f"<li>{row}</li>" for row in rows) + "</ul>"
