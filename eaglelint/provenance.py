"""Which training stack wrote a draft's config, by what the config contains, and what its ids then mean.

``certain`` is only what the config declares of itself; keys and ids that several stacks may write are ``likely``, and
where keys and ids point different ways nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from eaglelint.artifacts.draft import DraftConfig, DraftLayerIds
from eaglelint.wiring import Condition, Evidence, Slot, Wiring

__all__ = [
    "Origin",
    "contradicted_convention",
    "contradiction",
    "inferred_training",
    "origin_of",
    "provenance_note",
]

Convention = Literal["layer-output", "boundary"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The stack that wrote a config.

    Attributes:
        stack: Its name as ``--trained-by`` takes it.
        release: The release that the config declares, None where it declares none.
        convention: What ids that the stack writes mean; None where that depends on its release or on an engine.
        confidence: ``certain`` where the config declares it, ``likely`` where keys or ids tell it.
        reason: What tells it.
        ids: The list that the convention speaks of; None where there is none.
    """

    stack: str | None
    release: str | None
    convention: Convention | None
    confidence: Literal["certain", "likely"]
    reason: str
    ids: DraftLayerIds | None = None

    @property
    def writer(self) -> str:
        """The stack and its release, for a sentence."""
        return " ".join(part for part in (self.stack, self.release) if part)


@dataclass(frozen=True, slots=True)
class _Mark:
    """A sign of one stack: all of ``keys``, dotted key paths, are there. ``ids`` is where it writes its ids.

    ``since`` is the first release whose ids mean this; a config that names none is ``likely`` of that or a later one.
    """

    stack: str
    convention: Convention | None
    keys: tuple[str, ...]
    reason: str
    ids: str | None = None
    declares: bool = False
    since: tuple[int, ...] = ()


_NESTED = "eagle_config.eagle_aux_hidden_state_layer_ids"
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
        ids="eagle_aux_hidden_state_layer_ids",
        declares=True,
        since=(0, 5),
    ),
    _Mark(
        "speculators",
        "boundary",
        ("speculators_config", "aux_hidden_state_layer_ids"),
        "speculators_config, and aux_hidden_state_layer_ids",
        ids="aux_hidden_state_layer_ids",
        declares=True,
        since=(0, 5),
    ),
    _Mark(
        "torchspec",
        None,
        ("_torchspec_version",),
        "_torchspec_version, which its converter writes",
        ids=_NESTED,
        declares=True,
    ),
    _Mark("speculators", None, ("speculators_config",), "speculators_config", declares=True),
    _Mark("speculators", None, ("speculators_model_type",), "speculators_model_type", declares=True),
    _Mark(
        "modelopt",
        "layer-output",
        (
            "eagle_config.use_last_layernorm",
            "eagle_config.next_layer_regular",
        ),
        "eagle_config.next_layer_regular and use_last_layernorm, of ModelOpt's export template",
        ids=_NESTED,
    ),
    _Mark(
        "angelslim",
        "layer-output",
        ("aux_hidden_states_layer_ids",),
        "aux_hidden_states_layer_ids, AngelSlim's spelling",
        ids="aux_hidden_states_layer_ids",
    ),
    _Mark(
        "specforge",
        "layer-output",
        ("dflash_config.projector_type", "dflash_config.target_layer_ids"),
        "dflash_config.projector_type, which SpecForge and ModelOpt write",
        ids="dflash_config.target_layer_ids",
    ),
    _Mark(
        "specforge",
        "layer-output",
        ("num_target_layers", "dflash_config.target_layer_ids"),
        "dflash_config and num_target_layers, the layout of z-lab DFlash, which SpecForge and ModelOpt write too",
        ids="dflash_config.target_layer_ids",
    ),
    _Mark(
        "specforge",
        "layer-output",
        (_NESTED,),
        "ids nested in eagle_config, as SpecForge and TorchSpec read them",
        ids=_NESTED,
    ),
)


# The lists that trainers and engines take by themselves (docs/trainers.md): the same three states, counted either way.
# SpecForge 0.2.0, algorithms/model_providers.py:188; vLLM 0.33.0, models/interfaces.py:1617.
_TOP = ("eagle_aux_hidden_state_layer_ids",)


