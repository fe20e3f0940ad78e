"""Where the exporters of the public stacks begin: the module whose state dict is saved, and the functions that save it.

What these make of the names is found by running them (weights.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from eaglelint.exported import WeightMap
from eaglelint.source.calls import call_value, construct
from eaglelint.source.lookup import get_attribute
from eaglelint.source.values import BoundMethod, External, Function, Instance, Partial, Unknown
from eaglelint.trainers.base import Run, step
from eaglelint.trainers.bench import Bench, NotFollowed
from eaglelint.trainers.draft_built import SIZES, built, calls, class_of_draft, draft_config, draft_module, freeze
from eaglelint.trainers.parameters import Named
from eaglelint.trainers.spoken import spoken_names
from eaglelint.trainers.weights import conversion

__all__ = ["EXPORTERS"]

_State = dict[str, Any]


# --- TorchSpec -----------------------------------------------------------------------------------------------------


def _torchspec(bench: Bench, run: Run) -> Iterator[WeightMap]:
    converter, trainer = "tools/convert_to_hf.py", "training/eagle3_trainer.py"
    draft = class_of_draft(bench, "models/draft/llama3_eagle.py", run, "LlamaForCausalLMEagle3")
    model, named = draft_module(bench, draft, run, "draft_model")
    own = [item.name.removeprefix("draft_model.") for item in named]
    start = bench.function(trainer, "Eagle3Trainer.init_model")
    trains = bench.instance(bench.cls(trainer, "Eagle3Trainer"))
    bench.machine.intercepts["from_config()"] = lambda machine, args, kwargs, site: model
    work = BoundMethod(start, trains)
    frozen = calls(
        bench, "freeze_embedding", lambda: call_value(bench.machine, work, ("config", "target"), {}, None), "init_model"
    )
    freeze(bench, model, "freeze_embedding", frozen, named)
    extract = bench.function(converter, "_extract_model_weights")
    prepare = bench.function(converter, "_prepare_export_tensors")
    for option, for_vllm in (("without --vllm", False), ("--vllm", True)):

        def save(state: _State, for_vllm: bool = for_vllm) -> Any:
            extracted = call_value(bench.machine, extract, (state,), {}, None)
            if not isinstance(extracted, dict):
                return None
            # What is not in the checkpoint stays as the model was built.
            held = {name: extracted.get(name, Unknown("as built", present=True)) for name in own}
            model = bench.instance(None, "the model")
            bench.machine.intercepts["exporter.state"] = lambda machine, args, kwargs, site: machine.heap.born(held)
            model.attrs["state_dict"] = Partial(External("exporter.state"), (), {})
            return call_value(bench.machine, prepare, (model, for_vllm), {}, None)

        yield conversion(bench, step(extract, "takes the draft out of the checkpoint"), named, save, option=option)


# --- SpecForge -----------------------------------------------------------------------------------------------------

_STRATEGIES = {
    "eagle3": ("Eagle3TrainStrategy", "eagle3_model", "modeling/draft/llama3_eagle.py", "LlamaForCausalLMEagle3"),
    "dflash": ("DFlashTrainStrategy", "dflash_model", "modeling/draft/dflash.py", "DFlashDraftModel"),
    "domino": ("DominoTrainStrategy", "domino_model", "modeling/draft/domino.py", "DominoDraftModel"),
    "dspark": ("DSparkTrainStrategy", "dspark_model", "modeling/draft/dspark.py", "DSparkDraftModel"),
    "peagle": ("PEagleTrainStrategy", "peagle_model", "modeling/draft/peagle.py", "PEagleDraftModel"),
}


def _specforge(bench: Bench, run: Run) -> Iterator[WeightMap]:
    strategy, attribute, file, default = _STRATEGIES[run.kind]
    model, named = draft_module(bench, class_of_draft(bench, file, run, default), run, "draft_model")
    wrapper = bench.instance(None, "the model that is trained", draft_model=model)
    built(bench, wrapper)
    for name in ("named_parameters", "parameters"):  # a module without source has none of its own
        found = [(item.name, item.value) for item in named if item.value is not None]
        value = found if name == "named_parameters" else [parameter for _, parameter in found]
        wrapper.attrs[name] = Partial(External("parameters.copy"), (value,), {})
    starting = f"build_{run.kind}_draft"
    if run.kind == "eagle3":
        making = bench.function("algorithms/model_providers.py", starting)
        bench.machine.intercepts["AutoDraftModel.from_config"] = lambda machine, args, kwargs, site: model
        given = (Unknown("the run's config"), Unknown("the draft's config"))
        frozen = calls(bench, "freeze_embedding", lambda: call_value(bench.machine, making, given, {}, None), starting)
        freeze(bench, model, "freeze_embedding", frozen, named)
    bases = "training/strategies/base.py"
    filtering = bench.function(bases, f"{strategy}.checkpoint_state_filter")
    trains = bench.instance(bench.cls(bases, strategy))
    trains.attrs[attribute] = wrapper
    place = step(filtering, "keeps the draft's tensors in a checkpoint")

    def checkpoint(state: _State) -> Any:
        return call_value(bench.machine, BoundMethod(filtering, trains), (state,), {}, None)

    for exporter, option in (("to_sglang", "--to sglang"), ("to_hf", "--to hf")):
        file = f"export/{exporter}.py"
        if not bench.has(file) or (exporter == "to_sglang" and run.kind != "eagle3"):
            continue
        exporting = bench.function(file, f"export_{exporter}")

        def save(state: _State, exporting: Function = exporting) -> Any:
            return _saved_by(bench, exporting, checkpoint(state), model)

        yield conversion(bench, place, named, save, option=option)


def _saved_by(bench: Bench, exporting: Function, kept: Any, built: Instance) -> Any:
    """What an exporter hands to ``save_pretrained``, of a draft that was built and filled with a checkpoint."""
    if not isinstance(kept, dict):
        return None
    machine = bench.machine
    saved: list[Any] = []
    own = call_value(machine, get_attribute(machine, built, "state_dict"), (), {}, None)
    held = {name: kept.get(name, Unknown("as built", present=True)) for name in own}
    model = bench.instance(built.cls, built.name, **built.attrs)
    model.closed = True  # its class has what it is asked for, or nothing has
    for name, value in (("state_dict", held), ("load_embedding", None), ("save_pretrained", saved)):
        model.attrs[name] = Partial(External(f"exporter.{name}"), (value,), {})
    machine.intercepts |= {
        "exporter.state_dict": lambda m, args, kwargs, site: m.heap.born(dict(args[0])),
        "exporter.load_embedding": lambda m, args, kwargs, site: None,
        "exporter.save_pretrained": lambda m, args, kwargs, site: saved.append(kwargs.get("state_dict", held)),
        "resolve_training_state": lambda m, args, kwargs, site: m.heap.born(
            {"strategy": "eagle3", "draft_state_dict": kept}
        ),
        "materialize_draft": lambda m, args, kwargs, site: model,
        "apply_legacy_rope_scaling": lambda m, args, kwargs, site: None,
    }
    source = {"embedding_source": "target"} if exporting.info.name == "export_to_hf" else {}
    call_value(machine, exporting, ("checkpoint", "config", "out"), source, None)
    return saved[-1] if saved else None


# --- AngelSlim -----------------------------------------------------------------------------------------------------


def _angelslim(bench: Bench, run: Run) -> Iterator[WeightMap]:
    train = "compressor/speculative/train"
    draft = class_of_draft(bench, f"{train}/models/draft/llama_eagle3.py", run, "Eagle3LlamaForCausalLM")
    model, named = draft_module(bench, draft, run)
    file = f"{train}/trainer/eagle3_trainer.py"
    name = next((name for name in bench.module(file).index.classes if name.endswith("Eagle3Trainer")), "Eagle3Trainer")
    saving = bench.function(file, f"{name}._save_zero3_model")
    saved: list[Any] = []
    held = get_attribute(bench.machine, model, "state_dict")
    bench.machine.intercepts["exporter.save"] = lambda m, args, kwargs, site: saved.append(kwargs.get("state_dict"))

    def save(state: _State) -> Any:
        saved.clear()
        bench.machine.intercepts["parameters.copy"] = lambda machine, args, kwargs, site: (
            machine.heap.born(dict(state)) if args[0] is held.args[0] else machine.heap.born(args[0])
        )
        model.attrs["save_pretrained"] = Partial(External("exporter.save"), (), {})
        process = bench.instance(None, "the process", is_main_process=True)
        arguments = bench.instance(None, "the arguments", should_save=True)
        trainer = bench.instance(bench.cls(file, name), model=model, accelerator=process, args=arguments)
        call_value(bench.machine, BoundMethod(saving, trainer), ("out",), {}, None)
        return saved[-1] if saved else None

    option = "with DeepSpeed ZeRO-3"
    unless = "if nothing outside of the package freezes it"
    yield conversion(bench, step(saving, "saves the draft"), named, save, option=option, provisos=(unless,))


# --- ModelOpt ------------------------------------------------------------------------------------------------------

_MODULES = {
    "eagle3": ("modeling_eagle.py", "EagleModule", "eagle_module", "EagleExporter"),
    "dflash": ("modeling_dflash.py", "DFlashModule", "dflash_module", "DFlashExporter"),
    "domino": ("modeling_domino.py", "DominoModule", "dflash_module", "DominoExporter"),
    "dspark": ("modeling_dspark.py", "DSparkModule", "dflash_module", "DSparkExporter"),
}
# What the target's own head is called there, which is taken where the draft has none.
_OF_TARGET = "lm_head.weight"


def _modelopt(bench: Bench, run: Run) -> Iterator[WeightMap]:
    file, cls, name, exporter = _MODULES[run.kind]
    layer = Partial(External("exporter.layer"), (), {})
    bench.machine.intercepts["exporter.layer"] = lambda machine, args, kwargs, site: machine.new_instance(
        Instance(None, args, kwargs, name="DecoderLayer", made=(site,) if site is not None else ())
    )
    where = f"torch/speculative/plugins/{file}"
    config = draft_config(
        bench, {"use_aux_hidden_state": True, "use_last_layernorm": True, "has_lm_head": True, **run.draft}
    )
    rest = (layer,) if run.kind == "eagle3" else ()
    model = construct(bench.machine, bench.cls(where, cls), (config, *rest), {})
    named = built(bench, model, f"{name}.")
    export = "torch/export/plugins/hf_spec_export.py"
    # What is made on the first forward pass is not built by __init__; the exporter speaks of it.
    spoken = (text for text in spoken_names(bench.cls(export, exporter)) if text.startswith("*.") and name not in text)
    named += tuple(Named(f"{name}.{text}", None) for text in spoken)
    extract = bench.function(export, f"{exporter}._extract_state_dict")
    writes = bench.instance(bench.cls(export, exporter), _check_valid_sd=Partial(External("exporter.checked"), (), {}))
    bench.machine.intercepts["exporter.checked"] = lambda machine, args, kwargs, site: None

    def save(state: _State) -> Any:
        return call_value(bench.machine, BoundMethod(extract, writes), (state,), {}, None)

    yield conversion(bench, step(extract, "takes the draft out of the model"), named, save, (Named(_OF_TARGET, None),))


# --- speculators ---------------------------------------------------------------------------------------------------


def _saved_in_training(bench: Bench, run: Run) -> Iterator[WeightMap]:
    """``save_pretrained`` of transformers (modeling_utils.py) leaves out what a class attribute names."""
    file, name = f"models/{run.kind}/core.py", "Eagle3DraftModel"
    if run.kind != "eagle3":
        return  # their lists are changed while the model is made
    cls = bench.cls(file, name)
    config = _of_speculators(bench, run)
    named = built(bench, construct(bench.machine, cls, (config,), {}))
    ignored = get_attribute(bench.machine, cls, "_keys_to_ignore_on_save")
    place = bench.line(file, "_keys_to_ignore_on_save", "names what save_pretrained leaves out")
    if not isinstance(ignored, list) or place.line == 1:
        raise NotFollowed(f"{place.path}: what save_pretrained leaves out is not known")

    def save(state: _State) -> Any:
        return {key: value for key, value in state.items() if key not in ignored}

    yield conversion(bench, place, named, save, option="in training")


def _of_speculators(bench: Bench, run: Run) -> Instance:
    """A config in the speculators format: what the run says nothing about is not known."""
    layer = {"model_type": "llama", "num_hidden_layers": 1, "attention_bias": False, "mlp_bias": False}
    held = {name: Unknown(name, present=True) for name in SIZES}
    inner = bench.instance(None, "the layers' config", **{**held, **layer})
    flags = {name: run.draft.get(name, False) for name in ("norm_before_fc", "fc_norm", "norm_before_residual")}
    rest = {"draft_vocab_size": Unknown("draft_vocab_size", present=True), "eagle_aux_hidden_state_layer_ids": None}
    return bench.instance(None, "the draft's config", transformer_layer_config=inner, **flags, **rest)


def _converted(bench: Bench, run: Run) -> Iterator[WeightMap]:
    """A converter of foreign checkpoints: of the names that one has, and of those that its own code speaks of."""
    file = {"eagle3": "convert/eagle/eagle3_converter.py", "dflash": "convert/dflash/converter.py"}.get(run.kind, "")
    if not file or not bench.has(file):
        return
    name = next((name for name in bench.module(file).index.classes if name.endswith("Converter")), "")
    cls = bench.cls(file, name)
    saving = bench.function(file, f"{name}.{'_save' if run.kind == 'dflash' else '_save_converted_checkpoint'}")
    named = tuple(Named(text, None) for text in dict.fromkeys((*run.names, *spoken_names(cls))))
    machine = bench.machine
    config = _of_speculators(bench, run)
    own = _legacy_names(bench, config) if run.kind == "eagle3" else None
    loaded: list[dict[str, Any]] = []

    def load(m: Any, args: Any, kwargs: Any, site: Any) -> Any:
        loaded.append(args[0])
        return m.heap.born([]), m.heap.born([])

    def save(state: _State) -> Any:
        loaded.clear()
        machine.intercepts |= {"load_state_dict()": load, "load_verifier_weights()": lambda m, args, kwargs, site: None}
        for made in ("Eagle3Speculator", "DFlashDraftModel"):
            machine.intercepts[made] = lambda m, args, kwargs, site: bench.instance(None, "the draft")
        rest = (True, True) if run.kind == "eagle3" else ()
        call_value(
            machine, BoundMethod(saving, bench.instance(cls)), (config, state, "out", *rest)[: 3 + len(rest)], {}, None
        )
        taken = loaded[-1] if loaded else None
        if own is None or not isinstance(taken, dict):
            return taken
        # A name that the class has not is not loaded (strict=False), and what is saved is the class's state.
        return {key: value for key, value in taken.items() if _has(own, key)}

    place = bench.line(file, "load_state_dict(", "fills the draft's class with a checkpoint")
    yield conversion(bench, place, named, save, option="convert")


def _legacy_names(bench: Bench, config: Instance) -> tuple[str, ...]:
    file, name = "convert/eagle/eagle3_legacy_model.py", "Eagle3Speculator"
    model = construct(bench.machine, bench.cls(file, name), (config,), {})
    found = tuple(item.name for item in built(bench, model))
    if not any(item.startswith("layers.") for item in found):
        raise NotFollowed(f"{bench.module(file).display}: what {name} is built of is not known")
    return found


def _has(names: Sequence[str], name: str) -> bool:
    """Whether a module has a tensor of that name; ``*`` stands for any on either side."""
    return any(fnmatchcase(own, name) or fnmatchcase(name, own) for own in names)


# --- SafeAILab EAGLE -----------------------------------------------------------------------------------------------


def _eagle(bench: Bench, run: Run) -> Iterator[WeightMap]:
    """DeepSpeed's ``save_16bit_model`` leaves out what is frozen, where it is told to (its runtime/engine.py)."""
    model = construct(bench.machine, bench.cls("cnets.py", "Model"), (draft_config(bench, run.draft), *(None,) * 3), {})
    named = built(bench, model)
    place = bench.line("main.py", "save_16bit_model", "saves the draft")
    if "exclude_frozen_parameters=True" not in bench.module("main.py").lines[place.line - 1]:
        return
    frozen = {item.name for item in named if item.value is not None and item.trained is False}
    if any(item.trained is None for item in named):
        raise NotFollowed(f"{place.path}:{place.line}: what is frozen is not known")

    def save(state: _State) -> Any:
        return {name: value for name, value in state.items() if name not in frozen}

    yield conversion(bench, place, named, save)


EXPORTERS: Mapping[str, tuple[Callable[[Bench, Run], Iterator[WeightMap]], ...]] = {
    "angelslim": (_angelslim,),
    "eagle": (_eagle,),
    "modelopt": (_modelopt,),
    "specforge": (_specforge,),
    "speculators": (_saved_in_training, _converted),
    "torchspec": (_torchspec,),
}
"""By the stack's name: what each of its exporters makes of the tensors of a run's draft. They raise NotFollowed."""
