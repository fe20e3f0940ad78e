"""vLLM: where its wiring begins. Read in 0.33.0; everything else is derived from the scanned source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import libcst as cst

from eaglelint.engines import vllm_recycling
from eaglelint.engines.base import EngineSource, adopt_named_class, hidden_state, stand_in, token_indices
from eaglelint.engines.loading import Trial
from eaglelint.engines.vllm_loading import config_of_draft, load_draft
from eaglelint.engines.vllm_registry import draft_class, is_draft, registered, target_class, target_classes
from eaglelint.source.calls import call_value, construct
from eaglelint.source.expressions import evaluate
from eaglelint.source.index import ClassInfo, FunctionInfo
from eaglelint.source.lookup import MISSING, class_mro, find_method, get_attribute, global_value
from eaglelint.source.machine import BudgetExceeded, Machine, Raised, TooLong
from eaglelint.source.slices import Site
from eaglelint.source.tree import Binding, SourceModule
from eaglelint.source.values import (
    BoundMethod,
    ClassValue,
    Env,
    External,
    Frame,
    Function,
    Instance,
    Partial,
    Unknown,
)
from eaglelint.source.walk import walk

__all__ = ["VLLM"]

_ADAPTERS = ("transformers_utils", "configs", "speculators")
_SETTER = "set_aux_hidden_state_layers"
_V2 = "VLLM_USE_V2_MODEL_RUNNER"
_METHODS = {"peagle": "eagle3"}  # transformers_utils/configs/speculators/base.py:133 (0.33.0)
_EXAMPLE = "LlamaForCausalLM"  # stands for a language model that only the target's config names

# Runner V2 joins the states whole; V1 joins the part of each that holds tokens. (DFlash stages parts in V2 as well.)
_JOINS = rb"torch\.cat\(\s*(?:\[[^\]]+ in )?aux_hidden_states\b"
_JOINS_PARTS = rb"torch\.cat\(\s*(?:\[[^\n]{1,80} in )?aux_hidden_states\b"


class VLLM:
    """The engine's entry points, by name: the runner's configuration, the models' mixins, the drafter's input.

    ``runner`` is V2, the default of 0.33, or V1, which resolves the ids by a method of its own.
    """

    name = "vllm"
    setters: tuple[str, ...] = (_SETTER,)
    resolvers: tuple[str, ...] = (
        "get_eagle3_aux_layers_from_config",
        "GPUModelRunner._get_eagle3_aux_layers_from_config",
    )
    usual_offset = 0

    def __init__(self, runner: str = "V2") -> None:
        self.runner = runner

    def find_package(self, path: Path) -> Path | None:
        for candidate in (path, path / "vllm"):
            if (candidate / "model_executor" / "models").is_dir():
                return candidate
        return None

    def registered(self, source: EngineSource) -> tuple[frozenset[str], tuple[str, ...]]:
        return registered(source)

    def draft_names(self, architectures: tuple[str, ...]) -> tuple[str, ...]:
        """With the prefixes that transformers_utils/configs/eagle.py (0.33.0) puts before a name that lacks them."""
        return (*architectures, *(prefix + name for name in architectures for prefix in ("Eagle", "Eagle3", "DFlash")))

    def target_class(self, source: EngineSource, name: str) -> Binding | None:
        return target_class(source, name)

    def target_classes(self, source: EngineSource, kind: str = "eagle3") -> list[Binding]:
        machine = Machine(source.tree)
        return [binding for binding in target_classes(source) if not _serves_as_draft(machine, binding)]

    def wrapping_classes(self, source: EngineSource) -> tuple[list[Binding], frozenset[str]]:
        """The interface that all of them inherit has the setter."""
        return [], frozenset()

    def startup(self, source: EngineSource) -> tuple[Path, ...]:
        return (source.package / "v1" / "worker", source.package / "v1" / "spec_decode")

    def runners(self, source: EngineSource) -> list[Binding]:
        """The runners of both versions: v1/worker/gpu_model_runner.py and v1/worker/gpu/model_runner.py."""
        found = []
        for path in (("gpu_model_runner.py",), ("gpu", "model_runner.py")):
            file = source.package.joinpath("v1", "worker", *path)
            module = source.tree.module_at(file) if source.tree.is_file(file) else None
            info = module.index.classes.get("GPUModelRunner") if module is not None else None
            if module is not None and info is not None:
                found.append(Binding(module, info))
        return found

    def prepare(self, machine: Machine, source: EngineSource, kind: str) -> None:
        """Models inside models: the config that they are given, and the class that the registry has for it."""

        def with_hf_config(m: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
            config, architectures = _arguments(args, kwargs, "hf_config", "architectures")
            return _vllm_config(m, config, architectures) if isinstance(config, Instance) else Unknown("its config")

        def initialize_model(m: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
            config, cls = kwargs.get("vllm_config", args[0] if args else None), kwargs.get("model_class")
            if not isinstance(cls, ClassValue):
                cls = self._registered(m, source, config)
            return construct(m, cls, (), {"vllm_config": config, "prefix": kwargs.get("prefix", "")})

        machine.intercepts["with_hf_config()"] = with_hf_config
        machine.intercepts["initialize_model()"] = initialize_model

    def _registered(self, machine: Machine, source: EngineSource, config: Any) -> ClassValue:
        """The class that the registry has for a config's architectures."""
        hf_config = get_attribute(machine, get_attribute(machine, config, "model_config"), "hf_config")
        names = get_attribute(machine, hf_config, "architectures")
        known = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
        for name in known:
            found = target_class(source, name)
            if found is not None and isinstance(found.item, ClassInfo):
                return ClassValue(found.module, found.item)
        example = target_class(source, _EXAMPLE)
        if known or example is None or not isinstance(example.item, ClassInfo):
            raise Raised("LookupError", f"no model is registered for {', '.join(known) or 'its config'}", None)
        where = getattr(hf_config, "name", "") or "the target's config"
        machine.provide(f"when {where} names {_EXAMPLE} as its architecture, or one that captures as it does")
        return ClassValue(example.module, example.item)

    def admit(self, machine: Machine, source: EngineSource, kind: str) -> None:
        """The runner checks for itself what it cannot do, when it hands over the ids."""

    def adapters(self, source: EngineSource) -> dict[str, Binding]:
        return _adapters(source)

    def draft_binding(self, source: EngineSource, name: str) -> Binding | None:
        return draft_class(source, name) if is_draft(source, name) else None

    def draft_files(self, source: EngineSource) -> dict[str, Path]:
        found = {name: self.draft_binding(source, name) for name in registered(source)[1]}
        return {name: binding.module.path for name, binding in found.items() if binding is not None}

    def check_target(self, machine: Machine, source: EngineSource, kind: str, target: Instance) -> None:
        """SpeculativeConfig's check of its arguments, in releases in which it knows targets by their type."""
        cls = source.tree.find_class("SpeculativeConfig", (source.package / "config",))
        if cls is None or not isinstance(cls.item, ClassInfo):
            return
        check = find_method(machine, ClassValue(cls.module, cls.item), "_verify_args")
        if check is None or "model_type" not in check.module.text(check.info.line, check.info.end_line):
            return
        text = target.attrs.get("text_config")
        texts = {"hf_config": target, "hf_text_config": text if isinstance(text, Instance) else target}
        given = {
            "method": _METHODS.get(kind, kind),
            "num_speculative_tokens": 1,
            "target_model_config": stand_in(machine, "target model config", **texts),
        }
        # What is not given has the defaults that the class's own fields say.
        spec = machine.new_instance(Instance(ClassValue(cls.module, cls.item), attrs=given, name="speculative config"))
        call_value(machine, BoundMethod(check, spec), (), {}, None)

    def build_model(self, machine: Machine, cls: Binding, target: Any) -> Instance:
        assert isinstance(cls.item, ClassInfo)
        config = _vllm_config(machine, target)
        adopt_named_class(machine, cls.module, config.attrs["model_config"].attrs["hf_text_config"])
        arguments = {"vllm_config": config, "prefix": ""}
        return machine.new_instance(Instance(ClassValue(cls.module, cls.item), (), arguments, name=cls.item.name))

    def build_draft(
        self, machine: Machine, source: EngineSource, kind: str, draft: Instance, target: Instance
    ) -> Instance | None:
        draft = _adapted(machine, source, draft)
        machine.intercepts["get_draft_quant_config()"] = lambda m, args, kwargs, site: Unknown("the quantisation")
        names = [name for name in draft.attrs.get("architectures") or () if isinstance(name, str)]
        # transformers_utils/configs/eagle.py (0.33.0) prefixes an architecture that does not name its kind.
        names += [prefix + name for name in names for prefix in ("Eagle3", "DFlash")]
        for name in names:
            cls = draft_class(source, name)
            if cls is None or not isinstance(cls.item, ClassInfo):
                continue
            spec = stand_in(
                machine,
                "speculative config",
                method=kind,
                draft_model_config=stand_in(machine, "draft model config", hf_config=draft, hf_text_config=draft),
            )
            config = _vllm_config(machine, target)
            config.attrs["speculative_config"] = spec
            value = ClassValue(cls.module, cls.item)
            return machine.new_instance(Instance(value, (), {"vllm_config": config, "prefix": ""}, name=cls.item.name))
        return None

    def build_beside_target(
        self,
        machine: Machine,
        source: EngineSource,
        kind: str,
        draft: Instance,
        target: Instance,
        quantization: Instance,
    ) -> Instance | None:
        """With the target's own configuration, where the loader hands that on (v1/spec_decode/eagle.py, 0.11.0)."""
        model = self.build_draft(machine, source, kind, draft, target)
        config = None if model is None else model.kwargs["vllm_config"]
        if model is None or not isinstance(config, Instance):
            return None
        config.attrs["quant_config"] = quantization
        handed = config_of_draft(machine, source, config, runner=self._runner(machine, source, kind))
        if not isinstance(handed, Instance) or get_attribute(machine, handed, "quant_config") is not quantization:
            return None
        # While a model is built, the configuration that it is built with is the current one.
        machine.intercepts["get_current_vllm_config()"] = lambda m, args, kwargs, site: config
        return model

    def may_differ(self, source: EngineSource, path: Path) -> bool:
        return True

    def targets_of(self, source: EngineSource, module: SourceModule) -> Iterator[Binding]:
        return vllm_recycling.targets_of(source, module)

    def hands_first(self, machine: Machine, source: EngineSource, target: Binding) -> tuple[Any, Any] | None:
        config = stand_in(machine, "the target's config")
        return vllm_recycling.hands_first(machine, self.build_model(machine, target, config))

    def hands_on(self, machine: Machine, source: EngineSource, draft: Binding) -> tuple[Any, Any] | None:
        config = _vllm_config(machine, stand_in(machine, "the draft's config"))
        model_config = config.attrs["model_config"]
        config.attrs["speculative_config"] = stand_in(machine, "speculative config", draft_model_config=model_config)
        assert isinstance(draft.item, ClassInfo)
        arguments = {"vllm_config": config, "prefix": ""}
        value = ClassValue(draft.module, draft.item)
        model = machine.new_instance(Instance(value, (), arguments, name=draft.item.name))
        return vllm_recycling.hands_on(machine, source, model)

    def load_draft(self, machine: Machine, source: EngineSource, kind: str, trial: Trial) -> bool:
        self.prepare(machine, source, kind)
        spec = stand_in(machine, "speculative config", method=_METHODS.get(kind, kind))
        config = _vllm_config(machine, stand_in(machine, "the target's config"))
        config.attrs["speculative_config"] = spec
        runner = self._runner(machine, source, kind)
        return load_draft(machine, source, config, trial, runner=runner)

    def configure(
        self, machine: Machine, source: EngineSource, model: Instance, kind: str, draft: Any, ids: Any
    ) -> bool:
        stages = machine.deployment.number("pp")
        runner = self._runner(machine, source, kind)
        if draft is None and stages > 1:  # only the runner knows whether the model can
            given = {} if ids is None else {"eagle_aux_hidden_state_layer_ids": machine.heap.born(list(ids))}
            draft = Instance(None, attrs=given, name="the draft's config", closed=True)
        if draft is not None:
            draft = _adapted(machine, source, draft)
            spec = stand_in(
                machine,
                "speculative config",
                method=_METHODS.get(kind, kind),
                draft_model_config=stand_in(machine, "draft model config", hf_config=draft),
            )
            worker = source.package / "v1" / "worker"
            if runner == "V1":
                self._configure_v1(machine, source, model, spec, worker)
                return True
            captures = source.tree.find_function("requires_aux_hidden_states", (worker / "gpu",))
            if captures is not None and _call(machine, captures, spec_config=spec) is False:
                return False
            setter = source.tree.find_function("set_eagle3_aux_hidden_state_layers", (worker / "gpu",))
            if setter is None:
                self._configure_v1(machine, source, model, spec, worker)
                return True
            _call(machine, setter, model=model, spec_config=spec, use_pp=stages > 1)
            return True
        method = get_attribute(machine, model, _SETTER)
        if method is MISSING:
            raise Raised("NoSetter", f"{model.name} has no {_SETTER}", None)
        if ids is None:
            ids = call_value(machine, self._default(machine, model), (), {}, None)
        call_value(machine, method, (tuple(ids) if isinstance(ids, list) else ids,), {}, None)
        return True

    def _runner(self, machine: Machine, source: EngineSource, kind: str) -> str:
        """The runner that was asked for, else the one that this release takes by itself."""
        asked = dict(machine.deployment.given).get("runner")
        chosen = asked.upper() if asked else self._usual_runner(machine, source, kind)
        machine.used_assumptions.add(f"vLLM's model runner {chosen} (runner={chosen.lower()})")
        return chosen

    def _usual_runner(self, machine: Machine, source: EngineSource, kind: str) -> str:
        environment = source.tree.module(f"{source.package.name}.envs")
        if environment is not None and global_value(machine, environment, _V2) is False:
            return "V1"  # V2 has to be asked for (0.19.1)
        config = source.tree.module(f"{source.package.name}.config.vllm") if kind == "peagle" else None
        if config is not None and any(".parallel_drafting" in line for line in config.lines):
            return "V1"  # V2 refuses to draft in parallel for EAGLE (config/vllm.py:3070, 0.33.0)
        return self.runner

    def _default(self, machine: Machine, model: Instance) -> Any:
        for name in ("get_eagle3_default_aux_hidden_state_layers", "get_eagle3_aux_hidden_state_layers"):
            method = get_attribute(machine, model, name)
            if isinstance(method, BoundMethod):
                return method
        raise Raised("AttributeError", f"{model.name} has no default list of layers", None)

    def _configure_v1(self, machine: Machine, source: EngineSource, model: Instance, spec: Any, worker: Path) -> None:
        """Runner V1: a method of the runner, which looks the ids up by itself."""
        runner = source.tree.find_class("GPUModelRunner", (worker,))
        runners = [runner] if runner is not None else []
        file = worker / "gpu_model_runner.py"
        module = source.tree.module_at(file) if source.tree.is_file(file) else None
        if module is not None and "GPUModelRunner" in module.index.classes:
            runners.insert(0, Binding(module, module.index.classes["GPUModelRunner"]))
        if not runners or not isinstance(runners[0].item, ClassInfo):
            raise Raised("LookupError", "no GPUModelRunner in v1/worker", None)
        instance = machine.new_instance(
            Instance(
                ClassValue(runners[0].module, runners[0].item),
                attrs={
                    "speculative_config": spec,
                    "model": model,
                    # GPUModelRunner.__init__ (vLLM 0.33.0) has a drafter, and asks for states, on the last rank only.
                    "use_aux_hidden_state_outputs": machine.stage == machine.deployment.number("pp") - 1,
                },
                name="GPUModelRunner",
            )
        )
        method = get_attribute(machine, instance, "_setup_eagle3_aux_hidden_state_outputs")
        machine.intercepts["GPUModelRunner.get_model"] = lambda m, args, kwargs, site: model
        if not isinstance(method, BoundMethod):
            # Before that method there was none, and the model was asked for its default (0.11.0).
            resolver = get_attribute(machine, instance, "_get_eagle3_aux_layers_from_config")
            ids = call_value(machine, resolver, (), {}, None) if isinstance(resolver, BoundMethod) else None
            if isinstance(ids, Unknown):
                raise Raised("LookupError", f"the ids that the runner takes are not known: {ids.why}", None)
            self.configure(machine, source, model, "eagle3", None, list(ids) if ids else None)
            return
        call_value(machine, method, (), {}, None)

    def forward(self, machine: Machine, source: EngineSource, model: Instance, received: Any = None) -> Any:
        method = get_attribute(machine, model, "forward")
        if not isinstance(method, BoundMethod):
            raise Raised("AttributeError", f"{model.name} has no forward", None)
        arguments = {
            "input_ids": token_indices(machine, "input_ids"),
            "positions": token_indices(machine, "positions"),
            "intermediate_tensors": received,
            "inputs_embeds": hidden_state() if machine.deployment.on("images") and received is None else None,
        }
        result = call_value(machine, method, (), arguments, None)
        if machine.stage < machine.deployment.number("pp") - 1:
            return self._handed_on(machine, source, model, received, result)
        return result[1] if isinstance(result, tuple) and len(result) == 2 else None

    def _handed_on(self, machine: Machine, source: EngineSource, model: Instance, received: Any, result: Any) -> Any:
        """What a stage's runner sends to the next: the model's result, with what it passes on from those before."""
        handler = source.tree.find_class("PPHandler", (source.package / "v1" / "worker" / "gpu",))
        if received is None or handler is None or not isinstance(handler.item, ClassInfo):
            return result
        instance = machine.new_instance(
            Instance(ClassValue(handler.module, handler.item), attrs={"aux_hidden_state_relay_keys": ()})
        )
        configure = get_attribute(machine, instance, "configure_aux_hidden_state_relay")
        relay = get_attribute(machine, instance, "relay_aux_hidden_states")
        if configure is MISSING or relay is MISSING:
            return result
        call_value(machine, configure, (model,), {}, None)
        return call_value(machine, relay, (received, result), {}, None)

    def concatenate(self, machine: Machine, source: EngineSource, captured: Any) -> Any:
        """The runner's ``torch.cat`` over the list that the model returned."""
        if captured is None:
            return None
        worker = source.package / "v1" / "worker"
        newer = self._runner(machine, source, "eagle3") == "V2" and source.tree.is_dir(worker / "gpu")
        for directory in (worker / "gpu" / "spec_decode",) if newer else (worker,):
            for path in source.tree.files(directory):
                if not newer and worker / "gpu" in path.parents:
                    continue  # the other runner's
                if not re.search(_JOINS if newer else _JOINS_PARTS, source.tree.read(path)):
                    continue
                found = _cat_call(source, path)
                if found is not None:
                    piece, call, module = found
                    frame = Frame(piece, module, Env({"aux_hidden_states": captured}), "concatenation")
                    return evaluate(machine, call, frame)
        return captured


