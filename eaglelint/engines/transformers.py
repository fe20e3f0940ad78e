"""Hugging Face transformers as the target: ``output_hidden_states``. Read in 5.24.0; the rest is derived.

An id is an index into the tuple of hidden states. Forward hooks collect it; torch's part in that (its hooks, the walk
over its modules) and Python's context variables are stood in for here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eaglelint.engines.base import EngineSource, TakesNoIds
from eaglelint.source.calls import call_value, construct
from eaglelint.source.index import ClassInfo
from eaglelint.source.lookup import MISSING, get_attribute, is_subclass
from eaglelint.source.machine import Machine, Raised
from eaglelint.source.slices import Site
from eaglelint.source.tree import Binding, SourceModule
from eaglelint.source.values import BoundMethod, ClassValue, Function, Instance, Unknown

__all__ = ["Transformers"]

_STATES = "hidden_states"
_LISTS = ("layers", "h", "blocks")  # where a model keeps its decoder layers
# What PreTrainedConfig (configuration_utils.py, 5.24.0) has where a config.json is silent, and what no config has.
_DEFAULTS = {
    "output_attentions": False,
    "output_router_logits": False,
    "return_dict": True,
    "tie_last_hidden_states": None,
    "is_encoder_decoder": False,
    "_attn_implementation": "eager",  # whichever it is, it computes the same
}
# Decorators of utils/auto_docstring.py and utils/generic.py (5.24.0) for documentation, defaults and the form of the
# result; what they wrap computes the same without them.
_PLAIN = ("auto_docstring", "merge_with_config_defaults", "can_return_tuple")


class Transformers(TakesNoIds):
    """The library's entry points, by name: a model's forward pass, and the functions that install its hooks."""

    name = "transformers"
    setters: tuple[str, ...] = ("forward",)
    usual_offset = 0

    def find_package(self, path: Path) -> Path | None:
        for candidate in (path, path / "transformers", path / "src" / "transformers"):
            if (candidate / "utils" / "output_capturing.py").is_file() and (candidate / "models").is_dir():
                return candidate
        return None

    def target_class(self, source: EngineSource, name: str) -> Binding | None:
        return source.tree.find_class(name, (source.package / "models",))

    def target_classes(self, source: EngineSource, kind: str = "eagle3") -> list[Binding]:
        """The classes of language models whose files capture outputs by hooks."""
        found = []
        for path in source.tree.files(source.package / "models"):
            if not path.name.startswith("modeling_") or b"@capture_outputs" not in source.tree.read(path):
                continue
            module = source.tree.module_at(path)
            for name, info in module.index.classes.items() if module is not None else ():
                assert module is not None
                if name.endswith("ForCausalLM"):
                    found.append(Binding(module, info))
        return found

    def prepare(self, machine: Machine, source: EngineSource, kind: str) -> None:
        collector: dict[str, Any] = {"value": None}
        machine.heap.born(collector)

        def store(value: Any) -> Any:
            machine.heap.set(collector, "value", value)
            return None

        machine.leading = (3, 7)  # sequences, and tokens in each
        intercepts = machine.intercepts
        intercepts["CompileableContextVar.get"] = lambda m, args, kwargs, site: collector["value"]
        intercepts["CompileableContextVar.set"] = lambda m, args, kwargs, site: store(args[0])
        intercepts["CompileableContextVar.reset"] = lambda m, args, kwargs, site: store(None)
        intercepts["_CanRecordRegistry.get"] = lambda m, args, kwargs, site: _recorded(m, args[0])
        intercepts["recursively_install_hooks"] = lambda m, args, kwargs, site: _install(m, source, args, kwargs, site)
        for name in ("create_causal_mask", "create_sliding_window_causal_mask", "create_chunked_causal_mask"):
            intercepts[name] = lambda m, args, kwargs, site: Unknown("an attention mask")
        outputs = source.tree.module_at(source.package / "modeling_outputs.py")
        if outputs is not None:
            _close_outputs(machine, outputs)
        for name in _PLAIN:
            intercepts[name] = lambda m, args, kwargs, site: args[0] if args else None

    def build_model(self, machine: Machine, cls: Binding, target: Any) -> Instance:
        assert isinstance(cls.item, ClassInfo)
        for name, value in _DEFAULTS.items():
            target.attrs.setdefault(name, value)
        _close_outputs(machine, cls.module)
        return machine.new_instance(
            Instance(ClassValue(cls.module, cls.item), (), {"config": target}, name=cls.item.name)
        )

    def build_draft(
        self, machine: Machine, source: EngineSource, kind: str, draft: Instance, target: Instance
    ) -> Instance | None:
        """The library has no classes of drafts."""
        return None

    def configure(
        self, machine: Machine, source: EngineSource, model: Instance, kind: str, draft: Any, ids: Any
    ) -> bool:
        machine.heap.set(model.attrs, "asked for", True if ids is None else machine.heap.born(list(ids)))
        return True

    def forward(self, machine: Machine, source: EngineSource, model: Instance, received: Any = None) -> Any:
        """Run the base model as the caller of a language model does, and take the states that were asked for."""
        names = (get_attribute(machine, model, "base_model_prefix"), "model")
        found = (get_attribute(machine, model, name) for name in names if isinstance(name, str) and name)
        base = next((item for item in found if isinstance(item, Instance) and item.cls is not None), model)
        machine.heap.set(base.attrs, "_output_capturing_hooks_installed", False)
        method = get_attribute(machine, base, "forward")
        if not isinstance(method, BoundMethod):
            raise Raised("AttributeError", f"{model.name} has no forward", None)
        given: dict[Any, Any] = machine.heap.born({})

        def injected(m: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
            m.heap.set(given, args[0], args[1])

        machine.intercepts["ModelOutput.__setitem__"] = injected
        asked = model.attrs["asked for"]
        arguments = {"input_ids": Unknown("input_ids", present=True), "inputs_embeds": None, "use_cache": False}
        call_value(machine, method, (), {**arguments, "output_hidden_states": asked}, None)
        states = given.get(_STATES)
        if not isinstance(states, tuple):
            return None
        if asked is True:
            return list(states)
        if any(not -len(states) <= index < len(states) for index in asked):
            raise Raised("IndexError", "index out of the range of the hidden states", None)
        return [states[index] for index in asked]

    def concatenate(self, machine: Machine, source: EngineSource, captured: Any) -> Any:
        """The caller joins what it picks, in its order."""
        return captured


def _recorded(machine: Machine, model: Any) -> Any:
    """What a model's class says that its hooks record."""
    found = get_attribute(machine, model, "_can_record_outputs") if isinstance(model, Instance) else MISSING
    return found if isinstance(found, dict) else machine.heap.born({})


