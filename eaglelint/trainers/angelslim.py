"""AngelSlim: where its wiring begins, for Hugging Face targets. Read in 0.5.0; the rest is derived from the source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eaglelint.source.calls import call_value, model_output
from eaglelint.source.values import BoundMethod, External, Partial, Tensor, Unknown
from eaglelint.trainers.base import Captured, Export, Fed, HandOver, RecipeKeys, Run, Step, step
from eaglelint.trainers.bench import Bench, NotFollowed
from eaglelint.trainers.tokens import make_row, row_shift

__all__ = ["AngelSlim"]

_TRAIN = "compressor/speculative/train"
_TARGET = f"{_TRAIN}/models/target/target_model_wrapper.py"
_TRAINER = f"{_TRAIN}/trainer/online_eagle3_trainer.py"
_TUPLE = "hidden_states of a Hugging Face model: entry k is h[k], the last one is after the final norm"


class AngelSlim:
    """The stack's entry points, by name: a back end that picks states, and the trainer that prepares them."""

    name = "angelslim"
    kinds: tuple[str, ...] = ("eagle3",)
    recipe = RecipeKeys()  # the draft config, which is exported, is the one place for ids

    def find_package(self, path: Path) -> Path | None:
        for candidate in (path, path / "angelslim"):
            if (candidate / _TARGET).is_file():
                return candidate
        return None

    def ways(self, bench: Bench, kind: str) -> tuple[str, ...]:
        return ("online",)

    def _ids(self, run: Run) -> list[int] | None:
        """The ids of the draft config that training is started with: it is the one place for them."""
        named = run.layer_ids if run.layer_ids is not None else run.draft.get("aux_hidden_states_layer_ids")
        return list(named) if isinstance(named, tuple | list) else None

    def layer_ids(self, bench: Bench, run: Run) -> tuple[tuple[int, ...], Step]:
        function = bench.function(_TARGET, "BaseBackend._get_default_aux_layer_ids")
        ids: Any = self._ids(run)
        if ids is None:
            ids = bench.call(function, run.num_layers, receiver=bench.instance(None, "the back end"))
        return bench.ids(ids, function), step(function, "chooses the layers")

    def capture(self, bench: Bench, run: Run, ids: tuple[int, ...]) -> Captured | HandOver:
        pick = bench.function(_TARGET, "TransformersBackend.get_aux_and_target_hiddens")
        extract = bench.function(_TARGET, "BaseBackend._extract_auxiliary_hidden_states")
        config = bench.section("the target's config", {**run.target, "num_hidden_layers": run.num_layers})
        bench.machine.intercepts["bench.target"] = lambda machine, args, kwargs, site: model_output(machine)
        model = bench.instance(None, "the target", config=config)
        backend = bench.instance(bench.cls(_TARGET, "TransformersBackend"), model=model)
        model.attrs["forward"] = Partial(External("bench.target"), (), {})
        arguments: dict[str, Any] = {"input_ids": Unknown("ids", present=True)}
        named = self._ids(run)
        if named is not None:
            arguments["aux_hidden_states_layer_ids"] = named
        found = bench.run(
            lambda: call_value(bench.machine, BoundMethod(pick, backend), (), dict(arguments), None), pick.info.name
        )
        if not isinstance(found, dict) or not isinstance(found.get("hidden_states"), Tensor):
            raise NotFollowed(f"{pick.module.display}:{pick.info.line}: what is captured is not known")
        last = found.get("target_hiddens")
        return Captured(
            tuple(bench.slot(part) for part in bench.parts(found["hidden_states"])),
            bench.slot(last) if isinstance(last, Tensor) else None,
            (step(extract, "picks from the target's hidden states"),),
            (_TUPLE,),
        )

    def feed(self, bench: Bench, rows: Bench, run: Run, count: int) -> Fed:
        prepare = rows.function(_TRAINER, "OnlineEagle3Trainer.prepare_data_for_draft_model")
        rows.machine.intercepts["get_hidden_states_and_logits()"] = lambda machine, args, kwargs, site: (
            make_row(),
            make_row(),
        )
        trainer = rows.instance(None, "the trainer", target_model=rows.instance(None, "target"))
        inputs = {"input_ids": make_row(), "loss_mask": make_row(), "attention_mask": Unknown("mask", present=True)}
        moved = rows.call(prepare, inputs, receiver=trainer)
        if not isinstance(moved, dict) or row_shift(moved.get("hidden_states")) is None:
            raise NotFollowed(f"{prepare.module.display}:{prepare.info.line}: the shift of tokens is not known")
        shifts = tuple((str(key), shift) for key, value in moved.items() if (shift := row_shift(value)) is not None)
        return Fed(tuple(range(count)), frozenset(), True, False, shifts, (step(prepare, "moves ids and the label"),))

    def export(self, bench: Bench, run: Run, ids: tuple[int, ...]) -> Export:
        place = bench.line(f"{_TRAIN}/trainer/eagle3_trainer.py", "save_pretrained(", "saves the draft with its config")
        return Export(dict(run.draft), "the draft config that training starts from", (place,))
