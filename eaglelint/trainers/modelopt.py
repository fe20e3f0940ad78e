"""NVIDIA ModelOpt: where its wiring begins, for Hugging Face targets. Read in 0.47.0; the rest is derived.

Online it captures by hooks on the target's layers, or picks from ``output_hidden_states``; modelopt_dump.py has its
dumps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from eaglelint.source.calls import call_value, model_output
from eaglelint.source.lookup import MISSING, get_attribute
from eaglelint.source.values import BoundMethod, Cat, Instance, Tensor, Unknown
from eaglelint.trainers.base import Captured, Export, Fed, HandOver, RecipeKeys, Run, Step, step
from eaglelint.trainers.bench import Bench, NotFollowed, agreed, given, order_in, plain
from eaglelint.trainers.modelopt_dump import SCRIPTS, dumped, loaded, scripts_of
from eaglelint.trainers.tokens import make_row, row_shift

__all__ = ["ModelOpt"]

_PLUGINS = "torch/speculative/plugins"
_EAGLE = f"{_PLUGINS}/hf_eagle.py"
_STREAMING = f"{_PLUGINS}/hf_streaming_dataset.py"
_EXPORT = "torch/export/plugins/hf_spec_export.py"
_MODELS = {
    "eagle3": (_EAGLE, "HFEagleModel", "EagleExporter"),
    "dflash": (f"{_PLUGINS}/hf_dflash.py", "HFDFlashModel", "DFlashExporter"),
    "domino": (f"{_PLUGINS}/hf_domino.py", "HFDominoModel", "DominoExporter"),
    "dspark": (f"{_PLUGINS}/hf_dspark.py", "HFDSparkModel", "DSparkExporter"),
}
# What every config of a target has, and what a recipe has to say about a draft's extra head.
_OF_TARGETS = (
    "hidden_size",
    "intermediate_size",
    "max_position_embeddings",
    "num_attention_heads",
    "num_key_value_heads",
    "vocab_size",
)
_HEADS = {"domino": ("emb_dim", "gru_hidden_dim"), "dspark": ("markov_rank",)}
_TUPLE = "hidden_states of a Hugging Face model: entry k is h[k], the last one is after the final norm"


class ModelOpt:
    """The stack's entry points, by name: a model class's ``modify`` and forward pass, and its exporter."""

    name = "modelopt"
    kinds: tuple[str, ...] = ("eagle3", "dflash", "domino", "dspark")
    recipe = RecipeKeys(
        ids=(
            ("eagle", "eagle_architecture_config", "eagle_aux_hidden_state_layer_ids"),
            ("dflash", "dflash_architecture_config", "target_layer_ids"),
        ),
        dump=("data", "offline_data_path"),
        scripts=SCRIPTS,
        architecture=(("eagle", "eagle_architecture_config"), ("dflash", "dflash_architecture_config")),
    )

    def find_package(self, path: Path) -> Path | None:
        for candidate in (path, path / "modelopt"):
            if (candidate / "torch" / "speculative" / "plugins").is_dir():
                return candidate
        return None

    def ways(self, bench: Bench, kind: str) -> tuple[str, ...]:
        if not bench.has(_MODELS[kind][0]):
            return ()
        return ("online", *(scripts_of(bench) or ("dump",)))

    def layer_ids(self, bench: Bench, run: Run) -> tuple[tuple[int, ...], Step]:
        file, cls, _ = _MODELS[run.kind]
        modify = bench.function(file, f"{cls}.modify")
        model = self._modified(bench, run)
        if run.kind == "eagle3":
            config = model.attrs["eagle_config"]
            ids = get_attribute(bench.machine, config, "eagle_aux_hidden_state_layer_ids")
            where = bench.function(_EAGLE, "default_eagle_aux_layer_ids") if run.layer_ids is None else modify
        else:
            ids = model.attrs.get("target_layer_ids")
            where = modify
        return bench.ids(ids, modify), step(where, "chooses the layers")

    def _modified(self, bench: Bench, run: Run) -> Instance:
        """The model after ``modify``: with its ids, and with hooks on the target's layers."""
        file, name, _ = _MODELS[run.kind]
        cls = bench.cls(file, name)
        modify = bench.function(file, f"{name}.modify")
        machine = bench.machine
        architecture = {**self._architecture(bench, run), **_nested(run, "architecture")}
        key = "eagle_aux_hidden_state_layer_ids" if run.kind == "eagle3" else "target_layer_ids"
        if run.layer_ids is not None:
            architecture[key] = list(run.layer_ids)
        machine.heap.born(architecture)
        if run.kind != "eagle3" and run.layer_ids is not None:
            architecture["num_hidden_layers"] = len(run.layer_ids)  # it insists on one layer for each id
        base = bench.section("the target's config", {**run.target, "num_hidden_layers": run.num_layers})
        for name in _OF_TARGETS:
            base.attrs.setdefault(name, Unknown(f"the target's {name}", present=True))
        options = bench.instance(None, "the options", eagle_decoder_type="llama", eagle_offline=False)
        options.attrs.update(dflash_offline=False, eagle_base_lora=False, dflash_init_checkpoint=None)
        options.attrs.update(eagle_architecture_config=architecture, dflash_architecture_config=architecture)
        options.attrs.update(eagle_use_torch_compile=False, eagle_freeze_base_model=False)
        model = bench.instance(cls, _base_llm_config=base, config=base, training=True)
        model.attrs["_base_model"] = bench.instance(None, "the base model")

        # torch/opt/dynamic.py: what is no hyperparameter is kept as it is given.
        machine.intercepts["DynamicModule.__setattr__"] = lambda m, args, kwargs, site: None

        def made(m: Any, args: Any, kwargs: dict[str, Any], site: Any) -> Any:
            data = args[0] if args and isinstance(args[0], dict) else kwargs
            attrs = {"_attn_implementation": None, **data}
            return m.new_instance(Instance(None, attrs=attrs, name="the draft's config", closed=True))

        for intercept in ("from_dict()", "_Qwen3Config()", "transformers.Qwen3Config"):
            machine.intercepts[intercept] = made
        for name in ("EagleModule", "DFlashModule", "DominoModule", "DSparkModule"):
            machine.intercepts[f"{name}()"] = lambda m, args, kwargs, site: Unknown("the draft", present=True)
        for name in ("_build_draft_module", "_find_base_model_parts", "_get_eagle_device", "parameters"):
            machine.intercepts[f"{name}()"] = lambda m, args, kwargs, site: Unknown("a part", present=True)
        wanted = ("eagle_config",) if run.kind == "eagle3" else ("dflash_config", "target_layer_ids")
        found: list[dict[str, Any]] = []

        def work() -> None:
            try:
                call_value(machine, BoundMethod(modify, model), (options,), {}, None)
            finally:  # whatever comes after the ids is of no interest
                if all(name in model.attrs for name in wanted):
                    found.append({name: model.attrs[name] for name in wanted})

        try:
            bench.run(work, modify.info.name)
        except NotFollowed:
            if not found:
                raise
        if not found or any(plain(other) != plain(found[0]) for other in found[1:]):
            raise NotFollowed(f"{modify.module.display}:{modify.info.line}: what it sets is not known")
        model.attrs.update(found[0])
        return model

    def _architecture(self, bench: Bench, run: Run) -> dict[str, Any]:
        """What a recipe that says nothing about the draft's architecture gets."""
        if run.kind == "eagle3":
            found = bench.value("torch/speculative/config.py", "eagle3_default_config")
        else:
            file = "torch/speculative/dflash/default_config.py"
            found = bench.value(file, "default_dflash_config") if bench.has(file) else {}
        if not isinstance(found, dict):
            raise NotFollowed("the default architecture of the draft is not known")
        return {**{name: Unknown(name, present=True) for name in _HEADS.get(run.kind, ())}, **found}

    def capture(self, bench: Bench, run: Run, ids: tuple[int, ...]) -> Captured | HandOver:
        if run.way != "online":
            return dumped(bench, run)
        file, name, _ = _MODELS[run.kind]
        model = self._modified(bench, run)
        if run.kind != "eagle3":
            return self._picked(bench, model, file, name)
        forward = bench.function(file, f"{name}._eagle_base_model_forward")
        machine = bench.machine

        def base(m: Any, args: Any, kwargs: dict[str, Any], site: Any) -> Any:
            output = machine._run_hooks(site, kwargs.get("output_hidden_states"))
            output.attrs.setdefault("logits", Unknown("the logits"))
            return output

        machine.intercepts["super.forward"] = base
        model.attrs.setdefault("eagle_module", bench.instance(None, "the draft"))
        rest = {name: None for name in ("attention_mask", "position_ids", "past_key_values", "labels")}
        out = bench.call(forward, receiver=model, input_ids=Unknown("ids"), freeze_base_model=True, **rest)
        states = get_attribute(machine, out[0], "aux_hiddens") if isinstance(out, tuple) else MISSING
        last = get_attribute(machine, out[0], "out_hiddens") if isinstance(out, tuple) else MISSING
        if not isinstance(states, Tensor):
            raise NotFollowed(f"{forward.module.display}:{forward.info.line}: what is captured is not known")
        hook = bench.function(file, f"{name}._collect_aux_hidden_states_forward_hook")
        gather = bench.function(file, f"{name}.pop_and_gather_aux_hiddens")
        return Captured(
            tuple(bench.slot(part) for part in bench.parts(states)),
            bench.slot(last) if isinstance(last, Tensor) else None,
            (step(hook, "captures, as a hook on the layers"), step(gather, "joins what was captured")),
            (*sorted(machine.used_assumptions), _TUPLE),
        )

    def _picked(self, bench: Bench, model: Instance, file: str, name: str) -> Captured:
        """What is picked from the target's tuple of hidden states."""
        forward = bench.function(file, f"{name}.forward")
        bench.machine.intercepts["super.forward"] = lambda m, args, kwargs, site: model_output(m)
        joined = bench.assigned(forward, "target_hidden", model)
        slots = tuple(bench.slot(part) for part in bench.parts(joined))
        label: Any = None
        if "_base_model_lm_head(" in forward.module.text(forward.info.line, forward.info.end_line):
            handed = bench.handed(forward, "_base_model_lm_head", model, base_out=model_output(bench.machine))
            label = handed[-1] if handed else label
        line = bench.line(file, "selected = [", "picks from the target's hidden states")
        return Captured(slots, bench.slot(label) if isinstance(label, Tensor) else None, (line,), (_TUPLE,))

    def feed(self, bench: Bench, rows: Bench, run: Run, count: int) -> Fed:
        if run.way != "online":
            fed = loaded(bench, run, count)
            return fed if run.kind != "eagle3" else replace(fed, shifts=self._shifts(rows))
        if run.kind != "eagle3":
            return Fed(tuple(range(count)), frozenset(), True, False, (), ())
        names = tuple(given(f"state {index}") for index in range(count))
        feeding = bench.function(_EAGLE, "HFEagleModel._prepare_eagle_inputs")
        outputs = bench.instance(None, "outputs", aux_hiddens=Tensor.of(Cat(names)))
        handed = bench.handed(feeding, "fc", bench.instance(None, "the model"), base_outputs=outputs)
        order, normed = order_in(handed[0] if handed else None, feeding)
        moves = step(feeding, "moves the embeddings by one token, feeds fc")
        return Fed(order, normed, True, False, self._shifts(rows), (moves,))

    def _shifts(self, rows: Bench) -> tuple[tuple[str, int], ...]:
        prepare = rows.function(_EAGLE, "HFEagleModel._prepare_eagle_inputs")
        moved = rows.assigned(
            prepare,
            "eagle_input_embeds",
            rows.instance(None, "the model"),
            base_outputs=rows.instance(None, "outputs", input_embeds=make_row(), closed=True),
        )
        shift = row_shift(moved)
        return (("input_embeds", shift), ("aux_hiddens", 0), ("logits", 0)) if shift is not None else ()

    def export(self, bench: Bench, run: Run, ids: tuple[int, ...]) -> Export:
        _, _, name = _MODELS[run.kind]
        writing = bench.function(_EXPORT, f"{name}._export_config")
        model = self._modified(bench, run)
        exporter = bench.instance(bench.cls(_EXPORT, name), model=model)
        write = BoundMethod(writing, exporter)
        found = bench.every(lambda: call_value(bench.machine, write, (), {}, None), writing.info.name)
        if not all(isinstance(config, dict) for config in found):
            raise NotFollowed(f"{writing.module.display}:{writing.info.line}: the exported config is not known")
        config = agreed(found)
        return Export(_known(config), "a template that is filled from training", (step(writing, "writes config.json"),))


def _nested(run: Run, key: str) -> Mapping[str, Any]:
    found = run.draft.get(key)
    return found if isinstance(found, Mapping) else {}


def _known(config: dict[str, Any]) -> dict[str, Any]:
    """A config as data; what is not known is None."""
    return {
        key: _known(value) if isinstance(value, dict) else (None if isinstance(value, Unknown | Instance) else value)
        for key, value in config.items()
    }
