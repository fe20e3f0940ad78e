"""The shape probe: states of the target's widths are pushed through a draft's input path, step by step.

A weight is first loaded as engines load it, into a parameter of the shape that the config asks for, then used as the
checkpoint has it. What fails is kept with torch's own words, and the run goes on behind it as if it had fitted, so that
one run shows every place that does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F

from eaglelint.probe.device import DTYPES, machine_memory
from eaglelint.probe.input_path import InputPath, Projection, Weight
from eaglelint.probe.mapped import mapped

__all__ = ["ShapeError", "ShapeRun", "Step", "TooLarge", "run_shapes"]

Step = Literal[
    "build", "layers", "embedding", "mask", "norm", "fc", "concat", "projection", "heads", "head", "map", "values"
]

_EPS = 1e-6
# Torch counts the bytes of a tensor in 63 bits, also where it does not allocate them.
_LARGEST = 2**62


class TooLarge(Exception):
    """A config or header asks for a tensor that cannot be; the message is the rest of a sentence."""


@dataclass(frozen=True, slots=True)
class ShapeError:
    """One error: where, the tensor it speaks of, its type, and its words as torch or the engine has them."""

    step: Step
    tensor: str
    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.tensor}: {self.kind}: {self.message}"


@dataclass(frozen=True, slots=True)
class ShapeRun:
    """What a run saw: every step as ``fc fc.weight: [4, 192] × [64, 192] -> [4, 64]``, and the errors in order."""

    steps: tuple[str, ...]
    errors: tuple[ShapeError, ...]
    notes: tuple[str, ...]
    tokens: int

    @property
    def passed(self) -> bool:
        return not self.errors


def run_shapes(
    path: InputPath,
    *,
    device: torch.device,
    dtype: torch.dtype | None = None,
    tokens: int = 4,
    files: Mapping[str, Path] | None = None,
) -> ShapeRun:
    """Push a few tokens through.

    Args:
        path: What an engine builds.
        device: The meta device computes shapes alone.
        dtype: The checkpoint's if left out.
        tokens: How many.
        files: The checkpoint's files by name where its values are to be used; without, weights are zero.

    Raises:
        TooLarge: A tensor cannot be made here.
        UnreadableInput: Values cannot be mapped.
    """
    with torch.no_grad():
        return _Run(path, device, dtype or DTYPES[path.dtype], tokens, files).run()


def _joined(*parts: torch.Tensor) -> torch.Tensor:
    return torch.cat(parts, dim=-1)


def _room(device: torch.device) -> int:
    """Bytes that one tensor may take: what is free on a GPU, half of the machine's memory on the CPU."""
    if device.type == "meta":
        return _LARGEST
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return machine_memory() // 2


