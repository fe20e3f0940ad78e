"""The wiring as one HTML file: the pictures, and below each the lines that prove it. No script, no network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from eaglelint.report.picture import STYLE, Panel, panel_svg
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
section { margin-top: 2em; }
.matrix { overflow-x: auto; }
.matrix table { border-collapse: collapse; font-size: 13px; }
.matrix th, .matrix td { border: 1px solid var(--line); padding: 4px 8px; text-align: left; min-width: 6em; }
"""

_USUAL = ("trained", "served")


def html_document(shown: Sequence[Panel], title: str = "eaglelint: wiring", notes: Sequence[str] = ()) -> str:
    """A page that reads well on a narrow screen, in light and dark, and without colours.

    Args:
        notes: Lines below the title.
    """
    parts = [f"<p>{escape(one_line(note))}</p>" for note in notes] + (list(_matrix(shown)) if len(shown) > 1 else [])
    parts += [part for number, panel in enumerate(shown) for part in _section(panel, number)]
    body = "\n".join(parts) or "<p>No wiring is known.</p>"
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{STYLE}{_PAGE}</style></head>\n"
        f"<body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def _matrix(shown: Sequence[Panel]) -> Iterator[str]:
    """Every pair at a glance: a row for each left side, a column for each right one; a cell leads to its picture."""
    rows = list(dict.fromkeys(_row_name(panel) for panel in shown))
    columns = list(dict.fromkeys(_column_name(panel) for panel in shown))
    cells: dict[tuple[str, str], list[str]] = {}
    for number, panel in enumerate(shown):
        place = _row_name(panel), _column_name(panel)
        cells.setdefault(place, []).append(f'<a href="#p{number}">{escape(_verdict(panel))}</a>')
    yield '<div class="matrix"><table><tr><td></td>'
    yield "".join(f"<th>{escape(column)}</th>" for column in columns) + "</tr>"
    for row in rows:
        yield f"<tr><th>{escape(row)}</th>"
        yield "".join(f"<td>{'<br>'.join(cells.get((row, column), ['–']))}</td>" for column in columns) + "</tr>"
    yield "</table></div>"


def _row_name(panel: Panel) -> str:
    if panel.about:
        return one_line(panel.about)
    return "not known" if panel.trained is None else one_line(panel.trained.name)


def _column_name(panel: Panel) -> str:
    if panel.verbs != _USUAL:
        return " → ".join(panel.verbs)
    return "not known" if panel.served is None else one_line(panel.served.name)


def _verdict(panel: Panel) -> str:
    """Told by words and a sign, not by a colour."""
    if panel.trained is None or panel.served is None:
        return "? one side is not known"
    differing = sorted(panel.differing)
    if differing:
        return f"≠ slot{'' if len(differing) == 1 else 's'} {', '.join(map(str, differing))}"
    return "= the same" if {panel.trained.status, panel.served.status} == {"exact"} else "? none is known to differ"


def _section(panel: Panel, number: int) -> Iterator[str]:
    yield f'<section id="p{number}">{panel_svg(panel)}'
    differing = sorted(panel.differing)
    first, second = panel.verbs
    if differing:
        assert panel.trained is not None and panel.served is not None
        yield "<ul>"
        for index in differing:
            states = [
                wiring.slots[index].describe() if index < len(wiring.slots) else "nothing"
                for wiring in (panel.trained, panel.served)
            ]
            left, right = (escape(state) for state in states)
            said = (
                f"was trained on {left} and is served {right}"
                if panel.verbs == _USUAL
                else f"{first} {left}, {second} {right}"
            )
            yield f"<li><b>slot {index}</b> {said}</li>"
        yield "</ul>"
    elif panel.trained is not None and panel.served is not None:
        sure = {panel.trained.status, panel.served.status} == {"exact"}
        yield f"<p>{'Every slot is served what it was trained on.' if sure else 'No slot is known to differ.'}</p>"
    for wiring, verb in panel.sides:
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
