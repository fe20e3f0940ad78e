"""The wirings of ``eaglelint wiring`` below each other, one row for each party and one column for each slot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from eaglelint.report.printable import one_line
from eaglelint.wiring import Wiring, compare

__all__ = ["render_wirings"]

_PARTY = {"training": "trained", "serving": "served", "draft": "stated"}
_DIFFERS = " !"


def render_wirings(
    wirings: Iterable[Wiring], verdicts: Sequence[str] = (), *, console: Console, evidence: bool = True
) -> None:
    """Prints the wirings slot by slot, the verdicts on engines, then what each wiring rests on.

    A slot that provably differs from what the first training wiring says is marked with ``!``.
    """
    wirings = tuple(wirings)
    if not wirings:
        console.print(Text("No wiring is known."))
        return
    rows = _rows(wirings)
    if console.is_terminal:
        console.print(_table(rows))
    else:
        for line in _aligned(rows):
            console.print(Text(line), soft_wrap=True)
    for line in ("", *verdicts) if verdicts else ():
        console.print(Text(one_line(line)), soft_wrap=not console.is_terminal)
    for wiring in wirings:
        for line in _details(wiring, evidence):
            console.print(Text(line), soft_wrap=not console.is_terminal)


def _rows(wirings: Sequence[Wiring]) -> list[tuple[str, ...]]:
    """The head and a row for each wiring, all of the same length."""
    trained = next((wiring for wiring in wirings if wiring.party == "training"), None)
    width = max((len(wiring.slots) for wiring in wirings), default=0)
    rows = [("", "", *(f"slot {index}" for index in range(width)), "label", "status")]
    for wiring in wirings:
        compared = trained is not None and wiring is not trained and bool(wiring.slots)
        different = {mismatch.index for mismatch in compare(trained, wiring)} if trained and compared else set()
        states = [str(slot) for slot in wiring.slots]
        padded = states + [""] * (width - len(states))
        slots = (state + _DIFFERS if index in different else state for index, state in enumerate(padded))
        label = str(wiring.label) if wiring.label else ""
        rows.append((_PARTY[wiring.party], _name(wiring), *(slot.strip() for slot in slots), label, wiring.status))
    used = [index for index in range(len(rows[0])) if any(row[index] for row in rows[1:])]
    return [tuple(row[index] for index in used) for row in rows]


def _table(rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in rows[0]:
        table.add_column(heading)
    for row in rows[1:]:
        table.add_row(*(Text(cell, style="bold red" if cell.endswith(_DIFFERS.strip()) else "") for cell in row))
    return table


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def _details(wiring: Wiring, evidence: bool) -> Iterator[str]:
    """Why a wiring is what it is; nothing where there is nothing to say."""
    lines = [f"  unknown: {one_line(wiring.reason)}"] if wiring.reason else []
    for condition in wiring.conditions:
        slots = "" if condition.slots is None else f"  ->  {' ⊕ '.join(map(str, condition.slots))}"
        place = "" if condition.span is None else f"  ({condition.span.path}:{condition.span.start.line})"
        lines.append(f"  {one_line(condition.text + slots + place)}")
    if wiring.fc is not None:
        verdict = "" if wiring.fc.agrees is None else ("  agrees" if wiring.fc.agrees else "  does not agree")
        lines.append(f"  {wiring.fc.path}:{wiring.fc.line}  {wiring.fc}{verdict}")
    lines.extend(f"  stage {index}: {stage}" for index, stage in enumerate(wiring.stages))
    lines.extend(f"  assumes {one_line(assumption)}" for assumption in wiring.assumptions)
    lines.extend(f"  fails: {fault.path}:{fault.line}  {one_line(fault.message)}" for fault in wiring.faults)
    if evidence:
        for item in wiring.evidence:
            slot = "" if item.slot is None else f"slot {item.slot}: "
            lines.append(f"  {one_line(f'{item}  {slot}{item.note}')}")
    if lines:
        yield ""
        yield f"{_PARTY[wiring.party]} {_name(wiring)}"
        yield from lines


def _name(wiring: Wiring) -> str:
    """The wiring's name, with the target class where the name leaves it out."""
    extra = wiring.target_class
    return one_line(wiring.name if extra is None or extra in wiring.name else f"{wiring.name} ({extra})")
