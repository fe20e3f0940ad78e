"""Which boundary a captured tensor is: its signatures against those that each decoder layer was handed."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import torch

from eaglelint.probe.wiring.signatures import TOKENS, WIDTH, is_state
from eaglelint.probe.wiring.task import Seen
from eaglelint.probe.wiring.world import Entry, World

__all__ = ["Boundaries", "NotOneStream"]


class NotOneStream(Exception):
    """The states between the layers do not add up to one residual stream."""


class Boundaries:
    """h[0] .. h[N] of one run.

    h[N] is what the first norm after the last layer was given. What it holds of the layers before k must be a sum of
    states that layer k was handed: that sum is h[k]. Where the stream is scaled on its way, all that layer k was handed
    is summed; it must hold something of each layer before k, and nothing of the others.
    """

    def __init__(self, world: World, num_layers: int) -> None:
        self.world = world
        self.num_layers = num_layers
        entries = _main_stack(world.entries)
        order = [entry.index for entry in entries]
        if order != list(range(num_layers)):
            raise NotOneStream(f"of {num_layers} layers these ran, in this order: {_numbers(order)}")
        last = len(world.entries)
        finals = [total for count, total in world.final if count == last]
        final = _flat(finals[0]) if finals else None
        self._made = [signature for signature in world.signatures.made for _ in range(world.ranks.size)]
        if world.ranks.size > 1 and (final is None or not world.ranks.same(final)):
            raise NotOneStream("the final norm was given different states on different ranks")
        self.states: list[Any] = [self._entry(entry.states, entry.index, final) for entry in entries]
        self.states.append(final if final is not None else self._entry(entries[-1].results, num_layers, None))
        for boundary, state in enumerate(self.states):
            self._check(boundary, state)

    def _entry(self, handed: list[Any], boundary: int, final: Any) -> Any:
        states = [_flat(state) for state in handed]
        if self.world.ranks.size > 1:
            return final * self._before(boundary)  # a layer may be handed a rank's part of it
        distinct = [state for index, state in enumerate(states) if not any(map(state.equal, states[:index]))]
        if final is not None:
            expected = final * self._before(boundary)
            for count in range(1, len(distinct) + 1):
                for chosen in combinations(distinct, count):
                    if _same(sum(chosen), expected):
                        return expected
        if not distinct or len(distinct) > 2:
            raise NotOneStream(
                f"layer {boundary} was handed {len(distinct)} states, of which none adds up to the stream"
            )
        return sum(distinct)

    def _before(self, boundary: int) -> Any:
        """Which coordinates arose in the layers before a boundary."""
        held = [signature.layer < boundary for signature in self._made]
        return torch.tensor(held + [False] * (WIDTH - len(held)))

    def _check(self, boundary: int, state: Any) -> None:
        held = {self._made[index].layer for index in _support(state)}
        if held - {-1} != set(range(boundary)):
            raise NotOneStream(
                f"the state before layer {boundary} holds something of the layers {_numbers(sorted(held - {-1}))}"
            )

    def read(self, tensor: Any) -> Seen:
        """What one captured tensor is."""
        if not is_state(tensor):
            return Seen("unknown", None, f"no state but {type(tensor).__name__}")
        if tensor.shape[-1] != WIDTH:
            return Seen("unknown", None, f"{tensor.shape[-1]} of {WIDTH} features")
        state = _flat(tensor)
        if not len(state):
            return Seen("unknown", None, "no tokens")
        ratios = _ratios(state)
        if ratios is None:
            return Seen("unknown", None, "different states for different tokens")
        first = self._row(state[0])
        for number in range(1, TOKENS + 1):
            seen = self._row(state[0] / number)
            tokens = [round(number * ratio, 9) for ratio in ratios]
            if seen.form != "unknown" and all(token in range(1, TOKENS + 1) for token in tokens):
                return self._of_tokens(seen, [int(token) - 1 for token in tokens])
        return Seen("unknown", None, first.holds if first.form == "unknown" else f"a multiple of {first.holds}")

    def _of_tokens(self, seen: Seen, tokens: list[int]) -> Seen:
        if tokens == list(range(TOKENS)):
            return seen
        which = ", ".join(map(str, tokens))
        if self.world.ranks.size > 1 and len(tokens) < TOKENS and seen.form == "stream":
            return Seen("shard", seen.boundary, f"the tokens {which} of {TOKENS} of {seen.holds}", which)
        return Seen(seen.form, seen.boundary, seen.holds, which)

    def _row(self, row: Any) -> Seen:
        matches = [boundary for boundary, state in enumerate(self.states) if _same(state[0], row)]
        if len(matches) == 1:
            return Seen("stream", matches[0], f"h[{matches[0]}]")
        if matches:
            return Seen("unknown", None, f"what is both {' and '.join(f'h[{boundary}]' for boundary in matches)}")
        support = _support(row[None])
        made = self._made
        if not support:
            return Seen("unknown", None, "zeros")
        if len(support) == 1 and made[support[0]].normed is not None and _same(row[support[0]], torch.tensor(1.0)):
            inner = self._row(_flat(made[support[0]].normed)[0])
            form = "norm" if inner.form == "stream" else "unknown"
            return Seen(form, inner.boundary if form == "norm" else None, f"a norm of {inner.holds}")
        return self._parts(row, support)

    def _rank_part(self, row: Any, support: list[int]) -> int | None:
        """The boundary of which a row is what this rank has without the others' parts."""
        ranks = self.world.ranks
        if ranks.size == 1:
            return None
        others = [index for index, made in enumerate(self._made) if made.own and index % ranks.size != ranks.rank]
        for boundary, state in enumerate(self.states):
            lacking = [index for index in others if state[0][index] != 0 and row[index] == 0]
            mine = state[0].clone()
            mine[lacking] = 0
            if lacking and _same(mine, row):
                return boundary
        return None

    def _parts(self, row: Any, support: list[int]) -> Seen:
        """A state that is no boundary: what it is made of."""
        made = self._made
        part = self._rank_part(row, support)
        if part is not None:
            return Seen("shard", part, f"the sum of one rank's parts, of h[{part}]")
        layers = sorted({made[index].layer for index in support})
        last = layers[-1]
        names = ", ".join(f"{made[index].what} of layer {made[index].layer}" for index in support[-3:])
        if len(support) > 3:
            names = f"{len(support)} states, the last of them {names}"
        if 0 <= last < self.num_layers and layers == [last]:
            grown = self.states[last + 1][0] - self.states[last][0]
            if all(_same(grown[index], row[index]) for index in support):
                return Seen("partial", last + 1, names)
        return Seen("unknown", None, names)


def _main_stack(entries: list[Entry]) -> list[Entry]:
    """The calls of the list of layers that ran last: encoders and towers run before it."""
    return [entry for entry in entries if entry.group == entries[-1].group] if entries else []


def _flat(state: Any) -> Any:
    return state.reshape(-1, WIDTH)


def _support(state: Any) -> list[int]:
    return [int(index) for index in torch.nonzero(state.abs().amax(dim=0) > 1e-12).flatten()]


def _same(left: Any, right: Any) -> bool:
    right = right.to(torch.float64)
    return bool(left.shape == right.shape and torch.allclose(left, right, rtol=1e-9, atol=1e-12))


def _ratios(state: Any) -> list[float] | None:
    """Each row as a multiple of the first; None where they are no multiples of it."""
    column = int(state[0].abs().argmax())
    if float(state[0, column]) == 0.0:
        return [1.0] * len(state) if not bool(state.any()) else None
    ratios = state[:, column] / state[0, column]
    return ratios.tolist() if _same(ratios[:, None] * state[:1], state) else None


def _numbers(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"
