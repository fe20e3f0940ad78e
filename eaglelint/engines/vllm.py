"""vLLM: where its wiring begins. Read in 0.33.0; everything else is derived from the scanned source."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import libcst as cst

from eaglelint.engines.base import EngineSource, stand_in
from eaglelint.source.calls import call_value
from eaglelint.source.expressions import evaluate
from eaglelint.source.index import ClassInfo, FunctionInfo
from eaglelint.source.lookup import MISSING, class_mro, get_attribute, global_value
from eaglelint.source.machine import Machine, Raised
from eaglelint.source.tree import Binding
from eaglelint.source.values import BoundMethod, ClassValue, Env, Frame, Function, Instance, Unknown
from eaglelint.source.walk import walk

__all__ = ["VLLM"]

_TARGET_TABLES = ("_TEXT_GENERATION_MODELS", "_MULTIMODAL_MODELS")
_DRAFT_TABLES = ("_SPECULATIVE_DECODING_MODELS",)
_SETTER = "set_aux_hidden_state_layers"


class VLLM:
    """The engine's entry points, by name: the runner's configuration, the models' mixins, the drafter's input.

    ``runner`` is V2, the default of 0.33, or V1, which resolves the ids by a method of its own.
    """

    name = "vllm"
    setters: tuple[str, ...] = (_SETTER,)
    usual_offset = 0

    def __init__(self, runner: str = "V2") -> None:
        self.runner = runner

    def find_package(self, path: Path) -> Path | None:
        for candidate in (path, path / "vllm"):
            if (candidate / "model_executor" / "models").is_dir():
                return candidate
        return None

    def target_class(self, source: EngineSource, name: str) -> Binding | None:
        """The class that the registry maps the architecture to, else the class of that name."""
        models = source.package / "model_executor" / "models"
        return self._registered(source, name, _TARGET_TABLES) or source.tree.find_class(name, (models,))

    def _registered(self, source: EngineSource, name: str, tables: tuple[str, ...]) -> Binding | None:
        file = source.package / "model_executor" / "models" / "registry.py"
        registry = source.tree.module_at(file) if file.is_file() else None
        if registry is None:
            return None
        machine = Machine(source.tree)
        for table in tables:
            rows = global_value(machine, registry, table)
            row = rows.get(name) if isinstance(rows, dict) else None
            if isinstance(row, tuple) and len(row) == 2:
                dotted = row[0] if "." in row[0] else f"{source.package.name}.model_executor.models.{row[0]}"
                module = source.tree.module(dotted)
                info = module.index.classes.get(row[1]) if module is not None else None
                if module is not None and info is not None:
                    return Binding(module, info)
        return None

    def target_classes(self, source: EngineSource, kind: str = "eagle3") -> list[Binding]:
        machine = Machine(source.tree)
        found = []
        for path in source.tree.files(source.package / "model_executor" / "models"):
            if b"SupportsEagle3" not in path.read_bytes():
                continue
            module = source.tree.module_at(path)
            for info in module.index.classes.values() if module else ():
                assert module is not None
                mro = class_mro(machine, ClassValue(module, info))
                names = [entry.info.name for entry in mro if isinstance(entry, ClassValue)]
                if "SupportsEagle3" in names[1:] and "Module" not in info.name and not info.name.startswith("Supports"):
                    found.append(Binding(module, info))
        return found

    def runners(self, source: EngineSource) -> list[Binding]:
        """The runners of both versions: v1/worker/gpu_model_runner.py and v1/worker/gpu/model_runner.py."""
        found = []
        for path in (("gpu_model_runner.py",), ("gpu", "model_runner.py")):
            file = source.package.joinpath("v1", "worker", *path)
            module = source.tree.module_at(file) if file.is_file() else None
            info = module.index.classes.get("GPUModelRunner") if module is not None else None
            if module is not None and info is not None:
                found.append(Binding(module, info))
        return found

    def prepare(self, machine: Machine, source: EngineSource, kind: str) -> None:
        """Nothing to set up: the config enters as an argument."""

    def admit(self, machine: Machine, source: EngineSource, kind: str) -> None:
        """The runner checks for itself what it cannot do, when it hands over the ids."""

    def build_model(self, machine: Machine, cls: Binding, target: Any) -> Instance:
        assert isinstance(cls.item, ClassInfo)
        model_config = stand_in(machine, "model config", hf_config=target, hf_text_config=target)
        config = stand_in(machine, "vllm config", model_config=model_config)
        return machine.new_instance(
            Instance(ClassValue(cls.module, cls.item), (), {"vllm_config": config, "prefix": ""}, name=cls.item.name)
        )

    def build_draft(
        self, machine: Machine, source: EngineSource, kind: str, draft: Instance, target: Instance
    ) -> Instance | None:
        draft = _adapted(machine, source, draft)
        machine.intercepts["get_draft_quant_config()"] = lambda m, args, kwargs, site: Unknown("the quantisation")
        names = [name for name in draft.attrs.get("architectures") or () if isinstance(name, str)]
        # transformers_utils/configs/eagle.py (0.33.0) prefixes an architecture that does not name its kind.
        names += [prefix + name for name in names for prefix in ("Eagle3", "DFlash")]
        models = source.package / "model_executor" / "models"
        for name in names:
            cls = self._registered(source, name, _DRAFT_TABLES) or source.tree.find_class(name, (models,))
            if cls is None or not isinstance(cls.item, ClassInfo):
                continue
            spec = stand_in(
                machine,
                "speculative config",
                method=kind,
                draft_model_config=stand_in(machine, "draft model config", hf_config=draft, hf_text_config=draft),
            )
            config = stand_in(
                machine,
                "vllm config",
                speculative_config=spec,
                model_config=stand_in(machine, "model config", hf_config=target, hf_text_config=target),
            )
            value = ClassValue(cls.module, cls.item)
            return machine.new_instance(Instance(value, (), {"vllm_config": config, "prefix": ""}, name=cls.item.name))
        return None

    def configure(
        self, machine: Machine, source: EngineSource, model: Instance, kind: str, draft: Any, ids: Any
    ) -> bool:
        stages = machine.deployment.number("pp")
        runner = self._runner(machine)
        if draft is None and stages > 1:  # only the runner knows whether the model can
            given = {} if ids is None else {"eagle_aux_hidden_state_layer_ids": machine.heap.born(list(ids))}
            draft = Instance(None, attrs=given, name="the draft's config", closed=True)
        if draft is not None:
            draft = _adapted(machine, source, draft)
            spec = stand_in(
                machine,
                "speculative config",
                method=kind,
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

    def _runner(self, machine: Machine) -> str:
        chosen = machine.deployment.value("runner")
        machine.used_assumptions.add(f"vLLM's model runner {chosen.upper()} (runner={chosen})")
        return chosen.upper() if dict(machine.deployment.given).get("runner") else self.runner

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
        module = source.tree.module_at(file) if file.is_file() else None
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
        if method is MISSING:
            ids = call_value(
                machine, get_attribute(machine, instance, "_get_eagle3_aux_layers_from_config"), (), {}, None
            )
            self.configure(machine, source, model, "eagle3", None, list(ids) if ids else None)
            return
        call_value(machine, method, (), {}, None)

    def forward(self, machine: Machine, source: EngineSource, model: Instance, received: Any = None) -> Any:
        method = get_attribute(machine, model, "forward")
        if not isinstance(method, BoundMethod):
            raise Raised("AttributeError", f"{model.name} has no forward", None)
        arguments = {
            "input_ids": Unknown("input_ids"),
            "positions": Unknown("positions"),
            "intermediate_tensors": received,
            "inputs_embeds": None,
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
        worker = source.package / "v1" / "worker"
        directories = (
            (worker / "gpu" / "spec_decode",) if self.runner == "V2" and (worker / "gpu").is_dir() else (worker,)
        )
        for directory in directories:
            for path in source.tree.files(directory):
                if not re.search(rb"torch\.cat\(\s*(?:\[[^\]]+ in )?aux_hidden_states\b", path.read_bytes()):
                    continue
                found = _cat_call(source, path)
                if found is not None:
                    piece, call, module = found
                    frame = Frame(piece, module, Env({"aux_hidden_states": captured}), "concatenation")
                    return evaluate(machine, call, frame)
        return captured


def _adapted(machine: Machine, source: EngineSource, draft: Instance) -> Instance:
    """A config in speculators' format, rewritten by the engine's own adapter for its kind of draft."""
    if "speculators_model_type" not in draft.attrs:
        return draft
    kind = draft.attrs["speculators_model_type"]
    directory = source.package / "transformers_utils" / "configs" / "speculators"
    adapter = source.tree.find_function(f"update_{kind}", (directory,)) if directory.is_dir() else None
    if adapter is None or not isinstance(adapter.item, FunctionInfo):
        raise Raised("LookupError", f"no adapter for speculators' {kind} drafts in {directory.name}", None)
    shape = draft.attrs.get("transformer_layer_config", {})
    rewritten: dict[str, Any] = machine.heap.born(dict(shape) if isinstance(shape, dict) else {})
    _call(machine, adapter, config_dict=draft.attrs, pre_trained_config=rewritten)
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
