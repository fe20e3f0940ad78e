"""Where vLLM loads a draft: ``load_weights`` of its class, then what proposer or runner share with the target."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eaglelint.engines.base import EngineSource, stand_in
from eaglelint.engines.loading import Trial
from eaglelint.source.calls import call_value
from eaglelint.source.index import ClassInfo, FunctionInfo
from eaglelint.source.lookup import find_method
from eaglelint.source.machine import Machine, Raised
from eaglelint.source.slices import Site
from eaglelint.source.values import BoundMethod, ClassValue, External, Function, Instance, Partial

__all__ = ["config_of_draft", "load_draft"]

# v1/spec_decode/eagle.py (0.11.0 to 0.33.0); v1/worker/gpu/spec_decode/eagle/utils.py (0.33.0).
_PROPOSER, _OF_RUNNER_V2 = "EagleProposer", "load_eagle_model"
_LOADED = "weights loader.load_weights"
_FOUND = "the configuration was handed over"


def load_draft(machine: Machine, source: EngineSource, config: Instance, trial: Trial, *, runner: str) -> bool:
    """Load the draft and share what this runner shares; ``config`` is the engine's configuration."""
    _intercept(machine, trial)
    return _load(machine, source, config, trial.target, runner=runner)


def config_of_draft(machine: Machine, source: EngineSource, config: Instance, *, runner: str) -> Any:
    """The configuration with which the loader builds a draft's model; None where that is not followed."""
    handed: list[Any] = []

    def get_model(m: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
        handed.append(kwargs.get("vllm_config", args[0] if args else None))
        raise Raised(_FOUND, "what comes after is of no interest", site)

    machine.intercepts |= {
        "get_model()": get_model,
        "get_layers_from_vllm_config()": lambda m, args, kwargs, site: m.heap.born({}),
    }
    try:
        _load(machine, source, config, stand_in(machine, "the target"), runner=runner)
    except Raised as raised:
        if raised.kind != _FOUND:
            return None
    return handed[0] if handed else None


def _load(machine: Machine, source: EngineSource, config: Instance, target: Instance, *, runner: str) -> bool:
    worker, proposers = source.package / "v1" / "worker", source.package / "v1" / "spec_decode"
    function = source.tree.find_function(_OF_RUNNER_V2, (worker / "gpu",)) if runner == "V2" else None
    if function is not None and isinstance(function.item, FunctionInfo):
        call_value(machine, Function(function.module, function.item), (target, config), {}, None)
        return True
    proposer = source.tree.find_class(_PROPOSER, (proposers,))
    if proposer is None or not isinstance(proposer.item, ClassInfo):
        return False
    cls = ClassValue(proposer.module, proposer.item)
    method = find_method(machine, cls, "load_model")
    if method is None:
        return False
    known = {"vllm_config": config, "speculative_config": config.attrs["speculative_config"]}
    instance = machine.new_instance(Instance(cls, attrs=known, name=_PROPOSER))
    call_value(machine, BoundMethod(method, instance), (target,), {}, None)
    return True


def _intercept(machine: Machine, trial: Trial) -> None:
    """What is outside of the question: the files, the other layers, and whether two tensors are equal. They are not."""

    def loaded_model(m: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Instance:
        assert trial.model.cls is not None
        method = find_method(m, trial.model.cls, "load_weights")
        if method is None:
            raise Raised("AttributeError", f"{trial.model.name} has no load_weights", site)
        call_value(m, BoundMethod(method, trial.model), (list(trial.weights),), {}, None)
        return trial.model

    def loader(m: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Instance:
        made = stand_in(m, "weights loader")
        rules = (kwargs.get("skip_prefixes"), kwargs.get("skip_substrs"), site)
        made.attrs["load_weights"] = Partial(External(_LOADED), rules, {})
        return made

    def load(m: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
        prefixes, parts, at, weights = args[:4]
        m.heap.touch(trial.handed)
        names = set()
        for name, weight in _pairs(weights):
            left_out = name.startswith(_texts(prefixes)) or any(part in name for part in _texts(parts))
            trial.handed.append((trial.original(weight) or name, name, at if left_out else None))
            if not left_out:
                names.add(name)
        return m.heap.born(names)

    machine.intercepts |= {
        "AutoWeightsLoader()": loader,
        _LOADED: load,
        "get_model()": loaded_model,
        "get_layers_from_vllm_config()": lambda m, args, kwargs, site: m.heap.born({}),
        "supports_multimodal()": lambda m, args, kwargs, site: False,
        "torch.equal": lambda m, args, kwargs, site: False,
    }


def _pairs(weights: Any) -> Iterable[tuple[str, Any]]:
    """Names and tensors; a run in which they are not known says nothing."""
    if not isinstance(weights, list | tuple | dict) or isinstance(weights, dict):
        raise Raised("TypeError", "the weights that the loader is handed are not known", None)
    pairs = [(pair[0], pair[1]) for pair in weights if isinstance(pair, tuple | list) and len(pair) == 2]
    if len(pairs) < len(weights) or not all(isinstance(name, str) for name, _ in pairs):
        raise Raised("TypeError", "a name that the loader is handed is not known", None)
    return pairs


def _texts(words: Any) -> tuple[str, ...]:
    if words is None:
        return ()
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise Raised("TypeError", "what the loader leaves out is not known", None)
    return tuple(words)