def _usual(num_layers: int) -> dict[tuple[int, ...], Convention]:
    outputs, boundaries = (1, num_layers // 2 - 1, num_layers - 4), (2, num_layers // 2, num_layers - 3)
    return {outputs: "layer-output", boundaries: "boundary"} if num_layers >= 8 else {}


def origin_of(draft: DraftConfig, num_layers: int | None = None) -> Origin | None:
    """The stack that a config comes from; None where nothing tells. ``num_layers`` is N of the target, where known."""
    for mark in _MARKS:
        if not all(_has(draft.data, key) for key in mark.keys):
            continue
        release = _release(draft.data, mark.stack)
        ids = None if mark.ids is None else draft.ids_at(*mark.ids.split("."))
        convention, declared = mark.convention, mark.declares
        if mark.since:
            numbers = _numbers(release)
            convention = convention if numbers is None or numbers >= mark.since else None
            declared = declared and numbers is not None
        told = Origin(mark.stack, release, convention, "certain" if declared else "likely", mark.reason, ids)
        return told if declared else _weighed(told, num_layers)
    ids = draft.ids_at(*_TOP)
    found = None if ids is None or num_layers is None else _by_ids(ids, num_layers)
    return None if found is None else Origin(None, None, found[0], "likely", found[1], ids)


def _by_ids(ids: DraftLayerIds, num_layers: int) -> tuple[Convention, str] | None:
    """What a list of ids is, read by itself: one of the two usual ones, or one that only boundaries reach."""
    usual = _usual(num_layers).get(ids.values)
    if usual is not None:
        return usual, f"{list(ids.values)} is the usual list, in {usual} ids, for {num_layers} layers"
    if max(ids.values) == num_layers:
        return "boundary", f"the id {num_layers} is beyond the last layer's output, and so a boundary"
    return None


def _weighed(origin: Origin, num_layers: int | None) -> Origin:
    """The same origin; without a convention where the ids themselves point to the other one."""
    found = None if origin.ids is None or num_layers is None else _by_ids(origin.ids, num_layers)
    if found is None or origin.convention is None or found[0] == origin.convention:
        return origin
    return replace(origin, convention=None, reason=f"{origin.reason}, but {found[1]}")


def inferred_training(draft: DraftConfig, num_layers: int | None) -> Wiring | None:
    """What the draft was trained on by its config alone; None where the convention of its ids is not told.

    Exact where the config declares it, else under the condition that what it shows of its writer is so. Only of a list
    that ascends: in what order others were fed is the trainer's to say.
    """
    origin = origin_of(draft, num_layers)
    if origin is None or origin.convention is None or origin.ids is None:
        return None
    values = origin.ids.values
    boundaries = [value + (origin.convention == "layer-output") for value in values]
    last = boundaries[-1] if num_layers is None else num_layers - (origin.convention == "layer-output")
    if list(values) != sorted(set(values)) or values[0] < 0 or boundaries[-1] > last:
        return None
    certain = origin.confidence == "certain"
    said = f"{origin.stack} wrote the config" if origin.stack else "the ids are what they look like"
    span = origin.ids.key_span
    return Wiring(
        party="training",
        name=f"{'declared' if certain else 'likely'} by the config: {origin.writer or 'its'} {origin.convention} ids",
        slots=tuple(Slot("stream", boundary) for boundary in boundaries),
        status="exact" if certain else "conditional",
        conditions=() if certain else (Condition(f"if {said}: {origin.reason}"),),
        draft_kind=draft.kind,
        layer_ids=values,
        num_layers=num_layers,
        ids_from=origin.ids.key_path,
        declared=True,
        inferred=True,
        evidence=(Evidence(span.path, span.start.line, origin.reason),) if certain else (),
    )


_ADVERBS = {"certain": "certainly", "likely": "likely"}


def provenance_note(draft: DraftConfig, num_layers: int | None) -> str | None:
    """A sentence on where a config is from, where that does not tell what its ids mean; None where nothing is known."""
    origin = origin_of(draft, num_layers)
    if origin is None or (origin.convention is not None and origin.ids is not None):
        return None
    from_whom = f"{_ADVERBS[origin.confidence]} by {origin.writer}" if origin.stack else "not told by whom"
    rest = "it holds no ids" if not draft.layer_ids else "what its ids mean does not follow"
    return f"{draft.path}: written {from_whom} ({origin.reason}); {rest}. Say it with --trained-by."


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


def contradicted_convention(draft: DraftConfig, convention: str, num_layers: int | None) -> str | None:
    """A sentence where a config declares that its ids mean something else than the user says; None where not."""
    origin = origin_of(draft, num_layers)
    if origin is None or origin.confidence != "certain" or origin.convention is None or origin.convention == convention:
        return None
    said, meant = (_COUNTED[name] for name in (convention, origin.convention))
    return (
        f"{draft.path}: --trained-by says that ids count {said}, but {origin.writer} wrote the config, and counts "
        f"{meant} ({origin.reason}). What was said counts; check it."
    )


_COUNTED = {"boundary": "boundaries", "layer-output": "layer outputs"}


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


def _numbers(release: str | None) -> tuple[int, ...] | None:
    return None if release is None else tuple(int(number) for number in re.findall(r"\d+", release)[:3])