def _serves_as_draft(machine: Machine, cls: Binding) -> bool:
    """Whether a model takes the draft's config for its own: a draft, though it stands among the targets.

    ``TransformersForMTP`` is one (models/registry.py:789, models/transformers/mtp.py:44, 0.33.0).
    """
    assert isinstance(cls.item, ClassInfo)
    value = ClassValue(cls.module, cls.item)
    entries = [entry for entry in class_mro(machine, value) if isinstance(entry, ClassValue)]
    if not any("draft_model_config" in e.module.text(e.info.line, e.info.end_line) for e in entries):
        return False
    draft = stand_in(machine, "the draft's config")
    model_config = stand_in(machine, "draft model config", hf_config=draft, hf_text_config=draft)
    config = _vllm_config(machine, stand_in(machine, "the target's config"))
    config.attrs["speculative_config"] = stand_in(machine, "speculative config", draft_model_config=model_config)
    model = machine.new_instance(Instance(value, (), {"vllm_config": config, "prefix": ""}, name=cls.item.name))
    try:
        outcomes = machine.explore(lambda: get_attribute(machine, model, "config"), None)
    except (BudgetExceeded, TooLong):
        return False
    return all(outcome.value is draft for outcome in outcomes)


def _vllm_config(machine: Machine, hf_config: Instance, architectures: Any = None) -> Instance:
    """The engine's configuration around a Hugging Face config, as far as models read it."""
    if architectures is not None:
        attrs = {**hf_config.attrs, "architectures": architectures}
        named = Instance(hf_config.cls, (), hf_config.kwargs, attrs, name=hf_config.name, is_config=True)
        hf_config = machine.new_instance(named)
    nested = hf_config.attrs.get("text_config", MISSING)
    text_config = hf_config if nested is MISSING else nested
    hf_config.attrs["get_text_config"] = Partial(External("intrinsic.given"), (text_config,), {})
    model_config = stand_in(machine, "model config", hf_config=hf_config, hf_text_config=text_config)
    machine.used_assumptions.add("weights that are not quantised")
    return stand_in(machine, "vllm config", model_config=model_config, quant_config=None)


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any], *names: str) -> list[Any]:
    return [kwargs.get(name, args[index] if index < len(args) else None) for index, name in enumerate(names)]


