"""LMDeploy's PyTorch engine: where its wiring begins. Read in 0.14.0; everything else is derived from the source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eaglelint.engines.base import EngineSource, TakesNoIds
from eaglelint.source.calls import call_value
from eaglelint.source.index import ClassInfo
from eaglelint.source.lookup import MISSING, get_attribute, global_value
from eaglelint.source.machine import Machine, Raised
from eaglelint.source.tree import Binding
from eaglelint.source.values import BoundMethod, ClassValue, Instance, Unknown

__all__ = ["LMDeploy"]

_LAYERS = "aux_hidden_state_layers"
_KINDS = ("eagle3",)


class LMDeploy(TakesNoIds):
    """The engine's entry points, by name: the builders of model configs, the map of model classes, their forward.

    There is no option and no key for the layers: a builder writes them into the target's config.
    """

    name = "lmdeploy"
    setters: tuple[str, ...] = ("build",)
    usual_offset = 0

    def find_package(self, path: Path) -> Path | None:
        for candidate in (path, path / "lmdeploy"):
            if (candidate / "pytorch" / "models" / "module_map.py").is_file():
                return candidate
        return None

    def target_class(self, source: EngineSource, name: str) -> Binding | None:
        """The class that the engine's map names for an architecture, else the class of that name."""
        dotted = self._map(source).get(name)
        if isinstance(dotted, str):
            module_name, _, class_name = dotted.rpartition(".")
            module = source.tree.module(module_name)
            info = module.index.classes.get(class_name) if module is not None else None
            if module is not None and info is not None:
                return Binding(module, info)
        return source.tree.find_class(name, (source.package / "pytorch" / "models",))

    def target_classes(self, source: EngineSource, kind: str = "eagle3") -> list[Binding]:
        """The classes of the map in whose files states are captured; those of drafts are no targets."""
        found: list[Binding] = []
        for name in self._map(source) if kind in _KINDS else ():
            binding = self.target_class(source, name)
            if (
                binding is not None
                and "Eagle3" not in name
                and _LAYERS.encode() in source.tree.read(binding.module.path)
                and not any(binding.item is other.item for other in found)
            ):
                found.append(binding)
        return found

    def _map(self, source: EngineSource) -> dict[str, Any]:
        file = source.package / "pytorch" / "models" / "module_map.py"
        module = source.tree.module_at(file)
        rows = global_value(Machine(source.tree), module, "MODULE_MAP") if module is not None else None
        return rows if isinstance(rows, dict) else {}

    def prepare(self, machine: Machine, source: EngineSource, kind: str) -> None:
        """Nothing to set up."""

    def build_model(self, machine: Machine, cls: Binding, target: Any) -> Instance:
        assert isinstance(cls.item, ClassInfo)
        if isinstance(target, Instance):
            target.attrs.setdefault("architectures", machine.heap.born([cls.item.name]))
        arguments = {"config": target, "ctx_mgr": Unknown("the step's context")}
        return machine.new_instance(Instance(ClassValue(cls.module, cls.item), (), arguments, name=cls.item.name))

    def build_draft(
        self, machine: Machine, source: EngineSource, kind: str, draft: Instance, target: Instance
    ) -> Instance | None:
        for name in draft.attrs.get("architectures") or ():
            for known in (name, kind.capitalize() + name):  # configurations/llama.py (0.14.0) puts the kind before it
                cls = self.target_class(source, known) if known in self._map(source) else None
                if cls is not None and "Eagle3" in known:
                    return self.build_model(machine, cls, draft)
        return None

    def configure(
        self, machine: Machine, source: EngineSource, model: Instance, kind: str, draft: Any, ids: Any
    ) -> bool:
        if ids is not None:
            raise Raised("NoSetter", "LMDeploy takes its own layers: no option and no key names others", None)
        if kind not in _KINDS:
            return False
        config = model.kwargs["config"]
        builder = self._builder(machine, source, config)
        call_value(machine, builder, (config,), {"spec_method": kind}, None)
        return _LAYERS in config.attrs

    def _builder(self, machine: Machine, source: EngineSource, config: Instance) -> Any:
        """The method ``build`` of the first builder that says it is for this config, as AutoModelConfigBuilder asks."""
        for path in source.tree.files(source.package / "pytorch" / "configurations"):
            if path.name == "default.py":
                continue  # taken where no other one is
            module = source.tree.module_at(path)
            for info in module.index.classes.values() if module is not None else ():
                assert module is not None
                cls = ClassValue(module, info)
                condition = get_attribute(machine, cls, "condition") if "condition" in info.methods else MISSING
                if isinstance(condition, BoundMethod) and _holds(machine, condition, config):
                    return get_attribute(machine, cls, "build")
        module = source.tree.module_at(source.package / "pytorch" / "configurations" / "default.py")
        if module is None or "DefaultModelConfigBuilder" not in module.index.classes:
            raise Raised("LookupError", "no builder of model configs in pytorch/configurations", None)
        default = ClassValue(module, module.index.classes["DefaultModelConfigBuilder"])
        return get_attribute(machine, default, "build")

    def forward(self, machine: Machine, source: EngineSource, model: Instance, received: Any = None) -> Any:
        """Run the model; the proposer takes the states from its result."""
        method = get_attribute(machine, model, "forward")
        if not isinstance(method, BoundMethod):
            raise Raised("AttributeError", f"{model.name} has no forward", None)
        arguments = {name: Unknown(name) for name in ("input_ids", "position_ids", "past_key_values", "attn_metadata")}
        result = call_value(machine, method, (), {**arguments, "inputs_embeds": None}, None)
        return result.get("aux_hidden_states") if isinstance(result, dict) else None

    def concatenate(self, machine: Machine, source: EngineSource, captured: Any) -> Any:
        """The model joins its states itself."""
        return captured


def _holds(machine: Machine, condition: BoundMethod, config: Instance) -> bool:
    try:
        return call_value(machine, condition, (config,), {}, None) is True
    except Raised:
        return False  # the base class asks its heirs
