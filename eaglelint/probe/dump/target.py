"""The target's own states for some tokens, recomputed layer by layer from a local checkpoint.

Boundaries are read by hooks on the decoder layers, as ``output_hidden_states`` gives norm(h[N]) for the last one
(transformers 5.24). A checkpoint that is larger than the memory given stays on disk, and accelerate reads each module's
weights as it is reached.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from eaglelint.exceptions import UnreadableInput
from eaglelint.probe.device import machine_memory
from eaglelint.project.discovery import display_path

__all__ = ["TargetStates", "hidden_size_of", "loaded", "recompute"]

Progress = Callable[[int, int], None]

# Norms behind a branch, in models that norm what a branch gives (Gemma 2 and 3): their input is no stream.
_AFTER_BRANCH = ("post_feedforward", "post_mlp", "post_ffw")


@dataclass(frozen=True, slots=True, eq=False)
class TargetStates:
    """States of one sample, as float32 on the CPU.

    Attributes:
        stream: h[0..N], [N + 1, T, H].
        normed: The final norm of each of them.
        branch: What the last branch of layer k - 1 adds to make h[k], for k in 1..N; h[k] without it is ``residual``.
        layer_normed: What the first norm of layer k makes of h[k], for k in 0..N - 1.
    """

    stream: torch.Tensor
    normed: torch.Tensor
    branch: torch.Tensor | None = None
    residual: torch.Tensor | None = None
    layer_normed: torch.Tensor | None = None

    @property
    def depth(self) -> int:
        return len(self.stream) - 1


def recompute(
    model: nn.Module, ids: Sequence[int], progress: Progress = lambda done, total: None, *, path: str = "the target"
) -> TargetStates:
    """Run a model over the tokens and keep what each layer is handed and gives.

    Raises:
        UnreadableInput: The model's layers are not found, or hand on something else than one state for each token.
    """
    layers, inner = _decoder(model, path)
    vocabulary = model.get_input_embeddings().weight.shape[0]
    outside = next((token for token in ids if not 0 <= token < vocabulary), None)
    if outside is not None:
        raise UnreadableInput(f"The sample has token {outside}, and {path} has {vocabulary} tokens.")
    seen = _Seen(len(layers), progress)
    handles = []
    try:
        handles.append(layers[0].register_forward_pre_hook(seen.first, with_kwargs=True))
        for number, layer in enumerate(layers):
            handles.append(layer.register_forward_hook(seen.after(number)))
            for name, child in layer.named_children():
                handles.append(child.register_forward_hook(seen.inside(number, name)))
        device = next((p.device for p in model.parameters() if p.device.type != "meta"), torch.device("cpu"))
        with torch.no_grad():
            model(input_ids=torch.tensor([list(ids)], device=device), use_cache=False)
            return seen.gathered(_final_norm(inner, path), path)
    except (RuntimeError, ValueError, TypeError, AttributeError, NotImplementedError) as error:
        raise UnreadableInput(f"{path} cannot be run over {len(ids)} tokens: {_first_line(error)}") from None
    finally:
        for handle in handles:
            handle.remove()


@dataclass(frozen=True, slots=True)
class _Step:
    """A module directly inside of a layer, in the order of their calls: what it was given, and what it gave."""

    name: str
    is_norm: bool
    given: torch.Tensor
    gave: torch.Tensor


class _Seen:
    """What the hooks have written down."""

    def __init__(self, depth: int, progress: Progress) -> None:
        self.depth, self.progress = depth, progress
        self.stream: dict[int, torch.Tensor] = {}
        self.residual: dict[int, torch.Tensor] = {}
        self.branch: dict[int, torch.Tensor] = {}
        self.layer_normed: dict[int, torch.Tensor] = {}
        self.steps: list[_Step] = []
        self.like = torch.device("cpu"), torch.float32

    def first(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = args[0] if args else kwargs.get("hidden_states")
        if isinstance(given, torch.Tensor):
            self.like = given.device, given.dtype
            self.stream[0] = _kept(given)

    def inside(self, number: int, name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            given = args[0] if args else None
            gave = output[0] if isinstance(output, tuple) else output
            if isinstance(gave, torch.Tensor):
                like = given if isinstance(given, torch.Tensor) else gave
                is_norm = "norm" in type(module).__name__.lower()
                self.steps.append(_Step(name, is_norm, _kept(like), _kept(gave)))

        return hook

    def after(self, number: int) -> Callable[[nn.Module, Any, Any], None]:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            state = output[0] if isinstance(output, tuple) else output
            if isinstance(state, torch.Tensor):
                self.stream[number + 1] = _kept(state)
                self._parts(number, self.stream[number + 1])
            self.steps.clear()
            self.progress(number + 1, self.depth)

        return hook

    def _parts(self, number: int, state: torch.Tensor) -> None:
        """The state without its last branch, that branch, and the norm that the layer began with."""
        norms = [step for step in self.steps if step.is_norm and step.given.shape == state.shape]
        if norms and norms[0].gave.shape == state.shape:
            self.layer_normed[number] = norms[0].gave
        before = [step.given for step in norms[1:] if not step.name.startswith(_AFTER_BRANCH)]
        if not before:
            return
        residual = before[-1]
        branch, last = state - residual, self.steps[-1].gave.reshape(-1, state.shape[-1])
        # What the last module gave is that branch without the rounding of a sum, where it adds up.
        adds_up = last.shape == state.shape and torch.allclose(residual + last, state, rtol=0.02, atol=0.02)
        self.residual[number], self.branch[number] = residual, last if adds_up else branch

    def gathered(self, final_norm: nn.Module, path: str) -> TargetStates:
        states = [state for k in range(self.depth + 1) if (state := self.stream.get(k)) is not None]
        if len(states) <= self.depth or any(state.dim() != 2 or state.shape != states[0].shape for state in states):
            raise UnreadableInput(f"{path}: its layers hand on something else than one state for each token.")
        device, dtype = self.like
        normed = [final_norm(state[None].to(device, dtype))[0].float().cpu() for state in states]
        return TargetStates(
            torch.stack(states),
            torch.stack(normed),
            self._stacked(self.branch),
            self._stacked(self.residual),
            self._stacked(self.layer_normed),
        )

    def _stacked(self, by_layer: dict[int, torch.Tensor]) -> torch.Tensor | None:
        """One for each layer; ``None`` where a layer has none, or another shape."""
        if len(by_layer) < self.depth:
            return None
        return torch.stack([by_layer[number] for number in range(self.depth)])


def _kept(value: torch.Tensor) -> torch.Tensor:
    value = value.detach()
    return (value[0] if value.dim() >= 3 and value.shape[0] == 1 else value).float().cpu()


def _decoder(model: nn.Module, path: str) -> tuple[nn.ModuleList, nn.Module]:
    """The decoder layers of the language model, and the module that holds them."""
    config: Any = model.config
    depth = getattr(config.get_text_config(), "num_hidden_layers", None)
    found = [
        (child, module)
        for module in model.modules()
        for child in module.children()
        if isinstance(child, nn.ModuleList) and len(child) == depth
    ]
    if not found:
        raise UnreadableInput(f"{path}: no list of {depth} decoder layers was found in {type(model).__name__}.")
    # An encoder for images may be as deep: the language model's layers are the ones beside its embedding.
    embedding = model.get_input_embeddings()
    return next(
        ((layers, inner) for layers, inner in found if any(child is embedding for child in inner.children())), found[0]
    )


def _final_norm(inner: nn.Module, path: str) -> nn.Module:
    norms = [child for child in inner.children() if "norm" in type(child).__name__.lower()]
    if not norms:
        raise UnreadableInput(f"{path}: no final norm was found in {type(inner).__name__}.")
    return norms[-1]


# --- loading -------------------------------------------------------------------------------------------------------


def hidden_size_of(directory: Path) -> int:
    """The width of the model's states, by its config.

    Raises:
        UnreadableInput: There is no model, or none that transformers knows.
    """
    directory = _directory(directory)
    config = _config(directory)
    width = getattr(config.get_text_config(), "hidden_size", None)
    if type(width) is not int or width <= 0:
        raise UnreadableInput(f"{display_path(directory)}/config.json says no hidden_size.")
    return width


@contextmanager
def loaded(directory: Path, *, device: torch.device, memory: int | None = None) -> Iterator[nn.Module]:
    """The model, on the device as far as it fits, the rest in memory, the rest on disk.

    Args:
        directory: A checkpoint of transformers.
        device: The GPU, or the CPU.
        memory: Bytes of the CPU's memory that it may take; half of the machine's if left out.

    Raises:
        UnreadableInput: It is not there, is not known to transformers, or cannot be loaded.
    """
    from transformers import AutoModel, AutoModelForCausalLM

    directory = _directory(directory)
    config = _config(directory)
    files = [*directory.glob("*.safetensors"), *directory.glob("*.bin")]
    size = sum(file.stat().st_size for file in files)
    shown = display_path(directory)
    if not files:
        raise UnreadableInput(f"{shown} holds no weights. --model takes the target's checkpoint.")
    limit = machine_memory() // 2 if memory is None else memory
    with tempfile.TemporaryDirectory(prefix="eaglelint-") as offload, _quiet():
        where: dict[str, Any] = {}
        if device.type == "cuda" or size > limit:
            from eaglelint.probe import require

            require("accelerate")
            where = {"device_map": "auto", "offload_folder": offload, "max_memory": {"cpu": max(1, limit)}}
            if device.type == "cuda":
                free, _ = torch.cuda.mem_get_info(device)
                where["max_memory"][0] = int(free * 0.8)
        errors = []
        for kind in (AutoModelForCausalLM, AutoModel):
            try:
                model = kind.from_pretrained(
                    directory, config=config, dtype="auto", local_files_only=True, trust_remote_code=False, **where
                )
            except Exception as error:  # a broken checkpoint ends in whatever its reader raises
                errors.append(_first_line(error))
                continue
            yield model.eval()
            return
        raise UnreadableInput(f"{shown} cannot be loaded as a model of transformers: {errors[0]}")


def _directory(path: Path) -> Path:
    """The model's directory, also where its config was named."""
    return path.parent if path.is_file() else path


def _config(directory: Path) -> Any:
    from transformers import AutoConfig

    shown = display_path(directory)
    if not (directory / "config.json").is_file():
        raise UnreadableInput(f"{shown} is no model: it has no config.json. --model takes a checkpoint's directory.")
    try:
        with _quiet():
            return AutoConfig.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # configs of unknown types fail in many ways
        raise UnreadableInput(
            f"{shown}: transformers does not know this model without running its own code, which is not done: "
            f"{_first_line(error)}"
        ) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Transformers' own bars and warnings would stand between ours."""
    from transformers.utils import logging as module

    logging: Any = module  # its functions have no annotations
    before = logging.get_verbosity()
    shown = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if shown:
            logging.enable_progress_bar()


def _first_line(error: Exception) -> str:
    words = str(error).strip().splitlines()
    return words[0][:200] if words else type(error).__name__