@dataclass(slots=True)
class _Run:
    path: InputPath
    device: torch.device
    dtype: torch.dtype
    tokens: int
    files: Mapping[str, Path] | None
    steps: list[str] = field(default_factory=list)
    errors: list[ShapeError] = field(default_factory=list)

    def run(self) -> ShapeRun:
        path = self.path
        self._build()
        embeds = self._embed()
        states = self._states()
        if path.kind == "eagle":
            hidden = self._fc(self._join("concat", embeds, states))
            self._project(hidden)
        else:
            hidden = self._fc(self._norms(states))
            self._first_layer(embeds, hidden)
        self._head()
        return ShapeRun(tuple(self.steps), tuple(self.errors), path.notes, self.tokens)

    # --- parameters ---------------------------------------------------------------------------------------------

    def _fail(self, step: Step, tensor: str, error: Exception) -> None:
        words = str(error).strip().splitlines()
        self.errors.append(ShapeError(step, tensor, type(error).__name__, words[0] if words else ""))

    def _load(self, step: Step, weight: Weight) -> torch.Tensor:
        """The parameter, filled as ``default_weight_loader`` does (SGLang 0.5.23, vLLM 0.33.0, ``weight_utils.py``)."""
        loaded = weight.loaded
        try:
            if loaded is not None and loaded != weight.shape:
                raise AssertionError(
                    f"Attempted to load weight ({torch.Size(loaded)}) into parameter ({torch.Size(weight.shape)})"
                )
        except AssertionError as error:
            self._fail(step, weight.name, error)
        if loaded is None or self.files is None or weight.tensor is None or self.device.type == "meta":
            return self._zeros(*(weight.shape if loaded is None else loaded))
        values = mapped(self.files[weight.tensor.path], weight.tensor)
        return values.to(device=self.device, dtype=self.dtype)

    def _zeros(self, *shape: int) -> torch.Tensor:
        size = prod(shape) * self.dtype.itemsize
        if any(length < 0 for length in shape) or size > _room(self.device):
            raise TooLarge(f"a tensor {list(shape)} of {size / 2**30:.1f} GiB is more than {self.device} holds")
        # One zero, seen from everywhere: an embedding of which a few rows are read takes no memory.
        return torch.zeros((), dtype=self.dtype, device=self.device).expand(shape)

    # --- steps --------------------------------------------------------------------------------------------------

    def _try(
        self, step: Step, tensor: str, make: Callable[..., torch.Tensor], *inputs: torch.Tensor, gives: tuple[int, ...]
    ) -> torch.Tensor:
        """One operation; where it fails, zeros of the shape that should have come out."""
        try:
            result = self._made(make, inputs)
        except (RuntimeError, IndexError, AssertionError) as error:
            self._fail(step, tensor, error)
            return self._zeros(*gives)
        shown = " × ".join(str(list(item.shape)) for item in inputs)
        self.steps.append(f"{step} {tensor}: {shown} -> {list(result.shape)}")
        return result if tuple(result.shape) == gives else self._zeros(*gives)

    def _made(self, make: Callable[..., torch.Tensor], inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """The result; on the meta device without values.

        Only products of matrices are large, and only they are left to that device. The rest runs on the CPU with one
        zero seen from everywhere: torch's meta kernels for it take a second to import. The CPU also says why a product
        cannot be, before it computes one, in the words of a server, which meta has not.
        """
        if self.device.type != "meta":
            return make(*inputs)
        alike = tuple(torch.zeros((), dtype=item.dtype).expand(item.shape) for item in inputs)
        if make is not F.linear:
            return self._zeros(*make(*alike).shape)
        try:
            return make(*inputs)
        except RuntimeError:
            make(*alike)
            raise

    def _build(self) -> None:
        depth, there = self.path.layers
        try:
            if self.path.refusal:
                raise ValueError(f"{self.path.refusal} (SGLang 0.5.9, llama_eagle3.py)")
            if depth is not None and there and depth > len(there):
                names = [f"layers.{number}" for number in range(depth) if number not in there]
                raise ValueError(
                    f"Following weights were not initialized from checkpoint: {', '.join(names[:3])}"
                    + (f" and {len(names) - 3} more layers" if len(names) > 3 else "")
                )
            if depth is not None and depth < len(there):
                raise ValueError(f"There is no module or parameter named 'layers.{max(there)}': {depth} are built")
        except ValueError as error:
            self._fail("build" if self.path.refusal else "layers", "num_hidden_layers", error)

    def _embed(self) -> torch.Tensor:
        weight = self.path.embedding
        assert weight is not None
        table = self._load("embedding", weight)
        ids = torch.zeros(self.tokens, dtype=torch.int64, device=self.device)
        width = self.path.width
        embeds = self._try("embedding", weight.name, F.embedding, ids, table, gives=(self.tokens, table.shape[-1]))
        if embeds.shape[-1] != width:
            # vLLM asserts it; SGLang stops in the first norm, or in the concatenation.
            self._fail(
                "embedding",
                weight.name,
                AssertionError(
                    f"hidden_states and input_embeds must have the same last dimension: {width} and {embeds.shape[-1]}"
                ),
            )
            embeds = self._zeros(self.tokens, width)
        return embeds

    def _states(self) -> torch.Tensor:
        feed = self.path.feed
        states_joined = self._zeros(self.tokens, feed.states * feed.width)
        self.steps.append(f"states: {feed.states} of {feed.width} -> {list(states_joined.shape)}")
        mask = self.path.mask_hidden
        if mask is not None:
            hidden = self._load("mask", mask)
            place = torch.ones(self.tokens, 1, dtype=torch.bool, device=self.device)
            self._try(
                "mask",
                mask.name,
                torch.where,
                place,
                hidden.view(1, -1),
                states_joined,
                gives=tuple(states_joined.shape),
            )
        return states_joined

    def _norms(self, states: torch.Tensor) -> torch.Tensor:
        if self.path.fc is None:
            return states
        if self.path.joined_norm is not None:
            states = self._rms("norm", self.path.joined_norm, states)
        norms = self.path.state_norms
        if norms:
            parts = states.chunk(len(norms), dim=-1)
            normed = [self._rms("norm", norm, part) for norm, part in zip(norms, parts, strict=False)]
            states = self._try("norm", "cat(states)", _joined, *normed, gives=tuple(states.shape))
        return states

    def _rms(self, step: Step, weight: Weight | None, value: torch.Tensor) -> torch.Tensor:
        if weight is None:
            return value
        scale = self._load(step, weight)
        return self._try(
            step,
            weight.name,
            lambda x, w: F.rms_norm(x, tuple(w.shape), w, _EPS),
            value,
            scale,
            gives=tuple(value.shape),
        )

    def _fc(self, states: torch.Tensor) -> torch.Tensor:
        weight = self.path.fc
        if weight is None:
            return states
        matrix = self._load("fc", weight)
        return self._try("fc", weight.name, F.linear, states, matrix, gives=(self.tokens, self.path.width))

    def _join(self, step: Step, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        gives = (self.tokens, left.shape[-1] + right.shape[-1])
        return self._try(step, "cat(embedding, state)", _joined, left, right, gives=gives)

    def _first_layer(self, embeds: torch.Tensor, hidden: torch.Tensor) -> None:
        path = self.path
        state = self._rms("norm", path.hidden_norm, hidden)
        embeds = self._rms("norm", path.input_norm, embeds)
        if not path.joined:
            # DFlash: queries from the tokens, keys and values from the states too; all as wide as the draft.
            self._project(state)
            return
        self._project(self._join("concat", embeds, state))

    def _project(self, value: torch.Tensor) -> None:
        for projection in self.path.projections:
            self._heads(projection, value)
        output = self.path.output
        if output is not None:
            matrix = self._load("heads", output)
            attended = self._zeros(self.tokens, output.shape[1])
            self._try("heads", output.name, F.linear, attended, matrix, gives=(self.tokens, self.path.width))

    def _heads(self, projection: Projection, value: torch.Tensor) -> None:
        weight = projection.weight
        matrix = self._load("projection" if self._wrong_input(weight) else "heads", weight)
        rows = matrix.shape[0]
        result = self._try("projection", weight.name, F.linear, value, matrix, gives=(self.tokens, rows))
        if projection.heads is not None and projection.size is not None:
            shape = (self.tokens, projection.heads, projection.size)
            self._try("heads", weight.name, lambda x: x.view(shape), result, gives=shape)

    @staticmethod
    def _wrong_input(weight: Weight) -> bool:
        return weight.loaded is not None and weight.loaded[1:] != weight.shape[1:]

    def _head(self) -> None:
        path = self.path
        hidden = self._rms("norm", path.norm, self._zeros(self.tokens, path.width))
        if path.head is None:
            return
        matrix = self._load("head", path.head)
        logits = self._try("head", path.head.name, F.linear, hidden, matrix, gives=(self.tokens, matrix.shape[0]))
        if path.d2t is not None and path.vocabulary is not None:
            self._scatter(logits.shape[-1], path.d2t, path.vocabulary)

    def _scatter(self, proposed: int, offsets: Any, vocabulary: int) -> None:
        """``logits_new[:, arange + d2t] = logits`` (vLLM 0.33.0); on the CPU, as the indices have values."""
        targets = torch.arange(len(offsets)) + torch.tensor(list(offsets))
        one = torch.zeros(1, proposed)

        def write(index: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
            full = torch.full((1, vocabulary), float("-inf"))
            full[:, index] = logits
            return full

        try:
            write(targets, one)
        except (RuntimeError, IndexError) as error:
            self._fail("map", "d2t", error)
        else:
            self.steps.append(f"map d2t: {proposed} draft tokens -> {vocabulary}")
            if int(targets.min()) < 0 <= int(targets.max()):
                self._fail("map", "d2t", IndexError(f"a draft token stands for target token {int(targets.min())}"))
