"""Which training stack wrote a draft's config, by what the config contains, and what its ids then mean.

``certain`` is only what the config declares of itself; keys and ids that several stacks may write are ``likely``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from eaglelint.artifacts.draft import DraftConfig

__all__ = ["Origin", "contradiction", "origin_of"]

Convention = Literal["layer-output", "boundary"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The stack that wrote a config.

    Attributes:
        stack: Its name as ``--trained-by`` takes it.
        release: The release that the config declares, None where it declares none.
        convention: What ids that the stack writes mean; None where that depends on its release or on an engine.
        confidence: ``certain`` where the config declares it, ``likely`` where keys tell it.
        reason: What tells it.
    """

    stack: str
    release: str | None
    convention: Convention | None
    confidence: Literal["certain", "likely"]
    reason: str


@dataclass(frozen=True, slots=True)
class _Mark:
    """A sign of one stack: all of ``keys``, dotted key paths, are there; ``unless`` none of those."""

    stack: str
    convention: Convention | None
    keys: tuple[str, ...]
    reason: str
    unless: tuple[str, ...] = ()
    declares: bool = False


# The first mark that fits decides. Read in the exporters and training code of speculators 0.9.0 (models/*/core.py,
# from_training_args), ModelOpt 0.47.0 (torch/export/plugins/hf_spec_configs.py), SpecForge 0.2.0 (algorithms/
# model_providers.py, export/to_hf.py), AngelSlim 0.5.0 and TorchSpec (its README and config/); docs/trainers.md has
# file and line of each.
_MARKS: tuple[_Mark, ...] = (
    _Mark(
        "speculators",
        "boundary",
        ("speculators_config", "eagle_aux_hidden_state_layer_ids"),
        "speculators_config, and ids at the top level",
        declares=True,
    ),
    _Mark(
        "speculators",
        "boundary",
        ("speculators_config", "aux_hidden_state_layer_ids"),
        "speculators_config, and aux_hidden_state_layer_ids",
        declares=True,
    ),
    _Mark("torchspec", None, ("_torchspec_version",), "_torchspec_version, which its converter writes", declares=True),
    _Mark("speculators", None, ("speculators_config",), "speculators_config", declares=True),
    _Mark("speculators", None, ("speculators_model_type",), "speculators_model_type", declares=True),
    _Mark(
        "modelopt",
        "layer-output",
        ("eagle_config.use_last_layernorm", "eagle_config.next_layer_regular"),
        "eagle_config.next_layer_regular and use_last_layernorm, of ModelOpt's export template",
    ),
    _Mark(
        "angelslim",
        "layer-output",
        ("aux_hidden_states_layer_ids",),
        "aux_hidden_states_layer_ids, AngelSlim's spelling",
    ),
    _Mark(
        "specforge",
        "layer-output",
        ("dflash_config.target_layer_ids", "dflash_config.projector_type"),
        "dflash_config.projector_type, which SpecForge and ModelOpt write",
    ),
    _Mark(
        "specforge",
        "layer-output",
        ("dflash_config.target_layer_ids", "num_target_layers"),
        "dflash_config and num_target_layers, the layout of z-lab DFlash, which SpecForge and ModelOpt write too",
    ),
    _Mark(
        "specforge",
        "layer-output",
        ("eagle_config.eagle_aux_hidden_state_layer_ids",),
        "ids nested in eagle_config, as SpecForge and TorchSpec read them",
    ),
)


def origin_of(draft: DraftConfig) -> Origin | None:
    """The stack that a config comes from; None where nothing tells."""
    for mark in _MARKS:
        if all(_has(draft.data, key) for key in mark.keys) and not any(_has(draft.data, key) for key in mark.unless):
            release = _release(draft.data, mark.stack)
            return Origin(mark.stack, release, mark.convention, "certain" if mark.declares else "likely", mark.reason)
    return None


def contradiction(draft: DraftConfig, stack: str, label: str) -> str | None:
    """A sentence where a config declares another stack than the user says; None where it does not."""
    origin = origin_of(draft)
    if origin is None or origin.stack == stack or origin.confidence != "certain":
        return None
    version = f" {origin.release}" if origin.release else ""
    return (
        f"{draft.path}: --trained-by says {label}, but the config says that {origin.stack}{version} wrote it "
        f"({origin.reason}). What was said counts; check it."
    )


def _has(data: Mapping[str, Any], key: str) -> bool:
    value: Any = data
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value is not None


# speculators 0.9.0, config.py; TorchSpec, tools/convert_to_hf.py.
_RELEASES = {"speculators": "speculators_version", "torchspec": "_torchspec_version"}


def _release(data: Mapping[str, Any], stack: str) -> str | None:
    """The release that a stack writes into its configs."""
    found = data.get(_RELEASES.get(stack, ""))
    return found if isinstance(found, str) and found[:1].isdigit() else None
