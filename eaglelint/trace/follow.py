"""Following a value through the graph: forwards to what it becomes, backwards to what it was made of."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from eaglelint.trace.graph import CallSite, Edge, Node, take
from eaglelint.trace.links import Links

__all__ = ["Reached", "State", "follow"]

_DEEPEST_CALLS = 5
_MOST_CONTEXTS = 6
_NEAR_CALLS = 3
_LONGER = 6
_FAR = 1_000_000
_DEEPEST_CONTAINERS = 4


@dataclass(frozen=True, slots=True)
class State:
    """A value at a node: where in the node's value it is, and which calls it has gone into."""

    node: int
    inside: tuple[str, ...] = ()
    calls: tuple[CallSite, ...] = ()


@dataclass(slots=True)
class Reached:
    """All states that were reached, and the steps between them, in the direction of the flow."""

    steps: dict[State, dict[State, Edge]] = field(default_factory=dict)
    complete: bool = True
    ends: set[int] = field(default_factory=set)  # where it goes on, but was not followed

    def add(self, start: State, edge: Edge, end: State) -> None:
        self.steps.setdefault(start, {})[end] = edge
        self.steps.setdefault(end, {})

    @property
    def nodes(self) -> set[int]:
        return {state.node for state in self.steps}

    def between(self, targets: Callable[[int], bool]) -> Reached:
        """Only what leads to a target."""
        into: dict[State, list[State]] = {}
        for start, ends in self.steps.items():
            for end in ends:
                into.setdefault(end, []).append(start)
        pending = [state for state in self.steps if targets(state.node)]
        kept = set(pending)
        while pending:
            for start in into.get(pending.pop(), ()):
                if start not in kept:
                    kept.add(start)
                    pending.append(start)
        steps = {s: {e: edge for e, edge in ends.items() if e in kept} for s, ends in self.steps.items() if s in kept}
        return Reached(steps, self.complete, self.ends)


def follow(
    links: Links,
    starts: Iterable[Node],
    *,
    backward: bool = False,
    limit: int,
    most_searched: int,
    guesses: int = 0,
    inside: bool = False,
    until: Callable[[Node], bool] = lambda node: False,
    name: str | None = None,
    accept: Callable[[Node], bool] = lambda node: True,
    target: Callable[[int], bool] | None = None,
) -> Reached:
    """All states that the value at some nodes reaches, or is reached from.

    Args:
        links: The graph, and what extends it.
        starts: Where the value is.
        backward: Against the flow.
        limit: Most states; past it the answer is not complete.
        most_searched: Most bytes to look through for words, all trees together.
        guesses: How many steps of a way may be guesses; a way with fewer is looked for first.
        inside: Stay in the functions of the starts.
        until: Go no further from such a node.
        name: Stay near the symbol of that name: stop where the value is stored under an attribute whose name is read in
            many places, where it decides what another value is, and three calls away.
        target: Where to stop. Once one is found, ways that are much longer are not looked for.
        accept: Leaves out nodes, those that a mode cannot reach.
    """
    reached = Reached()
    steps_to: dict[State, int] = {}
    farthest = _FAR
    pending: deque[State] = deque()
    graph = links.graph
    for node in starts:
        state = State(node.id)
        if state not in reached.steps:
            reached.steps[state] = {}
            steps_to[state] = 0
            pending.append(state)
    expanded: set[State] = set()
    guessed: dict[State, None] = {}
    deferred: deque[State] = deque()  # looking for words in all files comes last, the nearest first

    contexts: dict[tuple[int, tuple[str, ...]], int] = {}

    def known(state: State) -> State:
        """A place that is reached through many different calls is not told apart by them any more."""
        key = (state.node, state.inside)
        contexts[key] = contexts.get(key, 0) + 1
        return state if contexts[key] <= _MOST_CONTEXTS else replace(state, calls=())

    def expand(state: State) -> None:
        node = graph.nodes[state.node]
        steps = list(graph.into[state.node]) if backward else [(edge.to, edge) for edge in graph.out[state.node]]
        for other, edge in steps:
            following = _step(state, other, edge, backward=backward)
            if following is None or not accept(graph.nodes[other]):
                continue
            if following not in reached.steps:
                following = known(following)
            if inside and (edge.enter or edge.leave or graph.nodes[other].scope is not node.scope):
                continue
            new = following not in reached.steps
            steps_to.setdefault(following, steps_to[state] + 1)
            if backward:
                reached.add(following, edge, state)
            else:
                reached.add(state, edge, following)
            if not edge.certain or (name is not None and edge.how == "chooses"):
                if new:
                    guessed[following] = None
                continue
            if new or following in guessed:
                guessed.pop(following, None)
                pending.append(following)

    while pending or deferred or (guessed and guesses and farthest == _FAR):
        if len(reached.steps) > limit:
            reached.complete = False
            break
        if not pending and not deferred:
            guesses -= 1
            pending.extend(guessed)
            guessed.clear()
            continue
        if not pending:
            state = deferred.popleft()
            if steps_to[state] > farthest:
                continue
            if links.project.searched > most_searched:
                reached.complete = False
                continue
            (links.backward if backward else links.forward)(graph.nodes[state.node])
            expand(state)
            continue
        state = pending.popleft()
        if state in expanded:
            continue
        expanded.add(state)
        if steps_to[state] > farthest:
            continue
        node = graph.nodes[state.node]
        if not backward:
            links.link_calls(node)
        if target is not None and target(state.node):
            farthest = min(farthest, steps_to[state] + _LONGER)
            continue
        if name is not None and not _near(links, node, state, name):
            reached.ends.add(state.node)
            continue
        if until(node):
            continue
        if not inside and links.has_more(node, backward=backward):
            deferred.append(state)
        expand(state)
    return reached


def _near(links: Links, node: Node, state: State, name: str) -> bool:
    if node.name == name:
        return True
    if node.attribute == "store" or node.class_field is not None:
        return not links.is_common(node.name)
    return len(state.calls) <= _NEAR_CALLS


def _step(state: State, other: int, edge: Edge, *, backward: bool) -> State | None:
    """The state after an edge; None where the value is at another position or the call another one."""
    inside: tuple[str, ...] | None = state.inside
    if edge.reset:
        inside = None if not backward and "!" in edge.pop and take(state.inside, "!") is None else ()
    elif backward:
        inside = (*state.inside, *(position for position in reversed(edge.pop) if position not in "?!"))
        for position in reversed(edge.push):
            inside = take(inside, position) if inside is not None else None
    else:
        inside = (*state.inside, *edge.push)
        for position in edge.pop:
            inside = take(inside, position) if inside is not None else None
    if inside is None:
        return None
    into, out = (edge.leave, edge.enter) if backward else (edge.enter, edge.leave)
    calls = () if edge.how in ("attribute", "module variable") else state.calls  # any function may have set it
    if into is not None:
        if into in calls or len(calls) >= _DEEPEST_CALLS:
            return None  # recursion, or far away
        calls = (*calls, into)
    elif out is not None and calls:
        if calls[-1] is not out:
            return None
        calls = calls[:-1]
    return State(other, inside[-_DEEPEST_CONTAINERS:], calls)
