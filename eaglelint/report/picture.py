"""The wiring as a picture: the target's layers as a column, the trained taps left of it, the served ones right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from eaglelint.report.printable import one_line
from eaglelint.wiring import Slot, Wiring, compare

__all__ = ["STYLE", "Panel", "panel_svg", "panels", "svg_document"]

_WIDTH = 720
_BUS = _WIDTH // 2
_ROW = 30
_BOX = 22
_TOP = 72

STYLE = """
:root {
  --ink: #1f2328; --faint: #59636e; --line: #8c959f; --box: #eaeef2; --paper: #ffffff;
  --good: #0a6b2d; --bad: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6edf3; --faint: #9aa4af; --line: #6e7781; --box: #262c36; --paper: #0d1117;
    --good: #57d37f; --bad: #ff8a80;
  }
}
.eaglelint text { font: 13px system-ui, sans-serif; fill: var(--ink); }
.eaglelint .faint { fill: var(--faint); font-size: 12px; }
.eaglelint .name { font-weight: 600; }
.eaglelint .box { fill: var(--box); stroke: var(--line); }
.eaglelint .wire { stroke: var(--line); fill: none; stroke-width: 1.5; }
.eaglelint .same { stroke: var(--good); }
.eaglelint .differs { stroke: var(--bad); stroke-width: 2.5; stroke-dasharray: 5 3; }
.eaglelint .dot-same { fill: var(--good); }
.eaglelint .dot-differs { fill: var(--bad); }
.eaglelint .text-differs { fill: var(--bad); font-weight: 700; }
.eaglelint a text { text-decoration: underline; }
"""


@dataclass(frozen=True, slots=True)
class Tap:
    """Slots that one party takes at one boundary; ``differs`` where another state belongs into one of them."""

    slots: tuple[int, ...]
    state: Slot
    differs: bool
    href: str | None

    @property
    def label(self) -> str:
        noun = "slot" if len(self.slots) == 1 else "slots"
        return f"{noun} {', '.join(map(str, self.slots))}: {self.state}"


@dataclass(frozen=True, slots=True)
class Panel:
    """One training against one engine, or one release against the next; either side may be missing.

    Attributes:
        verbs: What each side did with the states.
        about: What the two are compared for, where their names do not say it.
    """

    trained: Wiring | None
    served: Wiring | None
    verbs: tuple[str, str] = ("trained", "served")
    about: str = ""

    @property
    def sides(self) -> tuple[tuple[Wiring, str], ...]:
        """The sides that are known, each with its verb."""
        both = zip((self.trained, self.served), self.verbs, strict=True)
        return tuple((wiring, verb) for wiring, verb in both if wiring is not None)

    @property
    def num_layers(self) -> int | None:
        known = [wiring.num_layers for wiring in (self.trained, self.served) if wiring is not None]
        return next((count for count in known if count is not None), None)

    @property
    def differing(self) -> frozenset[int]:
        """Slots in which the two provably differ."""
        if self.trained is None or self.served is None:
            return frozenset()
        return frozenset(mismatch.index for mismatch in compare(self.trained, self.served))

    def taps(self, wiring: Wiring | None) -> tuple[Tap, ...]:
        """Where a party takes its states, by boundary and form; what is not known is taken nowhere."""
        if wiring is None:
            return ()
        by_state: dict[Slot, list[int]] = {}
        for index, slot in enumerate(wiring.slots):
            if slot.known:
                by_state.setdefault(slot, []).append(index)
        return tuple(
            Tap(tuple(indices), state, bool(self.differing & set(indices)), _href(wiring, indices[0]))
            for state, indices in by_state.items()
        )


def panels(wirings: Sequence[Wiring]) -> tuple[Panel, ...]:
    """One for each engine, with the training before it; the training alone where there is no engine."""
    found: list[Panel] = []
    trained: Wiring | None = None
    shown = True
    for wiring in wirings:
        if wiring.party == "training":
            if not shown:
                found.append(Panel(trained, None))
            trained, shown = wiring, False
        else:
            found.append(Panel(trained, wiring))
            shown = True
    return (*found, *(() if shown else (Panel(trained, None),)))


def svg_document(shown: Sequence[Panel]) -> str:
    """All panels below each other, as one file without any reference to another."""
    bodies, top = [], 0
    for panel in shown:
        body, height = _panel(panel)
        bodies.append(f'<g transform="translate(0 {top})">{body}</g>')
        top += height
    style = f"<style>{STYLE}</style>"
    paper = '<rect width="100%" height="100%" style="fill: var(--paper)"/>'
    return _svg(style + paper + "".join(bodies), max(top, _ROW), "Wirings: which hidden states reach the draft")


def panel_svg(panel: Panel) -> str:
    """One panel as an element for an HTML page, which holds STYLE itself."""
    body, height = _panel(panel)
    sides = zip((panel.trained, panel.served), panel.verbs, strict=True)
    return _svg(body, height, "; ".join(_title(wiring, verb) for wiring, verb in sides))


def _svg(body: str, height: int, label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="eaglelint" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" role="img" aria-label="{escape(label)}">{body}</svg>'
    )


def _panel(panel: Panel) -> tuple[str, int]:
    left, right = panel.taps(panel.trained), panel.taps(panel.served)
    boundaries = sorted({tap.state.boundary or 0 for tap in (*left, *right)} | {0, panel.num_layers or 0})
    parts = list(_head(panel))
    y = _TOP
    places: dict[int, int] = {}
    for boundary, following in zip(boundaries, [*boundaries[1:], None], strict=True):
        places[boundary] = y
        y += _ROW
        if following is not None:
            parts.append(_box(_BUS - 70, y - _BOX // 2, 140, _layers(boundary, following)))
            y += _ROW
    last = boundaries[-1]
    normed = any(tap.state.form == "norm" for tap in (*left, *right))
    if normed:
        parts.append(_box(_BUS - 70, y - _BOX // 2, 140, "final norm"))
        y += _ROW
    parts.insert(0, f'<path class="wire" d="M{_BUS} {_TOP - 10}V{y - _ROW + 12}"/>')
    for boundary, place in places.items():
        if boundary in (0, last) and not any(tap.state.boundary == boundary for tap in (*left, *right)):
            name = f"h[{boundary}]"
            parts.append(f'<text class="faint" x="{_BUS + 8}" y="{place + 4}">{name}</text>')
    for side, taps in ((-1, left), (1, right)):
        for tap in taps:
            below = tap.state.form == "norm"
            place = y - _ROW + 6 if below else places[tap.state.boundary or 0]
            parts.append(_tap(tap, side, place))
    y += 6
    parts += _joined(panel, y)
    return "".join(parts), y + 118


def _head(panel: Panel) -> Iterator[str]:
    for wiring, verb, x, anchor in (
        (panel.trained, panel.verbs[0], 8, "start"),
        (panel.served, panel.verbs[1], _WIDTH - 8, "end"),
    ):
        name = "not known" if wiring is None else f"{_cut(one_line(wiring.name))}"
        status = "" if wiring is None else f" ({wiring.status})"
        yield f'<text class="name" text-anchor="{anchor}" x="{x}" y="18">{verb}{status}</text>'
        yield f'<text class="faint" text-anchor="{anchor}" x="{x}" y="36">{escape(name)}</text>'
    layers = "target" if panel.num_layers is None else f"target, {panel.num_layers} layers"
    yield f'<text class="faint" text-anchor="middle" x="{_BUS}" y="18">{layers}</text>'
    if panel.about:
        yield f'<text class="name" text-anchor="middle" x="{_BUS}" y="52">{escape(_cut(panel.about, 90))}</text>'


def _title(wiring: Wiring | None, verb: str) -> str:
    return f"{verb}: not known" if wiring is None else f"{verb}: {one_line(wiring.name)}"


def _cut(text: str, length: int = 58) -> str:
    """The end of a long name says more than its beginning."""
    return text if len(text) <= length else "…" + text[1 - length :]


def _layers(first: int, following: int) -> str:
    return f"layer {first}" if following == first + 1 else f"layers {first} to {following - 1}"


def _box(x: int, y: int, width: int, text: str) -> str:
    return (
        f'<rect class="box" x="{x}" y="{y}" width="{width}" height="{_BOX}" rx="4"/>'
        f'<text text-anchor="middle" x="{x + width // 2}" y="{y + 15}">{escape(text)}</text>'
    )


def _tap(tap: Tap, side: int, y: int) -> str:
    """A wire from the stream to its label; a round end where it is right, a cross-hatched diamond where it differs."""
    end = _BUS + side * 90
    kind = "differs" if tap.differs else "same"
    mark = (
        f'<path class="dot-differs" d="M{_BUS} {y - 7}l7 7l-7 7l-7 -7z"/>'
        if tap.differs
        else f'<circle class="dot-same" cx="{_BUS}" cy="{y}" r="5"/>'
    )
    anchor, x = ("end", end - 6) if side < 0 else ("start", end + 6)
    text = f"{tap.label}{' ≠' if tap.differs else ''}"
    label = f'<text class="text-{kind}" text-anchor="{anchor}" x="{x}" y="{y + 4}">{escape(text)}</text>'
    if tap.href is not None:
        label = f'<a href="{escape(tap.href)}"><title>{escape(tap.href)}</title>{label}</a>'
    return f'<path class="wire {kind}" d="M{_BUS} {y}H{end}"/>{mark}{label}'


def _joined(panel: Panel, y: int) -> Iterator[str]:
    """fc with its slots, each with what it was trained on and is served, and the draft below."""
    sides = [wiring for wiring, _ in panel.sides]
    count = max((len(wiring.slots) for wiring in sides), default=0)
    yield f'<text class="name" x="20" y="{y + 14}">fc</text>'
    width = (_WIDTH - 80) // max(count, 1)
    for index in range(count):
        x = 60 + index * width
        differs = index in panel.differing
        border = "box differs" if differs else "box"
        yield f'<rect class="{border}" x="{x + 2}" y="{y}" width="{width - 6}" height="48" rx="4"/>'
        states = [str(wiring.slots[index]) if index < len(wiring.slots) else "nothing" for wiring in sides]
        shown = f" {'≠' if differs else '=' if len(set(states)) == 1 else '?'} ".join(states)
        style = "text-differs" if differs else ""
        middle = x + width // 2 - 1
        yield f'<text class="faint" text-anchor="middle" x="{middle}" y="{y + 18}">slot {index}</text>'
        yield f'<text class="{style}" text-anchor="middle" x="{middle}" y="{y + 37}">{escape(shown)}</text>'
    if not count:
        yield f'<text class="faint" x="60" y="{y + 14}">no state is known</text>'
    yield f'<path class="wire" d="M{_BUS} {y + 48}V{y + 62}"/>'
    yield _box(_BUS - 70, y + 62, 140, "draft")


def _href(wiring: Wiring, slot: int) -> str | None:
    """The line that captures a slot, as repositories' web pages and editors know it."""
    lines = sorted(wiring.evidence_for(slot), key=lambda item: item.slot is None)
    return f"{lines[0].path}#L{lines[0].line}" if lines else None
