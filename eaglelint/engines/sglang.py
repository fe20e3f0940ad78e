"""SGLang: where its wiring begins. Read in 0.5.9 and 0.5.23; everything else is derived from the scanned source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from eaglelint.engines import sglang_graphs, sglang_recycling, sglang_workers
from eaglelint.engines.base import EngineSource, adopt_config_class, enum_member, mentioned_names, stand_in
from eaglelint.engines.heirs import MAKES, Heirs, heirs
from eaglelint.engines.loading import Trial
from eaglelint.engines.recycling import builds_on
from eaglelint.engines.sglang_config import find_reader, read_config
from eaglelint.engines.sglang_loading import load_draft
from eaglelint.source.construct import bind_arguments, function_node
from eaglelint.source.index import ClassInfo, FunctionInfo
from eaglelint.source.lookup import MISSING, find_method, get_attribute
from eaglelint.source.machine import Budget, BudgetExceeded, Machine, Raised, TooLong
from eaglelint.source.slices import Site
from eaglelint.source.tree import Binding, SourceModule
from eaglelint.source.values import BoundMethod, ClassValue, Env, Frame, Function, Instance, Unknown

__all__ = ["SGLang"]

_SETTERS = {
    "eagle3": ("set_eagle3_layers_to_capture",),
    "peagle": ("set_eagle3_layers_to_capture",),
    "dflash": ("set_dflash_layers_to_capture",),
    "domino": ("set_dflash_layers_to_capture",),
    "dspark": ("set_dspark_layers_to_capture", "set_dflash_layers_to_capture"),
}
# Classes of drafts inherit their target's setter and are no targets themselves.
_DRAFT_CLASS = re.compile(r"(?:NextN|MTP|Eagle3?|AssistantForCausalLM)$")
_ANY_DRAFT = re.compile(r"NextN|MTP|Eagle|Draft|DFlash|DSpark")
_ENTRY_CLASS = re.compile(rb"^EntryClass\b[^=\n]*=\s*(\[[^\]]*\]|\w+)", re.M)
_CHECK = Budget(steps=4_000)  # of each part of the check of the server's arguments; refusals took 19 at most
_ALGORITHMS = {"eagle3": "EAGLE3", "peagle": "EAGLE3", "dflash": "DFLASH", "domino": "DFLASH", "dspark": "DSPARK"}


class SGLang:
    """The engine's entry points, by name: ModelRunner or its resolver, the models' setters, the logits processor."""

    name = "sglang"
    setters: tuple[str, ...] = _SETTERS["eagle3"]
    resolvers: tuple[str, ...] = ("ModelRunner.__init__", "_resolve_eagle_aux_hidden_state")
    usual_offset = 1
    gates = sglang_graphs.GATES
    embeddings = sglang_workers.EMBEDDINGS
    graph_files = staticmethod(sglang_graphs.files)
    modes = staticmethod(sglang_graphs.modes)
    graph_options = staticmethod(sglang_graphs.options)
    requests = staticmethod(sglang_workers.requests)
    draft_prefills = staticmethod(sglang_workers.draft_prefills)
    target_runner = staticmethod(sglang_graphs.target_runner)
    prefill = staticmethod(sglang_graphs.prefill)

    def find_package(self, path: Path) -> Path | None:
        for candidate in (path, path / "sglang", path / "python" / "sglang"):
            if (candidate / "srt" / "models").is_dir():
                return candidate
        return None

    def registered(self, source: EngineSource) -> tuple[frozenset[str], tuple[str, ...]]:
        files = source.tree.files(_models(source))
        names = [name for path in files for name in _entries(source, path)]
        # Names that the reading of configs mentions may be changed to others before the registry is asked.
        changed = mentioned_names(source, source.package / "srt" / "configs" / "model_config.py")
        return changed.union(names), tuple(sorted(name for name in set(names) if _ANY_DRAFT.search(name)))

    def draft_names(self, architectures: tuple[str, ...]) -> tuple[str, ...]:
        return architectures

    def draft_binding(self, source: EngineSource, name: str) -> Binding | None:
        return self.target_class(source, name)

    def draft_files(self, source: EngineSource) -> dict[str, Path]:
        found = {}
        for name in self.registered(source)[1]:
            paths = [Path(path) for path in source.tree.snapshot.defining(_models(source), "class", name)]
            if paths:
                found[name] = next((path for path in paths if name in _entries(source, path)), paths[0])
        return found

    def target_class(self, source: EngineSource, name: str) -> Binding | None:
        found = list(source.tree.find_classes(name, (_models(source),)))
        # Two files may define a class of one name: the registry takes the one that its file's EntryClass lists.
        return next(
            (binding for binding in found if name in _entries(source, binding.module.path)), found[0] if found else None
        )

    def target_classes(self, source: EngineSource, kind: str = "eagle3") -> list[Binding]:
        machine = Machine(source.tree)
        return [
            binding
            for binding in _entry_classes(source, _with_setter(source, _SETTERS[kind]))
            if isinstance(binding.item, ClassInfo)
            and any(find_method(machine, ClassValue(binding.module, binding.item), name) for name in _SETTERS[kind])
        ]

    def wrapping_classes(self, source: EngineSource) -> tuple[list[Binding], frozenset[str]]:
        may = _with_setter(source, self.setters)
        machine = Machine(source.tree)
        modules = dict.fromkeys(target.module for target in self.target_classes(source))
        have = {
            info.name
            for module in modules
            for info in module.index.classes.values()
            if any(find_method(machine, ClassValue(module, info), name) for name in self.setters)
        }
        known = {module.path for module in modules}  # the others are not indexed for that
        capturing = may.also_called(
            have.union(name for path, names in may.files.items() if path not in known for name in names)
        )

        def makes(text: bytes) -> bool:
            return any(name.decode() in capturing for name in MAKES.findall(text))

        return _entry_classes(source, heirs(source, _models(source), makes)), capturing

    def startup(self, source: EngineSource) -> tuple[Path, ...]:
        return (source.package / "srt" / "model_executor", source.package / "srt" / "speculative")

    def runners(self, source: EngineSource) -> list[Binding]:
        found = source.tree.find_class("ModelRunner", (source.package / "srt" / "model_executor",))
        return [] if found is None else [found]

    def prepare(self, machine: Machine, source: EngineSource, kind: str) -> None:
        """Where the run meets the outside: the server's arguments and the draft that they name."""
        find_reader(machine, source)
        configuration = stand_in(machine, "the server's configuration")
        for entry in ("RuntimeContext.config_bag", "get_global_server_args()", "get_server_args()"):
            machine.intercepts[entry] = lambda m, args, kwargs, site: configuration
        machine.intercepts["ModelConfig.from_server_args"] = lambda m, args, kwargs, site: stand_in(m, "model config")
        machine.intercepts["get_spec()"] = lambda m, args, kwargs, site: stand_in(
            m, "speculative arguments", speculative_draft_model_path="draft"
        )

    def admit(self, machine: Machine, source: EngineSource, kind: str) -> None:
        """The check of the server's arguments; of a long one only what is reached in a bounded number of steps."""
        if not machine.deployment.given:
            return
        arguments = _arguments(machine, kind)
        machine.intercepts["resolving_view()"] = lambda m, args, kwargs, site: arguments
        # It does not depend on the target: one run serves all classes.
        key = ("admission", source.package, machine.deployment, machine.num_layers, kind)
        refusal, assumed = source.tree.once(key, lambda: self._admission(machine, source, kind))
        machine.used_assumptions |= assumed
        if refusal is not None:
            raise refusal.with_traceback(None)

    def _admission(self, like: Machine, source: EngineSource, kind: str) -> tuple[Raised | None, frozenset[str]]:
        """What the check of the server's arguments ends in, where every path ends so, and what that was assumed for."""
        machine = Machine(
            source.tree, deployment=like.deployment, stubs=like.stubs, budget=_CHECK, num_layers=like.num_layers
        )
        self.prepare(machine, source, kind)
        arguments = _arguments(machine, kind)
        machine.intercepts["resolving_view()"] = lambda m, args, kwargs, site: arguments
        srt = source.package / "srt"
        checks: list[BoundMethod | Function] = []
        cls = _server_arguments(source)
        if cls is not None and isinstance(cls.item, ClassInfo):
            method = find_method(machine, ClassValue(cls.module, cls.item), "check_server_args")
            checks += [BoundMethod(method, arguments)] if method is not None else []
        handler = source.tree.find_function(f"_handle_{_ALGORITHMS[kind].lower()}", (srt / "arg_groups",))
        if handler is not None and isinstance(handler.item, FunctionInfo):
            checks.append(Function(handler.module, handler.item))
        for check in checks:
            given = () if isinstance(check, BoundMethod) else (arguments,)
            try:
                outcomes = machine.explore(partial(_check, machine, check, given), None)
            except (BudgetExceeded, TooLong):
                machine.begin()
                continue
            if all(outcome.raised is not None for outcome in outcomes):
                return outcomes[0].raised, frozenset(machine.used_assumptions)
        return None, frozenset(machine.used_assumptions)

    def build_model(self, machine: Machine, cls: Binding, target: Any) -> Instance:
        assert isinstance(cls.item, ClassInfo)
        read_config(machine, target)
        arguments = {"config": target, "quant_config": Unknown("the quantisation"), "prefix": ""}
        machine.constructing = partial(adopt_config_class, machine)
        machine.constructing(ClassValue(cls.module, cls.item), (), arguments)
        return machine.new_instance(
            Instance(
                ClassValue(cls.module, cls.item),
                (),
                arguments,
                name=cls.item.name,
            )
        )

    def build_draft(
        self, machine: Machine, source: EngineSource, kind: str, draft: Instance, target: Instance
    ) -> Instance | None:
        for name in draft.attrs.get("architectures") or ():
            cls = self.target_class(source, name) if isinstance(name, str) else None
            if cls is not None and isinstance(cls.item, ClassInfo):
                return self.build_model(machine, cls, draft)
        return None

    def may_differ(self, source: EngineSource, path: Path) -> bool:
        return sglang_recycling.may_differ(source, _models(source), path)

    def targets_of(self, source: EngineSource, module: SourceModule) -> Iterator[Binding]:
        own = _targets_in(source, module.path)
        yield from own
        for path in source.tree.files(_models(source)) if own else ():
            if path != module.path and _entries(source, path) and builds_on(source.tree.read(path), module):
                yield from _targets_in(source, path)

    def hands_first(self, machine: Machine, source: EngineSource, target: Binding) -> tuple[Any, Any] | None:
        model = self.build_model(machine, target, stand_in(machine, "config"))
        return sglang_recycling.hands(machine, model, partial(_argument, machine, source))

    hands_on = hands_first

    def load_draft(self, machine: Machine, source: EngineSource, kind: str, trial: Trial) -> bool:
        return load_draft(machine, source, kind, trial)

    def configure(
        self, machine: Machine, source: EngineSource, model: Instance, kind: str, draft: Any, ids: Any
    ) -> bool:
        captures, layer_ids = (True, ids) if draft is None else self._resolve(machine, source, kind, draft)
        if captures is False:
            return False
        setter = next(
            (m for m in (get_attribute(machine, model, name) for name in _SETTERS[kind]) if m is not MISSING), None
        )
        if setter is None:
            assert model.cls is not None
            raise Raised("NoSetter", f"{model.cls.info.name} has no {_SETTERS[kind][0]}", None)
        from eaglelint.source.calls import call_value

        call_value(machine, setter, (layer_ids,), {}, None)
        return True

    def _resolve(self, machine: Machine, source: EngineSource, kind: str, draft: Any) -> tuple[Any, Any]:
        """The ids that the runner takes from the draft's config, and whether it captures at all."""
        from eaglelint.source.calls import call_value

        directories = (source.package / "srt" / "model_executor", source.package / "srt" / "speculative")
        algorithm = enum_member(machine, source, directories[1:], "SpeculativeAlgorithm", _ALGORITHMS[kind])
        draft_model = stand_in(
            machine, "draft model config", hf_config=draft, num_nextn_predict_layers=None, is_hybrid_swa=False
        )
        machine.intercepts["ModelConfig.from_server_args"] = lambda m, args, kwargs, site: draft_model
        suffix = "eagle" if _ALGORITHMS[kind] == "EAGLE3" else "dflash"
        attribute = "eagle_aux_hidden_state_layer_ids" if suffix == "eagle" else "dflash_target_layer_ids"
        resolver = source.tree.find_function(f"_resolve_{suffix}_aux_hidden_state", directories[:1])
        if resolver is not None:
            holder = stand_in(machine, "auxiliary state config")
            arguments = {
                "config": holder,
                "server_args": Unknown("the server's arguments"),
                "model_config": stand_in(
                    machine, "target model config", hf_text_config=stand_in(machine, "text config")
                ),
                "spec_algorithm": algorithm,
                "is_draft_worker": False,
            }
            call_value(machine, Function(resolver.module, resolver.item), (), arguments, None)  # type: ignore[arg-type]
            return holder.attrs.get(f"{suffix}_use_aux_hidden_state", True), holder.attrs.get(attribute)
        runner = source.tree.find_class("ModelRunner", directories[:1])
        if runner is None or not isinstance(runner.item, ClassInfo):
            raise Raised("LookupError", "no ModelRunner in srt/model_executor", None)
        instance = machine.new_instance(
            Instance(
                ClassValue(runner.module, runner.item),
                attrs={"spec_algorithm": algorithm, "is_draft_worker": False},
                name="ModelRunner",
            )
        )
        captures = get_attribute(machine, instance, f"{suffix}_use_aux_hidden_state")
        layer_ids = get_attribute(machine, instance, attribute)
        if layer_ids is MISSING:
            raise Raised("AttributeError", f"ModelRunner never sets {attribute}: this release has no such draft", None)
        return captures, layer_ids

    def forward(self, machine: Machine, source: EngineSource, model: Instance, received: Any = None) -> Any:
        """Run the model up to its logits processor and return what that is given as auxiliary states."""
        from eaglelint.source.calls import call_value

        given: dict[str, Any] = {}  # kept through the heap, so that it belongs to the path that is taken

        def logits(m: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
            m.heap.set(given, "auxiliary states", _argument(m, source, args, kwargs, "aux_hidden_states"))
            if site is not None:
                m.record("final", "", _argument(m, source, args, kwargs, "hidden_states"), site)
            return stand_in(m, "logits")

        machine.intercepts["LogitsProcessor.__call__"] = logits
        machine.unasked = frozenset(["lm_head"])  # which one it is depends on the config; the states do not
        method = get_attribute(machine, model, "forward")
        if not isinstance(method, BoundMethod):
            raise Raised("AttributeError", f"{model.name} has no forward", None)
        images = Unknown("the images of the batch", present=True) if machine.deployment.on("images") else None
        batch = stand_in(machine, "forward_batch", input_embeds=None, mm_inputs=images)
        arguments: dict[str, Any] = {
            "input_ids": Unknown("input_ids", present=True),
            "positions": Unknown("positions", present=True),
            "forward_batch": batch,
        }
        if machine.deployment.number("pp") > 1:
            arguments["pp_proxy_tensors"] = received
        result = call_value(machine, method, (), arguments, None)
        if machine.stage < machine.deployment.number("pp") - 1:
            return result
        if given:
            return given["auxiliary states"]
        return result[1] if isinstance(result, tuple) and len(result) == 2 else result

    def concatenate(self, machine: Machine, source: EngineSource, captured: Any) -> Any:
        """The logits processor's storing of states for the draft."""
        from eaglelint.source.calls import call_value

        layers = (source.package / "srt" / "layers",)
        processor = source.tree.find_class("LogitsProcessor", layers)
        mode = machine.deployment.value("capture-mode")
        machine.used_assumptions.add(f"states are stored in the mode {mode.upper()} (capture-mode={mode})")
        executor = (source.package / "srt" / "model_executor",)
        chosen = enum_member(machine, source, executor, "CaptureHiddenMode", mode.upper())
        if processor is None or not isinstance(processor.item, ClassInfo) or chosen is None:
            return captured
        cls = ClassValue(processor.module, processor.item)
        method = find_method(machine, cls, "_get_hidden_states_to_store")
        if method is None:
            return captured
        metadata = stand_in(machine, "logits metadata", capture_hidden_mode=chosen)
        instance = machine.new_instance(Instance(cls, name="LogitsProcessor"))
        return call_value(
            machine,
            BoundMethod(method, instance),
            (),
            {
                "hidden_states": Unknown("hidden_states"),
                "hidden_states_before_norm": None,
                "aux_hidden_states": captured,
                "logits_metadata": metadata,
            },
            None,
        )


def _server_arguments(source: EngineSource) -> Binding | None:
    """The class of the server's arguments: where releases have it (0.5.5 to 0.5.23), else wherever it is."""
    file = source.package / "srt" / "server_args.py"
    module = source.tree.module_at(file) if source.tree.is_file(file) else None
    info = module.index.classes.get("ServerArgs") if module is not None else None
    if module is not None and info is not None:
        return Binding(module, info)
    return source.tree.find_class("ServerArgs", (source.package / "srt",))


def _arguments(machine: Machine, kind: str) -> Instance:
    """The server's arguments as far as the assumptions about it say them."""
    return stand_in(
        machine,
        "the server's arguments",
        pp_size=machine.deployment.number("pp"),
        tp_size=machine.deployment.number("tp"),
        speculative_algorithm=_ALGORITHMS[kind],
        speculative_draft_model_path="draft",
        enable_two_batch_overlap=machine.deployment.on("tbo"),
    )


def _check(machine: Machine, check: BoundMethod | Function, given: tuple[Any, ...]) -> None:
    from eaglelint.source.calls import call_value

    call_value(machine, check, given, {}, None)


def _entries(source: EngineSource, path: Path) -> list[str]:
    """The classes that a model's file gives to the registry."""

    def read() -> list[str]:
        text = source.tree.read(path)
        at = text.find(b"EntryClass")
        entry = _ENTRY_CLASS.search(text, at) if at >= 0 else None
        return re.findall(r"\w+", entry.group(1).decode("utf-8", "replace")) if entry else []

    return source.tree.once(("entries", path), read)


def _targets_in(source: EngineSource, path: Path, among: Heirs | None = None) -> list[Binding]:
    """The classes of targets among them."""
    names = [name for name in _entries(source, path) if not _DRAFT_CLASS.search(name)]
    wanted = names if among is None else [name for name in names if among.may_include(name)]
    module = source.tree.module_at(path) if wanted else None
    classes = module.index.classes if module is not None else {}
    return [Binding(module, classes[name]) for name in wanted if module is not None and name in classes]


def _entry_classes(source: EngineSource, among: Heirs) -> list[Binding]:
    """The classes of targets that the registry has of some kind."""
    files = source.tree.files(_models(source))
    return [binding for path in files for binding in _targets_in(source, path, among)]


def _with_setter(source: EngineSource, setters: tuple[str, ...]) -> Heirs:
    mentions = re.compile("|".join(setters).encode()).search
    return source.tree.once(("with setter", setters), lambda: heirs(source, _models(source), mentions))


def _models(source: EngineSource) -> Path:
    return source.package / "srt" / "models"


def _argument(machine: Machine, source: EngineSource, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
    """An argument of a call of the logits processor, by its name there."""
    if name in kwargs:
        return kwargs[name]
    processor = source.tree.find_class("LogitsProcessor", (source.package / "srt" / "layers",))
    if processor is None or not isinstance(processor.item, ClassInfo):
        return None
    method = find_method(machine, ClassValue(processor.module, processor.item), "forward")
    if method is None:
        return None
    piece, node = function_node(method)
    frame = Frame(piece, method.module, Env({}))
    return bind_arguments(machine, node.params, (None, *args), kwargs, frame).get(name)
