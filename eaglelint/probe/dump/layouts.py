"""The layouts of dumps: under which keys ids, captured states and the label lie, and how the states are joined.

Read in these sources; n captured states of H features for T tokens:

- SpecForge 0.2.0, EAGLE-3 (``algorithms/eagle3/data.py``): ``input_ids`` [T], ``aux_hidden_state`` [1, T, nH], and as
  the label ``hidden_state`` [1, T, H], normed.
- SpecForge 0.2.0, DFlash family (``algorithms/common/dflash_family_data.py``): ``hidden_states`` [1, T, nH], for DSpark
  ``target_last_hidden_states`` [1, T, H].
- speculators 0.9.0 (``train/data.py``), vLLM 0.33.0 (``example_hidden_states_connector.py``): ``token_ids`` [T],
  ``hidden_states`` [T, n + 1, H], the last of them the label, before the norm.
- speculators before 2026-04: ``hidden_states``, a list of [T, H], the last of them the label.
- ModelOpt 0.47.0 (``speculative/eagle/utils.py``): ``aux_hidden_states`` [T, nH], ``hidden_states`` [T, H], normed
  unless ``hidden_states_prenorm`` says otherwise.
- TorchSpec (``tests/test_offline_replay.py``): ``input_ids`` [1, T], ``hidden_states`` [1, T, nH],
  ``last_hidden_states`` [1, T, H], normed or not as its manifest says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from eaglelint.exceptions import UnreadableInput

__all__ = ["Dump", "recognise"]

_IDS = ("input_ids", "token_ids", "tokens")
_AUXILIARY = ("aux_hidden_state", "aux_hidden_states")
_LABELS = ("last_hidden_states", "target_last_hidden_states", "last_hidden_state", "target")


@dataclass(frozen=True, slots=True, eq=False)
class Dump:
    """One sample, taken apart.

    Attributes:
        path: As messages name it.
        layout: Whose layout it follows.
        key: The key of the captured states, and how they lie there.
        ids: The sample's tokens.
        slots: The captured states in their order, each [T, H].
        interleaved: The same under the reading that the states of one feature lie side by side; for the case that
            they were flattened in the wrong order.
        label: The state that the draft learns to reach, [T, H].
        label_key: Where it lies.
        label_normed: Whether this layout has the label after the final norm; ``None`` where it does not say.
        notes: What was odd.
    """

    path: str
    layout: str
    key: str
    ids: tuple[int, ...]
    slots: tuple[torch.Tensor, ...]
    interleaved: tuple[torch.Tensor, ...] = ()
    label: torch.Tensor | None = None
    label_key: str = ""
    label_normed: bool | None = None
    notes: tuple[str, ...] = ()


def recognise(sample: Mapping[str, Any], path: str, *, width: int, most_tokens: int) -> Dump:
    """Take a sample apart by its keys and shapes.

    Args:
        sample: Tensors and lists of tensors by key.
        path: How messages name the file.
        width: The target's hidden size.
        most_tokens: How many tokens from the beginning are kept.

    Raises:
        UnreadableInput: Ids or states are missing, or no whole number of states of this width lies in it.
    """
    ids_key = next((key for key in _IDS if key in sample), None)
    if ids_key is None:
        raise UnreadableInput(f"{path} holds no token ids ({', '.join(_IDS)}); its keys are {_keys(sample)}.")
    ids = _ids(sample[ids_key], path, ids_key)
    layout, key, label_key, normed = _layout(sample, ids_key, path)
    states, notes = _states(sample[key], path, key, width)
    shape = list(sample[key].shape) if isinstance(sample[key], torch.Tensor) else f"a list of {len(sample[key])}"
    tokens = min(len(ids), states.shape[0])
    if len(ids) != states.shape[0]:
        notes.append(f"{ids_key} has {len(ids)} tokens and {key} has states of {states.shape[0]}")
    tokens = min(tokens, most_tokens)
    states = states[:tokens].float()
    slots = list(states.unbind(1))
    interleaved: tuple[torch.Tensor, ...] = ()
    if states.shape[1] > 1:
        flat = states.reshape(tokens, -1)
        interleaved = flat.reshape(tokens, width, -1).unbind(2)
    label: torch.Tensor | None = None
    if label_key == key:
        label = slots.pop()
        interleaved = interleaved[:-1]
        label_key = f"the last layer of {key}"
    elif label_key:
        last, more = _states(sample[label_key], path, label_key, width)
        notes += more
        if last.shape[1] != 1 or last.shape[0] < tokens:
            notes.append(f"{label_key} [{last.shape[0]}, {last.shape[1] * width}] is not one state for each token")
        else:
            label = last[:tokens, 0].float()
    if not slots:
        raise UnreadableInput(f"{path}: {key} {shape} holds one state, the label, and no captured one.")
    return Dump(
        path, layout, f"{key} {shape}", tuple(ids[:tokens]), tuple(slots), tuple(interleaved), label,
        label_key if label is not None else "", normed, tuple(notes),
    )  # fmt: skip


def _layout(sample: Mapping[str, Any], ids_key: str, path: str) -> tuple[str, str, str, bool | None]:
    """Whose layout it is, the keys of the captured states and of the label, and whether the label is normed."""
    auxiliary = next((key for key in _AUXILIARY if key in sample), None)
    if auxiliary == "aux_hidden_state":
        return "SpecForge, EAGLE-3", auxiliary, "hidden_state" if "hidden_state" in sample else "", True
    if auxiliary is not None:
        prenorm = _flag(sample.get("hidden_states_prenorm"))
        return "ModelOpt", auxiliary, "hidden_states" if "hidden_states" in sample else "", not prenorm
    states = sample.get("hidden_states")
    label = next((key for key in _LABELS if sample.get(key) is not None), "")
    if isinstance(states, (list, tuple)):
        return "speculators before 2026-04", "hidden_states", "hidden_states", False
    if isinstance(states, torch.Tensor):
        if ids_key == "token_ids" and not label:
            return "speculators and vLLM", "hidden_states", "hidden_states", False
        if label == "last_hidden_states":
            return "TorchSpec", "hidden_states", label, None
        return "SpecForge, DFlash family", "hidden_states", label, True if label else None
    if isinstance(sample.get("hidden_state"), torch.Tensor):
        return "speculators, first data format", "hidden_state", label, True if label else None
    raise UnreadableInput(
        f"{path} holds no captured states ({', '.join((*_AUXILIARY, 'hidden_states'))}); its keys are {_keys(sample)}."
    )


def _flag(value: Any) -> bool:
    """A flag as it was saved: plain, or as a tensor of one value."""
    if isinstance(value, torch.Tensor):
        return value.numel() == 1 and bool(value)
    return value is True


def _ids(value: Any, path: str, key: str) -> list[int]:
    try:
        tensor = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise UnreadableInput(f"{path}: {key} is no list of token ids.") from None
    if tensor.is_floating_point() or tensor.is_complex() or tensor.numel() == 0 or tensor.dim() not in (1, 2):
        raise UnreadableInput(f"{path}: {key} {list(tensor.shape)} ({tensor.dtype}) holds no token ids of one sample.")
    return [int(item) for item in (tensor[0] if tensor.dim() == 2 else tensor).tolist()]


def _states(value: Any, path: str, key: str, width: int) -> tuple[torch.Tensor, list[str]]:
    """The states as [T, n, H], however they were joined."""
    notes: list[str] = []
    if isinstance(value, (list, tuple)):
        value = _stacked(value, path, key)
    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.numel() == 0:
        raise UnreadableInput(f"{path}: {key} holds no hidden states, but {_kind(value)}.")
    shape = list(value.shape)
    if value.dim() == 4 and value.shape[0] == 1:
        value = value[0]
    if not (value.dim() == 3 and value.shape[2] == width and value.shape[0] != 1):
        if value.dim() == 3:
            if value.shape[0] != 1:
                notes.append(f"{key} {shape} holds {value.shape[0]} samples: the first is compared")
            value = value[0]
        if value.dim() != 2 or value.shape[1] % width:
            raise UnreadableInput(
                f"{path}: {key} {shape} holds no whole number of states of {width} features, the target's "
                "hidden_size. Check that --model is the target of this dump."
            )
        value = value.reshape(value.shape[0], -1, width)
    if not bool(torch.isfinite(value).all()):
        notes.append(f"{key} holds values that are not finite")
    return value, notes


def _stacked(states: Sequence[Any], path: str, key: str) -> torch.Tensor:
    """A list of states [T, H] or [1, T, H] as [T, n, H]."""
    rows = [state.reshape(-1, state.shape[-1]) for state in states if isinstance(state, torch.Tensor) and state.numel()
            and state.dim() > 1]  # fmt: skip
    if not rows or len(rows) < len(states) or any(row.shape != rows[0].shape for row in rows):
        raise UnreadableInput(f"{path}: {key} is no list of states of one shape.")
    return torch.stack(rows, dim=1)


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor {list(value.shape)} of {str(value.dtype).removeprefix('torch.')}"
    return type(value).__name__


def _keys(sample: Mapping[str, Any]) -> str:
    return ", ".join(sorted(map(str, sample))[:8]) or "none"