def _install(
    machine: Machine, source: EngineSource, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None
) -> None:
    """Install the hooks on the decoder layers: the walk over a model's modules, as far as it leads to them."""
    model, tasks = args[0], args[2] if len(args) > 2 else kwargs.get("capture_tasks")
    found = (get_attribute(machine, model, name) for name in _LISTS)
    layers: list[Any] = next((items for items in found if isinstance(items, list) and items), [])
    install = source.tree.find_function("install_output_capuring_hook", (source.package / "utils",))
    if install is None or not isinstance(tasks, list):
        raise Raised("LookupError", "no install_output_capuring_hook in utils", site)
    function = Function(install.module, install.item)  # type: ignore[arg-type]
    for key, recorder in tasks:
        target, only = (get_attribute(machine, recorder, name) for name in ("target_class", "layer_name"))
        if key != _STATES or not isinstance(target, ClassValue):
            continue
        if only is not None:
            raise Raised("LookupError", "states are recorded of a layer by its name", site)
        index, initial = (get_attribute(machine, recorder, name) for name in ("index", "capture_initial_hidden_state"))
        for layer in layers:
            if isinstance(layer, Instance) and layer.cls is not None and is_subclass(machine, layer.cls, target):
                machine.intercepts["register_forward_hook()"] = _registering(layer)
                call_value(machine, function, (layer, key, index, initial), {}, site)


def _close_outputs(machine: Machine, module: SourceModule) -> None:
    """The outputs of models that a module defines have their fields and no others, though a base sets any by name."""
    for name, info in module.index.classes.items():
        if any("Output" in base for base in info.bases):
            machine.intercepts[name] = _making(ClassValue(module, info))


def _making(cls: ClassValue) -> Any:

    def make(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
        made = construct(machine, cls, args, kwargs)
        made.closed = True
        return made

    return make


def _registering(layer: Instance) -> Any:
    def register(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
        known = machine.after_forward.get(id(layer), ())
        machine.heap.set(machine.after_forward, id(layer), (*known, args[0]))
        return Unknown("the handle of a hook")

    return register
