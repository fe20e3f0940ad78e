"""SpecForge: where its wiring begins. Read in 0.2.0; everything else is derived from the source.

States come from SGLang: offline from an engine inside the process, online from a server that is told the ids on its
command line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eaglelint.engines.release import required_version
from eaglelint.source.calls import call_value
from eaglelint.source.lookup import MISSING, get_attribute
from eaglelint.source.values import Cat, External, Function, Instance, Partial, Tensor, Unknown
from eaglelint.trainers.base import Captured, Export, Fed, HandOver, RecipeKeys, Run, Step, step
from eaglelint.trainers.bench import Bench, NotFollowed, given, names_in, order_in
from eaglelint.trainers.tokens import make_row, row_shift

__all__ = ["SpecForge"]

_NOT_MOVED: tuple[tuple[str, int], ...] = ()
_PROVIDERS = "algorithms/{kind}/providers.py"
_MODELS = "algorithms/model_providers.py"
_STRATEGIES = "training/strategies/base.py"


class SpecForge:
    """The stack's entry points, by name: an algorithm's providers, the capture backend, the strategy, the exporter."""

    name = "specforge"
    kinds: tuple[str, ...] = ("eagle3", "peagle", "dflash", "domino", "dspark")
    recipe = RecipeKeys(
        ids=(("model", "aux_hidden_state_layer_ids"),),
        kind=(("training", "strategy"),),
        dump=("data", "hidden_states_path"),
        schema=("config/schema.py", "Config"),
    )

    def find_package(self, path: Path) -> Path | None:
        for candidate in (path, path / "specforge"):
            if (candidate / "algorithms" / "model_providers.py").is_file():
                return candidate
        return None

    def ways(self, bench: Bench, kind: str) -> tuple[str, ...]:
        providers = self._providers(bench, kind)
        offline = get_attribute(bench.machine, providers, "offline")
        online = get_attribute(bench.machine, providers, "server_streaming")
        return tuple(way for way, found in (("dump", offline), ("online", online)) if found not in ((), MISSING))

    def layer_ids(self, bench: Bench, run: Run) -> tuple[tuple[int, ...], Step]:
        function = bench.function(_PROVIDERS.format(kind=run.kind), "resolve_capture_layers")
        config = bench.section("the run's config", {"model": {"aux_hidden_state_layer_ids": _listed(run.layer_ids)}})
        target = bench.section("the target's config", {**run.target, "num_hidden_layers": run.num_layers})
        draft = self._draft(bench, run, target)
        ids = bench.call(function, config, draft, target)
        resolver = bench.function(
            _MODELS,
            "resolve_eagle_capture_layers" if run.kind in ("eagle3", "peagle") else "resolve_dflash_capture_layers",
        )
        return bench.ids(ids, resolver), step(resolver, "chooses the layers")

    def _draft(self, bench: Bench, run: Run, target: Instance) -> dict[str, Any]:
        """The draft config of the run; where there is none, what the stack generates from the target."""
        draft = {key: dict(value) if isinstance(value, dict) else value for key, value in run.draft.items()}
        if run.kind in ("eagle3", "peagle") or draft.get("dflash_config", {}).get("target_layer_ids"):
            return draft
        payload: dict[str, Any] = {"num_hidden_layers": draft.get("num_hidden_layers", 1), **draft}
        function = bench.function(_MODELS, "populate_dflash_generated_config")
        bench.machine.heap.born(payload)
        bench.call(function, payload, target, Unknown("the run's config"))
        return payload

    def capture(self, bench: Bench, run: Run, ids: tuple[int, ...]) -> Captured | HandOver:
        layout = self._layout(bench, run)
        method = get_attribute(bench.machine, layout, "capture_method")
        if not isinstance(method, str):
            raise NotFollowed(f"the capture method of {run.kind} is not known")
        file = "offline_capture/sglang_backend/capture.py"
        setting = bench.function(file, "OfflineSGLangCaptureBackend.set_capture_layers")
        called: list[tuple[str, Any]] = []
        model = _recording(bench, called)
        runner = bench.instance(None, "the model runner", model=model)
        backend = bench.instance(bench.cls(file, "OfflineSGLangCaptureBackend"), model_runner=runner)
        bench.call(setting, list(ids), receiver=backend, capture_method=method)
        if len(called) != 1 or not isinstance(called[0][1], list):
            raise NotFollowed(f"{setting.module.display}:{setting.info.line} hands no ids over that could be followed")
        setter, handed = called[0]
        if run.offline:
            self._handed_out(bench)
        kind = {"set_eagle3_layers_to_capture": "eagle3", "set_dflash_layers_to_capture": "dflash"}.get(
            setter, "dspark"
        )
        steps = [step(setting, f"calls {setter}({handed})")]
        provisos: tuple[str, ...] = ()
        if not run.offline:
            launch = bench.module("launch_plan.py")
            line = next((n for n, text in enumerate(launch.lines, 1) if "--spec-capture-aux-layer-ids" in text), 1)
            steps = [Step("hands the ids to a server's command line", launch.display, line)]
            provisos = (
                f"if the server's --spec-capture-method {method} calls {setter}: a patch adds that option to SGLang",
            )
        return HandOver(
            "sglang",
            kind,
            tuple(handed),
            tuple(steps),
            release=required_version(bench.package, "sglang"),
            provisos=provisos,
        )

    def _handed_out(self, bench: Bench) -> None:
        """That what replaces the logits processor hands out the joined states and the last one, and under their names.

        Raises:
            NotFollowed: It does not.
        """
        file = "offline_capture/sglang_backend/utils.py"
        function = bench.function(file, "replaced_logits_processor_forward_for_offline_eagle3")
        intercepts = bench.machine.intercepts
        intercepts["bench.pruned"] = lambda machine, args, kwargs, site: (*args[:3], None, None, None)
        intercepts["bench.stored"] = lambda machine, args, kwargs, site: args[2]
        processor = bench.instance(
            None,
            "the logits processor",
            _get_pruned_states=Partial(External("bench.pruned"), (), {}),
            _get_hidden_states_to_store=Partial(External("bench.stored"), (), {}),
        )
        mode = {name: Partial(External("bench.no"), (), {}) for name in ("is_dllm_extend", "is_target_verify")}
        mode["is_decode_or_idle"] = Partial(External("bench.yes"), (), {})
        intercepts["bench.no"] = lambda machine, args, kwargs, site: False
        intercepts["bench.yes"] = lambda machine, args, kwargs, site: True
        metadata = bench.instance(
            None,
            "metadata",
            forward_mode=bench.instance(None, "mode", **mode),
            extend_return_logprob=False,
            multi_item_delimiter_indices=None,
        )
        intercepts["from_forward_batch()"] = lambda machine, args, kwargs, site: metadata
        states = given("aux"), given("last")
        out = bench.call(function, processor, None, states[1], None, metadata, states[0], None)
        found = tuple(
            names_in(get_attribute(bench.machine, out, name)) for name in ("aux_hidden_states", "last_hidden_states")
        )
        if found != (("aux",), ("last",)):
            raise NotFollowed(
                f"{function.module.display}:{function.info.line}: what SGLang's states become is not known"
            )

    def feed(self, bench: Bench, rows: Bench, run: Run, count: int) -> Fed:
        layout = self._layout(bench, run)
        states = tuple(given(f"state {index}") for index in range(count))
        joined = Tensor.of(Cat(states))
        if not run.offline:
            named = {
                str(get_attribute(bench.machine, layout, key)): value
                for key, value in (("aux_feature", joined), ("last_hidden_feature", given("label")))
                if isinstance(get_attribute(bench.machine, layout, key), str)
            }
            example, steps = named, [self._place(bench, run, "ServerCaptureLayout(", "names the tensors")]
        else:
            example, steps = self._from_dump(bench, run, layout, joined)
        inputs = next((key for key in ("hidden_state", "hidden_states") if key in example), None)
        label_key = next((key for key in ("target", "target_last_hidden_states") if key in example), None)
        order, normed = order_in(example[inputs] if inputs is not None else None, self._maker(bench, run))
        label = label_key is not None and names_in(example[label_key]) is not None
        trainer_norms, shifts = False, _NOT_MOVED
        if run.kind in ("eagle3", "peagle"):
            trainer_norms, shifts, more = self._target(bench, rows)
            steps += more
        else:
            strategy = bench.function(_STRATEGIES, f"{_STRATEGY[run.kind]}.forward_loss")
            steps.append(step(strategy, "hands ids and states on as they are"))
            shifts = self._unshifted(rows, run, strategy)
            trainer_norms = self._label_normed(bench, run, strategy) if label else False
        return Fed(order, normed, label, trainer_norms, shifts, tuple(steps))

    def _from_dump(self, bench: Bench, run: Run, layout: Any, joined: Tensor) -> tuple[dict[str, Any], list[Step]]:
        """What is written to a dump, and what the reader of dumps makes of it."""
        sources = {
            "input_ids": Unknown("ids", present=True),
            "loss_mask": Unknown("mask", present=True),
            "aux_hidden_states": joined,
            "last_hidden_states": given("label"),
        }
        write = bench.function("algorithms/common/providers.py", "OfflineCaptureLayout.materialize")
        record = bench.call(write, sources, receiver=layout)
        provider = get_attribute(bench.machine, self._providers(bench, run.kind), "offline")[0]
        make = get_attribute(bench.machine, provider, "build_normalizer")
        if not isinstance(make, Function):
            raise NotFollowed(f"the reader of dumps of {run.kind} is not known")

        def read() -> Any:
            reader = call_value(bench.machine, make, (2048,), {}, None)
            return call_value(bench.machine, reader, (record,), {}, None)

        example = bench.run(read, make.info.name)
        if not isinstance(example, dict):
            raise NotFollowed(f"what {make.info.name} makes of a dump is not known")
        steps = [
            self._place(bench, run, "OfflineCaptureLayout(", f"a dump holds {', '.join(map(str, record))}"),
            step(make, "reads a dump"),
        ]
        return example, steps

    def _target(self, bench: Bench, rows: Bench) -> tuple[bool, tuple[tuple[str, int], ...], list[Step]]:
        """What becomes of the label, and which tensors move by one token."""
        prepare = bench.function(_STRATEGIES, "_prepare_eagle_target")
        shifting = bench.function("modeling/target/target_head.py", "TargetHead.preprocess")
        head = bench.function("modeling/target/target_head.py", "TargetHead.forward")
        seen: list[Any] = []

        def projected(value: Any) -> Any:
            seen.append(names_in(value))
            return value

        made = bench.instance(bench.cls("modeling/target/target_head.py", "TargetHead"))
        made.attrs["fc"] = Partial(External("bench.project"), (), {})
        bench.machine.intercepts["bench.project"] = lambda machine, args, kwargs, site: projected(args[0])
        # That it moves tokens and does nothing else is seen below, where it runs on rows of them.
        bench.machine.intercepts["TargetHead.preprocess"] = lambda machine, args, kwargs, site: args
        keys = {"target_head": made, "target_repr": "hidden_state", "target": given("label"), "device": "cpu"}
        bench.call(prepare, **keys, input_ids=Unknown("ids"), loss_mask=Unknown("mask"))
        if len(seen) != 1 or seen[0] not in (("label",), ("norm(label)",)):
            raise NotFollowed(
                f"{prepare.module.display}:{prepare.info.line}: what the target's head is fed is not known"
            )
        moved = rows.call(shifting, make_row(), make_row(), make_row(), receiver=rows.instance(None, "head"))
        if not isinstance(moved, tuple) or any(row_shift(row) is None for row in moved):
            raise NotFollowed(f"{shifting.module.display}:{shifting.info.line}: the shift of tokens is not known")
        shifts = tuple(zip(("input_ids", "target", "loss_mask"), (row_shift(row) or 0 for row in moved), strict=True))
        return (
            seen[0] == ("norm(label)",),
            (*shifts, ("hidden_state", 0)),
            [step(shifting, "moves ids and the label by one token"), step(head, "projects the label")],
        )

    def _unshifted(self, rows: Bench, run: Run, strategy: Function) -> tuple[tuple[str, int], ...]:
        """Which tensors a DFlash-like strategy hands to its model, and by how many tokens it moved them."""
        handed = self._handed(rows, run, strategy, make_row)
        moved = tuple((name, row_shift(value)) for name, value in handed.items() if row_shift(value) is not None)
        return tuple((name, shift) for name, shift in moved if shift is not None)

    def _label_normed(self, bench: Bench, run: Run, strategy: Function) -> bool:
        handed = self._handed(bench, run, strategy, lambda: given("label"))
        return names_in(handed.get("target_last_hidden_states")) == ("norm(label)",)

    def _handed(self, bench: Bench, run: Run, strategy: Function, make: Any) -> dict[str, Any]:
        tensors = {
            name: make()
            for name in ("input_ids", "hidden_states", "loss_mask", "target_last_hidden_states", "attention_mask")
        }
        handed: dict[str, Any] = {}

        def model(machine: Any, args: Any, kwargs: dict[str, Any], site: Any) -> Any:
            handed.update(kwargs)
            return Unknown("the loss")

        bench.machine.intercepts["bench.model"] = model
        receiver = bench.instance(bench.cls(_STRATEGIES, _STRATEGY[run.kind]))
        for name in ("dflash_model", "dspark_model", "domino_model", "model", "wrapped_model"):
            receiver.attrs[name] = Partial(External("bench.model"), (), {})
        batch = bench.instance(None, "batch", tensors=tensors, metadata={})
        try:
            bench.call(strategy, batch, Unknown("context"), receiver=receiver)
        except NotFollowed:
            if not handed:
                raise
        if not handed:
            raise NotFollowed(f"{strategy.module.display}:{strategy.info.line}: what the model is handed is not known")
        return handed

    def export(self, bench: Bench, run: Run, ids: tuple[int, ...]) -> Export:
        materialize = bench.function("export/checkpoint_io.py", "materialize_draft")
        read: list[Any] = []
        machine = bench.machine
        draft = self._draft(
            bench, run, bench.section("the target's config", {**run.target, "num_hidden_layers": run.num_layers})
        )

        def config(m: Any, args: Any, kwargs: Any, site: Any) -> Any:
            read.append(args[0])
            return bench.section("the draft's config", dict(draft))

        machine.intercepts["AutoDraftModelConfig.from_file"] = config
        machine.intercepts["AutoDraftModel.from_config"] = lambda m, args, kwargs, site: bench.instance(
            None, "draft model", config=args[0], load_state_dict=Partial(External("bench.loaded"), (), {})
        )
        machine.intercepts["bench.loaded"] = lambda m, args, kwargs, site: ([], [])
        model = bench.call(materialize, {"draft_state_dict": Unknown("weights")}, "draft config")
        written = get_attribute(machine, model, "config")
        if read != ["draft config"] or not isinstance(written, Instance):
            raise NotFollowed(f"{materialize.module.display}:{materialize.info.line}: the exported config is not known")
        return Export(
            draft,
            "the draft config that the exporter is given; ids of the run's own config are not written",
            (step(materialize, "builds the exported draft from the draft config alone"),),
        )

    # --- the providers -------------------------------------------------------------------------------------------

    def _providers(self, bench: Bench, kind: str) -> Any:
        key = ("providers", kind)
        if key not in bench.machine.memo:
            bench.machine.memo[key] = bench.call(bench.function(_PROVIDERS.format(kind=kind), "algorithm_providers"))
        return bench.machine.memo[key]

    def _maker(self, bench: Bench, run: Run) -> Function:
        return bench.function(_PROVIDERS.format(kind=run.kind), "algorithm_providers")

    def _layout(self, bench: Bench, run: Run) -> Any:
        providers = self._providers(bench, run.kind)
        found = get_attribute(bench.machine, providers, "offline" if run.offline else "server_streaming")
        name = "capture_layout" if run.offline else "layout"
        if not isinstance(found, tuple) or not found:
            raise NotFollowed(f"{run.kind} has no {'offline' if run.offline else 'online'} provider")
        layout = get_attribute(bench.machine, found[0], name)
        if not run.offline and isinstance(layout, Instance):
            layout.attrs.setdefault("capture_method", get_attribute(bench.machine, found[0], "capture_method"))
        if not isinstance(layout, Instance):
            raise NotFollowed(f"{run.kind} has no layout of what is captured {'offline' if run.offline else 'online'}")
        return layout

    def _place(self, bench: Bench, run: Run, mark: str, note: str) -> Step:
        module = bench.module(_PROVIDERS.format(kind=run.kind))
        line = next((number for number, text in enumerate(module.lines, 1) if mark in text), 1)
        return Step(note, module.display, line)


_STRATEGY = {
    "dflash": "DFlashTrainStrategy",
    "domino": "DominoTrainStrategy",
    "dspark": "DSparkTrainStrategy",
}


def _recording(bench: Bench, called: list[tuple[str, Any]]) -> Instance:
    """A target model that notes which of its setters is called, and with what."""
    model = bench.instance(None, "target model")
    for name in ("set_eagle3_layers_to_capture", "set_dflash_layers_to_capture", "set_dspark_layers_to_capture"):
        model.attrs[name] = Partial(External("bench.setter"), (name,), {})
    bench.machine.intercepts["bench.setter"] = lambda m, args, kwargs, site: called.append((args[0], args[1]))
    return model


def _listed(ids: tuple[int, ...] | None) -> list[int] | None:
    return None if ids is None else list(ids)
