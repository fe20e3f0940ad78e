"""A trace for a terminal: one tree for each place where the value begins, in the order of the flow."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from eaglelint.report.printable import one_line
from eaglelint.trace.model import Flow, Occurrence, Trace

__all__ = ["render_trace"]

_PIPE_WIDTH = 120
_KINDS = {
    "parameter": "param",
    "assignment": "assign",
    "read": "read",
    "mutation": "change",
    "passed": "pass",
    "returned": "return",
    "deleted": "del",
    "config-key": "key",
}
_STYLES = {"assignment": "green", "mutation": "yellow", "config-key": "magenta", "deleted": "red", "parameter": "cyan"}


def render_trace(trace: Trace, *, console: Console) -> None:
    """Print a trace.

    Every place is printed once with its code and its conditions; where the value comes by another way, one line
    points to it.
    """
    width = console.width if console.is_terminal else _PIPE_WIDTH
    for line in _lines(trace, width):
        if console.is_terminal:
            console.print(line, no_wrap=True, overflow="ellipsis")
        else:  # what a console would print, at a fraction of the time
            console.file.write(f"{line.plain}\n")


def _lines(trace: Trace, width: int) -> Iterator[Text]:
    items = trace.occurrences
    own = [item for item in items if item.name == trace.names[0]]
    places = f"{len(own)} {'place' if len(own) == 1 else 'places'} in {_counted({item.path for item in own}, 'file')}"
    others = len(items) - len(own)
    further = f", {others} more under other names" if others else ""
    yield Text.assemble((trace.symbol, "bold"), f": {places}{further} ({trace.files:,} files looked through)")
    printed: set[int] = set()
    for root in _roots(items):
        if root in printed:
            continue
        yield Text("")
        yield from _tree(items, root, printed, trace.names[0], width)
    if trace.notes:
        yield Text("")
        yield from (Text.assemble(("note: ", "bold cyan"), one_line(note)) for note in trace.notes)


def _counted(things: set[str], what: str) -> str:
    return f"{len(things)} {what}{'' if len(things) == 1 else 's'}"


def _roots(items: tuple[Occurrence, ...]) -> Iterator[int]:
    """Where the value begins: what nothing flows to, then, for circles, what is left, in the order of the lines."""
    reached = {flow.to for item in items for flow in item.flows}
    yield from (index for index in range(len(items)) if index not in reached)
    yield from range(len(items))


def _tree(items: tuple[Occurrence, ...], root: int, printed: set[int], symbol: str, width: int) -> Iterator[Text]:
    """One tree. A value that goes on in one way only goes on below, without another step to the right."""
    pending: list[tuple[int, Flow | None, Occurrence | None, str, str]] = [(root, None, None, "", "")]
    while pending:
        index, flow, above, branch, below = pending.pop()
        if index in printed:
            item = items[index]
            yield Text.assemble((branch, "dim"), *_how(flow), (f"↑ {item.name}  {item.place}", "dim"))
            continue
        chain = _chain(items, index, printed)
        printed.update(chain)
        last = items[chain[-1]]
        yield from _place([items[each] for each in chain], flow, above, branch, below, symbol, width)
        following = sorted(last.flows, key=lambda flow: (flow.decides, not flow.certain, flow.to))
        for position, step in enumerate(reversed(following)):
            if len(following) == 1:
                pending.append((step.to, step, last, below, below))
            else:
                end = position == 0
                fork, on = ("└─ ", "   ") if end else ("├─ ", "│  ")
                pending.append((step.to, step, last, below + fork, below + on))


def _chain(items: tuple[Occurrence, ...], index: int, printed: set[int]) -> list[int]:
    """The steps of the value within one statement, shown as one place: ``aux_hidden_states → hidden → pruned``."""
    chain = [index]
    while True:
        item = items[chain[-1]]
        if len(item.flows) != 1 or item.flows[0].decides or not item.flows[0].certain:
            return chain
        to = item.flows[0].to
        following = items[to]
        same = following.path == item.path and following.code == item.code and following.line == item.line
        if not same or to in printed or to in chain or item.may_be_none is not None or item.fallback is not None:
            return chain
        chain.append(to)


def _how(flow: Flow | None) -> list[tuple[str, str]]:
    if flow is None or (flow.certain and not flow.decides):
        return []
    words = ["decides on"] if flow.decides else []
    words += [] if flow.certain else ["perhaps"]
    return [(f"{', '.join(words)} → ", "blue")]


def _place(
    chain: list[Occurrence],
    flow: Flow | None,
    above: Occurrence | None,
    branch: str,
    below: str,
    symbol: str,
    width: int,
) -> Iterator[Text]:
    item, last = chain[0], chain[-1]
    head = Text.assemble((branch, "dim"), *_how(flow))
    names = [each.name for number, each in enumerate(chain) if number == 0 or chain[number - 1].name != each.name]
    if above is not None and above.name != names[0] and not (flow and flow.decides):
        head.append(f"{above.name} → ", "dim")
    for number, name in enumerate(names):
        head.append(" → " if number else "", "dim")
        head.append(name, "bold" if name == symbol else "italic")
    head.append(f" {_KINDS[last.kind]}", _STYLES.get(last.kind, "dim"))
    head.append("  ")
    head.append(item.place, "blue")
    if item.function and (above is None or (above.function, above.path) != (item.function, item.path)):
        head.append(f"  in {item.function}", "cyan")
    yield from _fold(head, width, below)
    margin = Text(below, "dim")
    if above is None or above.code != item.code or above.path != item.path:
        yield from _wrapped("  ", _window(item, width - cell_len(below) - 2), margin, width, "")
    if last.value is not None:
        yield from _wrapped("  = ", last.value.split(" "), margin, width, "magenta")
    for each in chain:
        if each.may_be_none is not None:
            yield from _wrapped("  may be None here: ", _words(each.may_be_none), margin, width, "red")
    if item.fallback is not None:
        yield from _wrapped("  if absent: ", item.fallback.split(" "), margin, width, "magenta")
    already = set(above.guards) if above is not None and above.function == item.function else set()
    guards = tuple(dict.fromkeys(guard for each in chain for guard in each.guards if guard not in already))
    if guards:
        yield from _wrapped("  if ", _words(guards), margin, width, "dim")


def _window(item: Occurrence, room: int) -> list[str]:
    """Of a long statement as much as two lines hold, around the name."""
    words = item.code.split(" ")
    at = next((number for number, word in enumerate(words) if item.name in word), 0)
    first, last, used = at, at + 1, len(words[at]) if words else 0
    while first > 0 or last < len(words):
        before = len(words[first - 1]) + 1 if first > 0 else 0
        after = len(words[last]) + 1 if last < len(words) else 0
        if used + (before or after) > 2 * room - 12:
            break
        if before:
            first, used = first - 1, used + before
        if after and used + after <= 2 * room - 12:
            last, used = last + 1, used + after
        elif after and not before:
            break
    return [*(["⋯"] if first else []), *words[first:last], *(["⋯"] if last < len(words) else [])]


def _words(conditions: tuple[str, ...]) -> list[str]:
    return " and ".join(conditions).split(" ") if conditions else ["always"]


def _fold(head: Text, width: int, below: str) -> Iterator[Text]:
    """A head that does not fit goes on in the next line, before its place if that helps."""
    if cell_len(head.plain) <= width:
        yield head
        return
    at = head.plain.rfind("  ", 0, width)
    if at <= cell_len(below):
        yield head
        return
    yield head[:at]
    yield from _fold(Text.assemble((below, "dim"), "    ", head[at + 2 :]), width, below + "    ")


def _wrapped(label: str, words: list[str], margin: Text, width: int, style: str) -> Iterator[Text]:
    """A text after a label, a line for as many words as fit."""
    room = max(24, width - cell_len(margin.plain) - cell_len(label))
    lines: list[str] = []
    for word in map(one_line, words):
        if lines and cell_len(f"{lines[-1]} {word}") <= room:
            lines[-1] = f"{lines[-1]} {word}"
        else:
            lines.append(word if cell_len(word) <= room else set_cell_size(word, room - 1).rstrip() + "…")
    for number, line in enumerate(lines):
        yield margin + Text((label if number == 0 else " " * cell_len(label)) + line, style)