def _adapters(source: EngineSource) -> dict[str, Binding]:
    """The functions that rewrite a config of speculators' format, by the kind that each is registered for."""
    directory = source.package.joinpath(*_ADAPTERS)
    found: dict[str, Binding] = {}
    for path in source.tree.files(directory) if source.tree.is_dir(directory) else ():
        module = source.tree.module_at(path)
        for info in module.index.functions.values() if module is not None else ():
            assert module is not None
            if info.name.startswith("update_"):
                found[info.name.removeprefix("update_")] = Binding(module, info)
    return found


def _adapted(machine: Machine, source: EngineSource, draft: Instance) -> Instance:
    """A config in speculators' format, rewritten by the engine's own adapter for its kind of draft."""
    if "speculators_model_type" not in draft.attrs:
        return draft
    kind = draft.attrs["speculators_model_type"]
    adapter = _adapters(source).get(kind) if isinstance(kind, str) else None
    if adapter is None:
        raise Raised("LookupError", f"no adapter for speculators' {kind} drafts in {_ADAPTERS[-1]}", None)
    shape = draft.attrs.get("transformer_layer_config", {})
    rewritten: dict[str, Any] = machine.heap.born(dict(shape) if isinstance(shape, dict) else {})
    assert isinstance(adapter.item, FunctionInfo)
    # By position: what is rewritten is called pre_trained_config since 0.19, and vllm_config before.
    call_value(machine, Function(adapter.module, adapter.item), (draft.attrs, rewritten), {}, None)
    return Instance(None, attrs=rewritten, name="the rewritten draft config", closed=True)


def _cat_call(source: EngineSource, path: Path) -> Any:
    module = source.tree.module_at(path)
    if module is None:
        return None
    functions = [
        *module.index.functions.values(),
        *(m for c in module.index.classes.values() for m in c.methods.values()),
    ]
    for info in functions:
        text = module.text(info.line, info.end_line)
        if "aux_hidden_states" not in text or "torch.cat(" not in text:
            continue
        piece = module.slice(info.line, info.end_line)
        for node in walk(piece.body[0]):
            if isinstance(node, cst.Call) and _joins_states(node):
                return piece, node, module
    return None


def _joins_states(node: cst.Call) -> bool:
    """Whether a call is ``torch.cat(...)`` over ``aux_hidden_states``."""
    if not (isinstance(node.func, cst.Attribute) and node.func.attr.value == "cat" and node.args):
        return False
    return any(isinstance(inner, cst.Name) and inner.value == "aux_hidden_states" for inner in walk(node.args[0]))


def _call(machine: Machine, found: Binding, **arguments: Any) -> Any:
    assert isinstance(found.item, FunctionInfo)
    return call_value(machine, Function(found.module, found.item), (), arguments, None)
