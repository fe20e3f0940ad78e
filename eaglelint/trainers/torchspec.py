"""TorchSpec: where its wiring begins. Read at commit 6dda2bf (2026-04); everything else is derived from the source.

Hugging Face targets are captured by hooks, SGLang by an option that a patch adds, vLLM by ids that are moved by one,
and to which the last layer's id is added.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eaglelint.source.calls import call_value
from eaglelint.source.lookup import get_attribute
from eaglelint.source.values import BoundMethod, External, Instance, Partial, Tensor, Unknown
from eaglelint.trainers.base import Captured, Export, Fed, HandOver, RecipeKeys, Run, Step, step
from eaglelint.trainers.bench import Bench, NotFollowed, given
from eaglelint.trainers.tokens import make_row, row_shift

__all__ = ["TorchSpec"]

_HF = "models/target/eagle3_target_model.py"
_SGLANG = "inference/engine/sgl_engine.py"
_VLLM = "inference/engine/vllm_engine.py"
_TRAINER = "training/eagle3_trainer.py"
_CONVERTER = "tools/convert_to_hf.py"


class TorchSpec:
    """The stack's entry points, by name: the target models, the engines' ``init``, the trainer, the converter."""

    name = "torchspec"
    kinds: tuple[str, ...] = ("eagle3",)
    recipe = RecipeKeys(
        ids=(("inference", "aux_hidden_states_layers"),),
        way=("inference", "inference_engine_type"),
        ways={"hf": "hf", "sgl": "sglang", "vllm": "vllm"},
    )

    def find_package(self, path: Path) -> Path | None:
        for candidate in (path, path / "torchspec"):
            if (candidate / "models" / "target" / "eagle3_target_model.py").is_file():
                return candidate
        return None

    def ways(self, bench: Bench, kind: str) -> tuple[str, ...]:
        files = {"hf": _HF, "sglang": _SGLANG, "vllm": _VLLM}
        return tuple(way for way, file in files.items() if bench.has(file))

    def layer_ids(self, bench: Bench, run: Run) -> tuple[tuple[int, ...], Step]:
        target = self._target(bench, run)
        if run.way != "hf":
            function = bench.function("utils/misc.py", "get_default_eagle3_aux_layer_ids")
            bench.machine.intercepts["from_pretrained()"] = lambda machine, args, kwargs, site: target
            ids = list(run.layer_ids) if run.layer_ids is not None else bench.call(function, "target")
            return bench.ids(ids, function), step(function, "chooses the layers")
        function = bench.function(_HF, "HFTargetModel.set_aux_hidden_states_layers")
        model = bench.instance(bench.cls(_HF, "HFTargetModel"), model=bench.instance(None, "model", config=target))
        bench.call(function, None if run.layer_ids is None else list(run.layer_ids), receiver=model)
        return bench.ids(model.attrs.get("aux_hidden_states_layers"), function), step(function, "chooses the layers")

    def _target(self, bench: Bench, run: Run) -> Instance:
        return bench.section("the target's config", {**run.target, "num_hidden_layers": run.num_layers})

    def capture(self, bench: Bench, run: Run, ids: tuple[int, ...]) -> Captured | HandOver:
        if run.way == "hf":
            return self._hooked(bench, run, ids)
        if run.way == "vllm":
            return self._moved(bench, run, ids)
        place = bench.line(_SGLANG, '"aux_hidden_state_layer_ids":', "hands the ids to SGLang as an option")
        proviso = "if SGLang hands aux_hidden_state_layer_ids to the model's setter: a patch adds that option"
        return HandOver("sglang", "eagle3", ids, (place,), provisos=(proviso,))

    def _hooked(self, bench: Bench, run: Run, ids: tuple[int, ...]) -> Captured:
        generate = bench.function(_HF, "HFTargetModel.generate_eagle3_data")
        machine = bench.machine
        holder = bench.instance(bench.cls(_HF, "HFTargetModel"), aux_hidden_states_layers=list(ids))
        # The usual layout of a Hugging Face model; the helpers try it first.
        base = bench.instance(None, "the base model", norm=Unknown("the norm", present=True))
        holder.attrs["model"] = bench.instance(None, "the model", config=self._target(bench, run), model=base)
        given_ids = {name: Unknown(name, present=True) for name in ("input_ids", "attention_mask", "loss_mask")}
        out = bench.call(generate, receiver=holder, **given_ids)
        states, last = (get_attribute(machine, out, name) for name in ("hidden_states", "last_hidden_states"))
        if not isinstance(states, Tensor):
            raise NotFollowed(f"{generate.module.display}:{generate.info.line}: what is captured is not known")
        return Captured(
            tuple(bench.slot(part) for part in bench.parts(states)),
            bench.slot(last) if isinstance(last, Tensor) else None,
            (step(generate, "captures by hooks on the layers and on the final norm"),),
            tuple(sorted(machine.used_assumptions)),
        )

    def _moved(self, bench: Bench, run: Run, ids: tuple[int, ...]) -> HandOver:
        """The ids that vLLM is started with: those of the run moved by one, and one more for the label."""
        init = bench.function(_VLLM, "VllmEngine.init")
        machine = bench.machine
        target = self._target(bench, run)
        machine.intercepts["from_pretrained()"] = lambda m, args, kwargs, site: target
        machine.intercepts["_init_engine()"] = lambda m, args, kwargs, site: Unknown("vLLM", present=True)
        arguments = bench.instance(None, "the arguments", aux_hidden_states_layers=list(ids))
        engine = bench.instance(bench.cls(_VLLM, "VllmEngine"), args=arguments)
        found: list[Any] = []

        def work() -> None:
            try:
                call_value(machine, BoundMethod(init, engine), (), {}, None)
            finally:
                found.append(engine.attrs.get("aux_hidden_state_layer_ids"))

        try:
            bench.run(work, init.info.name)
        except NotFollowed:
            if not found:
                raise
        handed = bench.ids(found[0], init)
        if any(other != found[0] for other in found[1:]):
            raise NotFollowed(f"{init.module.display}:{init.info.line}: the ids handed to vLLM are not known")
        return HandOver(
            "vllm",
            "eagle3",
            handed,
            (step(init, f"starts vLLM with {list(handed)}, the last for the label"),),
            label=True,
            provisos=("if vLLM hands the captured states on in their order",),
        )

    def feed(self, bench: Bench, rows: Bench, run: Run, count: int) -> Fed:
        forward = rows.function(_TRAINER, "Eagle3Trainer._forward")
        batch = {key: make_row() for key in ("input_ids", "last_hidden_states", "loss_mask", "hidden_states")}
        handed = self._handed(rows, forward, {**batch, "attention_mask": Unknown("mask", present=True)}, None)
        shifts = tuple((key, row_shift(value)) for key, value in handed.items() if row_shift(value) is not None)
        states = bench.function(_TRAINER, "Eagle3Trainer._forward")
        tensors = {"last_hidden_states": given("label"), "hidden_states": given("states")}
        others = {key: Unknown(key, present=True) for key in ("input_ids", "loss_mask", "attention_mask")}
        normed = self._prenorm(bench, run)
        seen = self._handed(bench, states, {**tensors, **others}, bench.instance(None, "RMSNorm") if normed else None)
        if seen.get("hidden_states") != tensors["hidden_states"]:
            raise NotFollowed(f"{states.module.display}:{states.info.line}: what feeds fc is not known")
        return Fed(
            tuple(range(count)),
            frozenset(),
            True,
            normed,
            tuple((key, shift) for key, shift in shifts if shift is not None),
            (step(states, "moves ids and the label by one token" + (", norms the label" if normed else "")),),
        )

    def _prenorm(self, bench: Bench, run: Run) -> bool:
        """Whether the trainer norms the label itself, as its config resolves that for the engine."""
        resolve = bench.function("config/inference_config.py", "InferenceConfig.resolve_last_hidden_states_prenorm")
        config = bench.instance(
            None,
            "the inference config",
            last_hidden_states_prenorm=None,
            inference_engine_type={"sglang": "sgl"}.get(run.way, run.way),
        )
        found = bench.call(resolve, receiver=config)
        if not isinstance(found, bool):
            raise NotFollowed(f"{resolve.module.display}:{resolve.info.line}: whether the label is normed is not known")
        return found

    def _handed(self, bench: Bench, forward: Any, batch: dict[str, Any], norm: Any) -> dict[str, Any]:
        """What the trainer hands to its model; the teacher's distribution stands for the states it comes from."""
        handed: dict[str, Any] = {}

        def model(machine: Any, args: Any, kwargs: dict[str, Any], site: Any) -> Any:
            handed.update(kwargs)
            return (Unknown("losses"), Unknown("metrics"), Unknown("accuracies"))

        def teacher(machine: Any, args: Any, kwargs: dict[str, Any], site: Any) -> Any:
            return kwargs.get("target_hidden_states", args[0] if args else None)

        bench.machine.intercepts["bench.model"] = model
        for name in ("compute_target_p_padded()", "compute_lazy_target_padded()"):
            bench.machine.intercepts[name] = teacher
        trainer = bench.instance(
            bench.cls(_TRAINER, "Eagle3Trainer"),
            model=Partial(External("bench.model"), (), {}),
            verifier_norm=norm,
            t2d=None,
            target_lm_head_weight=Unknown("the head", present=True),
            eagle3=Unknown("the draft", present=True),
        )
        bench.call(forward, batch, receiver=trainer)
        if not handed:
            raise NotFollowed(f"{forward.module.display}:{forward.info.line}: what the model is handed is not known")
        return handed

    def export(self, bench: Bench, run: Run, ids: tuple[int, ...]) -> Export:
        fixing = bench.function(_CONVERTER, "_fixup_export_config")
        for name in ("loads()", "dumps()"):
            bench.machine.intercepts[name] = lambda machine, args, kwargs, site: args[0]
        raw = {key: dict(value) if isinstance(value, dict) else value for key, value in run.draft.items()}
        config = bench.call(fixing, raw)
        if not isinstance(config, dict):
            raise NotFollowed(f"{fixing.module.display}:{fixing.info.line}: the exported config is not known")
        version = bench.line(_CONVERTER, '"_torchspec_version"', "adds the release")
        rule = "the draft config that training starts from; ids of the run's own config are not written"
        return Export({**config, "_torchspec_version": None}, rule, (step(fixing, "copies the draft config"), version))
