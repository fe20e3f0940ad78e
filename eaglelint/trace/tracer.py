"""The flow of a trace: find the places of a symbol, follow the value both ways, say what is known at each place."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import cast

from eaglelint.exceptions import UnreadableInput, WrongUsage
from eaglelint.forks import begin
from eaglelint.trace.conditions import guard_texts
from eaglelint.trace.follow import Reached, State, follow
from eaglelint.trace.graph import Edge, Node
from eaglelint.trace.known import Known
from eaglelint.trace.links import Links
from eaglelint.trace.model import Flow, Kind, Occurrence, Trace
from eaglelint.trace.nullness import Nullness
from eaglelint.trace.project import Class, Project
from eaglelint.trace.symbols import parse_symbol, seeds_of

__all__ = ["trace"]

_MOST_STATES = 4_000
_MOST_STATES_ON_A_PATH = 20_000
_MOST_GUESSES = 3
_MANY = 100  # occurrences: for less, a process of its own takes longer than it saves
_MOST_CALLS = 80  # of a function that a trace without ends goes back to
_DEFINES = frozenset(["assignment", "parameter", "mutation"])
_MOST_SEARCHED = 600_000_000  # bytes: what a trace without ends takes on a large tree stays within two seconds
_MOST_SEARCHED_ON_A_PATH = 5_000_000_000


def trace(
    symbol: str,
    paths: Sequence[Path],
    *,
    start: str | None = None,
    end: str | None = None,
    mode: str | None = None,
    relative_to: Path | None = None,
) -> Trace:
    """Follow one variable through Python files.

    Args:
        symbol: A name, ``Class.attribute``, ``file.py:function:name`` or a config key.
        paths: Files and directories; nothing outside them is followed.
        start: Keep what lies between this place and the symbol: a name, ``file.py:line`` or ``file.py:function:name``.
        end: Keep what lies between the symbol and this place.
        mode: Keep what is reached where every value of the enum that has a member of this name is that member.
        relative_to: What shown paths are relative to; the working directory if left out.

    Raises:
        WrongUsage: The symbol is not written as one, or no enum has the mode's member.
        UnreadableInput: A path does not exist, or the symbol does not occur.
    """
    for path in paths:
        if not path.exists():
            raise UnreadableInput(f"{path} does not exist. Check the path.")
    wanted = parse_symbol(symbol)
    project = Project(paths, relative_to=relative_to)
    links = Links(project, frozenset({wanted.name}), **({} if start or end else {"most_calls": _MOST_CALLS}))
    seeds, notes = seeds_of(links, wanted)
    accept = _in_mode(links, mode)
    seeds = [node for node in seeds if accept(node)]
    if not seeds:
        raise UnreadableInput(_nothing(symbol, project, mode))
    reached = _between(links, seeds, start, end, accept) if start or end else _around(links, seeds, accept)
    listed = _occurrences(links, reached, seeds if not (start or end) else [])
    names = dict.fromkeys([wanted.name, *(item.name for item in listed)])
    if not reached.complete:
        notes.append("The value goes to more places than are shown; give --to, --from or fewer paths.")
    return Trace(
        symbol,
        tuple(names),
        tuple(listed),
        project.count,
        tuple(project.skipped.values()),
        tuple([*notes, *project.notes, *links.cut]),
    )


def _nothing(symbol: str, project: Project, mode: str | None) -> str:
    skipped = f" Not read: {'; '.join(list(project.skipped.values())[:3])}." if project.skipped else ""
    reached = f" that mode {mode} reaches" if mode else ""
    where = f"the code of {project.count:,} files{reached}"
    return f"{symbol} occurs nowhere in {where}. Check the name and the paths.{skipped}"


def _around(links: Links, seeds: list[Node], accept: Callable[[Node], bool]) -> Reached:
    """All that the value becomes, and of what it is made, back to where that was made in the same function."""
    statements = {node.statement for node in seeds}
    ahead = follow(links, seeds, limit=_MOST_STATES, most_searched=_MOST_SEARCHED, name=seeds[0].name, accept=accept)
    behind = follow(
        links,
        seeds,
        backward=True,
        limit=_MOST_STATES,
        most_searched=_MOST_SEARCHED,
        inside=True,
        until=lambda node: node.kind in _DEFINES and node.statement not in statements,
        accept=accept,
    )
    empty = {s.node for s in behind.steps if links.graph.nodes[s.node].constant and not links.graph.into[s.node]}
    for state, ends in behind.steps.items():
        if state.node in empty:
            continue
        plain = State(state.node)
        ahead.steps.setdefault(plain, {})
        for end, edge in ends.items():
            ahead.add(plain, edge, State(end.node))
    return ahead


def _between(
    links: Links, seeds: list[Node], start: str | None, end: str | None, accept: Callable[[Node], bool]
) -> Reached:
    """What lies on a way from one place over the symbol to another."""
    result = Reached()
    for text, backward in ((start, True), (end, False)):
        if text is None:
            continue
        is_target = _place(links, text)
        reached = follow(
            links,
            seeds,
            backward=backward,
            limit=_MOST_STATES_ON_A_PATH,
            most_searched=_MOST_SEARCHED_ON_A_PATH,
            guesses=_MOST_GUESSES,
            accept=accept,
            target=is_target,
        )
        found = any(is_target(node) for node in reached.nodes)
        if not found:
            side = "does not come from" if backward else "does not reach"
            more = "" if reached.complete else " It goes to more places than are followed: name fewer files."
            raise UnreadableInput(f"The value {side} {text}, as far as it can be followed.{more}")
        kept = _flipped(_flipped(reached).between(is_target)) if backward else reached.between(is_target)
        for state, ends in kept.steps.items():
            result.steps.setdefault(state, {}).update(ends)
        result.complete = result.complete and kept.complete
    return result


def _flipped(reached: Reached) -> Reached:
    turned = Reached(complete=reached.complete)
    for state, ends in reached.steps.items():
        turned.steps.setdefault(state, {})
        for end, edge in ends.items():
            turned.steps.setdefault(end, {})[state] = edge
    return turned


def _place(links: Links, text: str) -> Callable[[int], bool]:
    """Whether a node is at a place: of that name, handed to a function of that name, or on that line."""
    parts = text.rsplit(":", 1)
    if len(parts) == 2 and parts[1].isdigit():
        line = int(parts[1])
        return lambda number: (
            links.graph.nodes[number].line == line
            and _is_file(links.graph.nodes[number].scope.outline.display, parts[0])
        )
    wanted = parse_symbol(text)

    def matches(number: int) -> bool:
        node = links.graph.nodes[number]
        called = any(_last_name(call.node.func) == wanted.name for call in node.calls)
        if node.name != wanted.name and not called:
            return False
        return wanted.covers(node)

    return matches


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_file(display: str, named: str) -> bool:
    return display == named or display.endswith("/" + named.removeprefix("./"))


def _in_mode(links: Links, mode: str | None) -> Callable[[Node], bool]:
    if mode is None:
        return lambda node: True
    owner, _, member = mode.rpartition(".")
    found = links.project.lines_with(member, rf"^[ \t]+{member}[ \t]*=") if member.isidentifier() else {}
    enums: dict[Class, None] = {}
    for outline, lines in found.items():
        for line in lines:
            block = outline.innermost(line)
            if block is not None and block.kind == "class" and owner in ("", block.name):
                cls = Class(outline, block)
                members = links.types.enum(cls)
                if members is not None and member in members.members:
                    enums[cls] = None
    if not enums:
        raise WrongUsage(f"--mode {mode}: no enum in the files has a member {member}.")
    listed = list(enums)
    return lambda node: links.reached_in(node, member, listed)


# --- the result ------------------------------------------------------------------------------------------------------


def _occurrences(links: Links, reached: Reached, seeds: list[Node]) -> list[Occurrence]:
    nodes = links.graph.nodes
    numbers = {number for number in reached.nodes if nodes[number].real} | {node.id for node in seeds}
    ordered = sorted(numbers, key=lambda n: (nodes[n].scope.outline.display, nodes[n].line, nodes[n].column))
    index = {number: position for position, number in enumerate(ordered)}
    flows: dict[int, dict[int, Flow]] = {}
    for state in reached.steps:
        if nodes[state.node].real:
            for end, edges in _real_ends(links, reached, state):
                known = flows.setdefault(state.node, {})
                flow = _flow(links, index[end], edges)
                other = known.get(end)
                if other is None or (flow.certain and not other.certain) or (other.decides and not flow.decides):
                    known[end] = flow
    name = seeds[0].name if seeds else ""
    mine_first = sorted(ordered, key=lambda number: nodes[number].name != name)
    search = partial(_values, links, mine_first)
    values_found = begin(search) if len(ordered) >= _MANY else search
    nullness = Nullness(links)
    none = {number: nullness.at(nodes[number]) for number in mine_first}
    values, cut, skipped = values_found()
    links.cut.update(cut)
    links.project.skipped.update(skipped)
    return [
        _occurrence(
            nodes[number],
            values[number],
            none[number],
            tuple(sorted(flows.get(number, {}).values(), key=lambda f: f.to)),
        )
        for number in ordered
    ]


def _values(links: Links, numbers: list[int]) -> tuple[dict[int, str | None], dict[str, None], dict[str, str]]:
    """What is known of the value at each node, and what the search for it cut short and skipped."""
    knowledge = Known(links)
    values = {number: knowledge.at(links.graph.nodes[number]) for number in numbers}
    return values, links.cut, links.project.skipped


def _real_ends(links: Links, reached: Reached, start: State) -> list[tuple[int, list[Edge]]]:
    """The next places with a name, over results of calls and other values that have none."""
    found: list[tuple[int, list[Edge]]] = []
    seen = {start}
    pending: list[tuple[State, list[Edge]]] = [(start, [])]
    while pending:
        state, edges = pending.pop()
        for end, edge in reached.steps.get(state, {}).items():
            if links.graph.nodes[end.node].real:
                if end.node != start.node:
                    found.append((end.node, [*edges, edge]))
            elif end not in seen:
                seen.add(end)
                pending.append((end, [*edges, edge]))
    return found


def _flow(links: Links, to: int, edges: list[Edge]) -> Flow:
    words: dict[str, None] = {}
    for edge in edges:
        if edge.enter is not None:
            words[f"into {_written(edge.enter.node.func)}"] = None
        elif edge.leave is not None:
            words[f"back from {_written(edge.leave.node.func)}"] = None
        elif edge.how:
            words[edge.how] = None
    return Flow(to, ", ".join(words), all(edge.certain for edge in edges), any(edge.how == "chooses" for edge in edges))


def _written(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"…{text[-58:]}"


def _occurrence(
    node: Node, value: str | None, may_be_none: tuple[str, ...] | None, flows: tuple[Flow, ...]
) -> Occurrence:
    return Occurrence(
        path=node.scope.outline.display,
        line=node.line,
        column=node.column,
        function=node.scope.function,
        kind=cast("Kind", node.kind),
        guards=guard_texts(node.guards),
        name=node.name,
        value=value,
        code=_code(node),
        flows=flows,
        may_be_none=may_be_none,
        fallback=node.fallback,
    )


def _code(node: Node) -> str:
    """The statement on one line; of a compound one its head."""
    tree = node.statement
    lines = node.scope.outline.lines
    first = getattr(tree, "lineno", node.line)
    last = getattr(tree, "end_lineno", node.line) or node.line
    body = getattr(tree, "body", None)
    if isinstance(body, list) and body:
        last = max(first, min(getattr(body[0], "lineno", last) - 1, last))
    if not first <= node.line <= last or node.parameter:
        first = last = node.line
    text = " ".join(line.strip() for line in lines[first - 1 : last] if not line.lstrip().startswith("#"))
    return text.replace("( ", "(").replace(" )", ")").replace("[ ", "[").replace(" ]", "]").replace(",)", ")")
