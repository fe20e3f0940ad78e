"""speculators: where its wiring begins. Read in 0.3.0, 0.4.0 and 0.9.0; everything else is derived from the source.

States come from vLLM. Since 0.5 it is a server of its own, started with ids to which the last layer is added; before,
the trainer patched the forward pass of vLLM's model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eaglelint.source.calls import call_value
from eaglelint.source.lookup import class_mro, find_method
from eaglelint.source.values import BoundMethod, ClassValue, External, Function, Instance, Partial, Unknown
from eaglelint.trainers.base import Captured, Export, Fed, HandOver, RecipeKeys, Run, Step, step
from eaglelint.trainers.bench import Bench, NotFollowed, given, names_in, order_in
from eaglelint.trainers.stacks import make_stack
from eaglelint.trainers.tokens import make_row, row_shift

__all__ = ["Speculators"]

_UTILS = "models/utils.py"
_DATA = "train/data.py"
_GENERATOR = "data_generation/vllm_hidden_states_generator.py"
_LAUNCH = "scripts/launch_vllm.py"
_WORKER = "data_generation/custom_worker.py"
_CLASSES = {
    "eagle3": "Eagle3DraftModel",
    "peagle": "PEagleDraftModel",
    "dflash": "DFlashDraftModel",
    "dspark": "DSparkDraftModel",
}
_CONFIGS = {
    "eagle3": "Eagle3SpeculatorConfig",
    "peagle": "PEagleSpeculatorConfig",
    "dflash": "DFlashSpeculatorConfig",
    "dspark": "DSparkSpeculatorConfig",
}


class Speculators:
    """The stack's entry points, by name: what resolves ids, the dataset, a draft model's forward pass and config."""

    name = "speculators"
    kinds: tuple[str, ...] = ("eagle3", "peagle", "dflash", "dspark")
    recipe = RecipeKeys(
        ids=(("draft", "target_layer_ids"), ("target_layer_ids",)),
        kind=(("speculator_type",),),
        flags={
            "--target-layer-ids": ("draft", "target_layer_ids"),
            "--layer-ids": ("draft", "target_layer_ids"),
            "--speculator-type": ("speculator_type",),
            **{
                f"--{name.replace('_', '-')}": ("draft", name)
                for name in ("fc_norm", "norm_before_fc", "norm_before_residual", "norm_output")
            },
        },
        schema=("train/config/schema.py", "TrainConfig"),
    )

    def find_package(self, path: Path) -> Path | None:
        for candidate in (path, path / "speculators", path / "src" / "speculators"):
            if (candidate / "models").is_dir() and (candidate / "train" / "data.py").is_file():
                return candidate
        return None

    def ways(self, bench: Bench, kind: str) -> tuple[str, ...]:
        """Both ways read the same states: from files, or as they are generated. Before 0.5 from files only."""
        if not bench.has(f"models/{kind}/core.py"):
            return ()
        return ("dump",) if self._patches(bench) else ("dump", "online")

    def _patches(self, bench: Bench) -> bool:
        return bench.has(_GENERATOR)

    def layer_ids(self, bench: Bench, run: Run) -> tuple[tuple[int, ...], Step]:
        listed = None if run.layer_ids is None else list(run.layer_ids)
        target = bench.section("the verifier's config", {**run.target, "num_hidden_layers": run.num_layers})
        if not self._patches(bench):
            function = bench.function(_UTILS, "resolve_target_layer_ids")
            for name in ("get_verifier_config()", "AutoConfig.from_pretrained()", "from_pretrained()"):
                bench.machine.intercepts[name] = lambda machine, args, kwargs, site: target
            return bench.ids(bench.call(function, listed, "verifier"), function), step(function, "chooses the layers")
        function = bench.function(_GENERATOR, "VllmHiddenStatesGenerator.__init__")
        bench.machine.intercepts["from_pretrained()"] = lambda machine, args, kwargs, site: target
        generator = bench.instance(bench.cls(_GENERATOR, "VllmHiddenStatesGenerator"))
        for name in ("_create_vllm_config", "_setup_capture"):
            bench.machine.intercepts[f"{name}()"] = lambda machine, args, kwargs, site: Unknown("vLLM", present=True)
        try:
            bench.call(function, "verifier", listed, receiver=generator)
        except NotFollowed:
            if "layer_ids" not in generator.attrs:
                raise
        return bench.ids(generator.attrs.get("layer_ids"), function), step(function, "chooses the layers")

    def capture(self, bench: Bench, run: Run, ids: tuple[int, ...]) -> Captured | HandOver:
        if self._patches(bench):
            return self._patched(bench, run, ids)
        handed, launch = self._launched(bench, run, ids)
        if handed is not None and launch is not None:
            provisos: tuple[str, ...] = ("if vLLM hands the captured states on in their order",)
            return HandOver("vllm", "eagle3", handed, (launch,), label=True, provisos=provisos)
        schema = "train/config/schema.py"
        file = schema if bench.has(schema) else _UTILS
        named = any("launch_vllm" in line for line in bench.module(file).lines)
        text = "launch_vllm" if named else "def resolve_target_layer_ids"
        place = bench.line(file, text, "asks for the ids of vLLM")
        proviso = "if vLLM was started with these ids and N, the last layer, after them, as its launcher does"
        return HandOver("vllm", "eagle3", (*ids, run.num_layers), (place,), label=True, provisos=(proviso,))

    def _launched(self, bench: Bench, run: Run, ids: tuple[int, ...]) -> tuple[tuple[int, ...] | None, Step | None]:
        """The ids with which the launcher beside a checkout's sources starts vLLM."""
        if not bench.has(_LAUNCH):
            return None, None
        own = Bench(bench.tree, bench.package, run.num_layers)
        main = own.function(_LAUNCH, "main")
        written: list[Any] = []
        arguments = own.instance(
            None,
            "the command line",
            model="verifier",
            target_layer_ids=None if run.layer_ids is None else list(ids),
            include_last_layer=True,
            trust_remote_code=False,
            hidden_states_backend="file",
            dry_run=True,
        )
        target = own.section("the verifier's config", {"num_hidden_layers": run.num_layers})
        own.machine.intercepts["parse_args()"] = lambda machine, args, kwargs, site: (arguments, [])
        own.machine.intercepts["from_pretrained()"] = lambda machine, args, kwargs, site: target
        own.machine.intercepts["dumps()"] = lambda machine, args, kwargs, site: written.append(args[0])
        try:
            own.call(main)
        except NotFollowed:
            if not written:
                raise
        config = next((item for item in written if isinstance(item, dict) and "draft_model_config" in item), None)
        listed = config["draft_model_config"]["hf_config"]["eagle_aux_hidden_state_layer_ids"] if config else None
        return own.ids(listed, main), own.line(_LAUNCH, "eagle_aux_hidden_state_layer_ids", "starts vLLM")

    def _patched(self, bench: Bench, run: Run, ids: tuple[int, ...]) -> Captured:
        """The forward pass that is put in the place of vLLM's model."""
        setup = bench.function(_WORKER, "HiddenStatesWorkerExtension._setup_hidden_states_capture")
        forward = bench.function(_WORKER, "_patched_forward")
        stored: list[Any] = []
        extension = bench.instance(bench.cls(_WORKER, "HiddenStatesWorkerExtension"))
        model = bench.instance(None, "vLLM's model", start_layer=0, end_layer=run.num_layers)
        extension.attrs["model_runner"] = bench.instance(
            None, "the model runner", model=bench.instance(None, "the language model", model=model, closed=True)
        )
        name = "HiddenStatesWorkerExtension._store_captured_states"
        bench.machine.intercepts[name] = lambda machine, args, kwargs, site: stored.append(list(args[0]))

        def both() -> None:
            call_value(bench.machine, BoundMethod(setup, extension), (list(ids),), {}, None)
            given_ids = {"input_ids": Unknown("ids", present=True), "positions": Unknown("positions", present=True)}
            if "_layer_ids" in extension.attrs:
                model.attrs["_extension"] = extension
            call_value(bench.machine, BoundMethod(forward, model), (), given_ids, None)

        bench.run(both, forward.info.name)
        if len(stored) != 1:
            raise NotFollowed(f"{forward.module.display}:{forward.info.line}: what is captured is not known")
        slots = tuple(bench.slot(tensor) for tensor in stored[0])
        assumptions = tuple(sorted(bench.machine.used_assumptions))
        return Captured(slots, None, (step(setup, "keeps the ids as a set"), step(forward, "captures")), assumptions)

    def feed(self, bench: Bench, rows: Bench, run: Run, count: int) -> Fed:
        names = [f"state {index}" for index in range(count)]
        if self._patches(bench):
            reader = bench.function(_DATA, "standardize_data_v1")
            data = {
                "hidden_states": [given(name) for name in names],
                "input_ids": Unknown("ids", present=True),
                "loss_mask": Unknown("mask", present=True),
            }
            example = bench.call(reader, data)
        else:
            reader, example = self._raw(bench, [*names, "label"])
        if not isinstance(example, dict) or "hidden_states" not in example:
            raise NotFollowed(f"{reader.module.display}:{reader.info.line}: the example is not known")
        order, normed = order_in(example["hidden_states"], reader)
        last = names_in(example.get("verifier_last_hidden_states"))
        if last is None or len(last) != 1:
            raise NotFollowed(f"{reader.module.display}:{reader.info.line}: the label is not known")
        steps = [step(reader, "takes an example apart")]
        shifts, more = self._shifts(rows, run)
        steps += more
        made = self._label(bench, run)
        if made is None:  # 0.5 and 0.6 train DFlash on tokens alone
            return Fed(order, normed, False, False, shifts, tuple(steps))
        label_normed, forward = made
        steps.append(step(forward, "norms the label" if label_normed else "takes the label as it is"))
        label = int(last[0].removeprefix("state ")) if last[0].startswith("state ") else None
        return Fed(order, normed, True, label_normed, shifts, tuple(steps), label)

    def _raw(self, bench: Bench, names: list[str]) -> tuple[Function, Any]:
        """What the dataset makes of a file: ``[tokens, layers, features]``, the label the last of the layers."""
        reader = bench.function(_DATA, "ArrowDataset._get_raw_data")
        loaded = {
            "hidden_states": make_stack([given(name) for name in names], 1),
            "token_ids": Unknown("ids", present=True),
        }
        # A sample's file is there: 0.5 and 0.6 look for it themselves, later releases ask what transfers it.
        for name in ("bench.cached", "load_file()"):
            bench.machine.intercepts[name] = lambda machine, args, kwargs, site: loaded
        for name in ("torch.equal", "exists()"):
            bench.machine.intercepts[name] = lambda machine, args, kwargs, site: True
        transfer = bench.instance(None, "files", get_cached=Partial(External("bench.cached"), (), {}))
        dataset = bench.instance(
            bench.cls(_DATA, "ArrowDataset"), transfer=transfer, start_file_idx=0, data=Unknown("rows", present=True)
        )
        return reader, bench.call(reader, 0, receiver=dataset)

    def _shifts(self, rows: Bench, run: Run) -> tuple[tuple[tuple[str, int], ...], list[Step]]:
        """By how many tokens the tensors of an example are moved before they are trained on."""
        keys = ("input_ids", "hidden_states", "verifier_last_hidden_states", "loss_mask", "position_ids")
        shifting: Any = None
        if self._patches(rows):
            shifting = rows.function(_DATA, "shift_batch")
        else:
            table = next((file for file in ("train/cli.py", "scripts/train.py") if rows.has(file)), None)
            if table is None:
                return (), []  # the wheels of 0.5 and 0.6 leave the script out that chooses
            module = rows.module(table)
            choosing = [
                f for f in module.index.functions.values() if "preprocess_fns" in module.text(f.line, f.end_line)
            ]
            if len(choosing) != 1:
                raise NotFollowed(f"{module.display}: what prepares a batch is not known")
            chosen = Function(module, choosing[0])
            functions = rows.assigned(chosen, "preprocess_fns")
            if not isinstance(functions, dict):
                raise NotFollowed(f"{chosen.module.display}:{chosen.info.line}: what prepares a batch is not known")
            shifting = functions.get(run.kind)
            if shifting is None:
                place = rows.line(table, "preprocess_fns", f"moves no tokens for {run.kind}")
                return tuple((key, 0) for key in keys), [place]
        if not isinstance(shifting, Function):
            raise NotFollowed(f"what prepares a batch of {run.kind} is not known")
        moved = rows.call(shifting, {**{key: make_row() for key in keys}, "lengths": Unknown("lengths")})
        if not isinstance(moved, dict) or any(row_shift(moved.get(key)) is None for key in keys):
            raise NotFollowed(f"{shifting.module.display}:{shifting.info.line}: the shift of tokens is not known")
        return tuple((key, row_shift(moved[key]) or 0) for key in keys), [step(shifting, "moves tokens")]

    def _label(self, bench: Bench, run: Run) -> tuple[bool, Function] | None:
        """Whether the draft model norms the label before the verifier's head; None where it has no use for one."""
        file, name = f"models/{run.kind}/core.py", _CLASSES[run.kind]
        cls = bench.cls(file, name)
        receiver = bench.instance(cls, verifier_norm=bench.instance(None, "RMSNorm"))
        for entry in class_mro(bench.machine, cls):
            for method in entry.info.methods if isinstance(entry, ClassValue) else ():
                assert isinstance(entry, ClassValue)
                function = Function(entry.module, entry.info.methods[method], entry)
                if "verifier_lm_head(" not in entry.module.text(function.info.line, function.info.end_line):
                    continue
                handed = bench.handed(
                    function, "verifier_lm_head", receiver, verifier_last_hidden_states=given("label")
                )
                seen = {names_in(value) for value in handed}
                if seen not in ({("label",)}, {("norm(label)",)}):
                    raise NotFollowed(
                        f"{function.module.display}:{function.info.line}: what becomes of the label is not known"
                    )
                return seen == {("norm(label)",)}, function
        if find_method(bench.machine, cls, "forward") is None or self._uses_label(bench, cls):
            raise NotFollowed(f"{bench.module(file).display}: what {name} makes of the label is not known")
        return None

    def _uses_label(self, bench: Bench, cls: ClassValue) -> bool:
        """Whether the text of the class mentions the label more often than as the parameter of ``forward``."""
        text = cls.module.text(cls.info.line, cls.info.end_line)
        return text.count("verifier_last_hidden_states") > 1

    def export(self, bench: Bench, run: Run, ids: tuple[int, ...]) -> Export:
        file, cls = f"models/{run.kind}/core.py", _CLASSES[run.kind]
        making = bench.function(file, f"{cls}.from_training_args")
        made: list[dict[str, Any]] = []

        def config(machine: Any, args: Any, kwargs: dict[str, Any], site: Any) -> Any:
            made.append(dict(kwargs))
            return bench.instance(None, "the draft's config", **kwargs)

        target = bench.section("the verifier's config", {**run.target, "num_hidden_layers": run.num_layers})
        for name in ("get_verifier_config()", "from_pretrained()"):
            bench.machine.intercepts[name] = lambda machine, args, kwargs, site: target
        verifier = bench.instance(None, "the verifier")
        bench.machine.intercepts["VerifierConfig.from_config"] = lambda machine, args, kwargs, site: verifier
        bench.machine.intercepts[_CONFIGS[run.kind]] = config
        bench.machine.intercepts[f"{_CONFIGS[run.kind]}()"] = config
        arguments = {
            "verifier_name_or_path": "verifier",
            "draft_vocab_size": Unknown("the vocabulary", present=True),
            "norm_before_residual": False,
            "ttt_steps": 3,
            "target_layer_ids": None if run.layer_ids is None else list(ids),
        }
        try:
            bench.run(
                lambda: call_value(
                    bench.machine,
                    BoundMethod(making, bench.cls(file, cls)),
                    (bench.section("draft", {}),),
                    arguments,
                    None,
                ),
                making.info.name,
            )
        except NotFollowed:
            if not made:
                raise
        if not made:
            raise NotFollowed(f"{making.module.display}:{making.info.line}: the exported config is not known")
        written = {key: value for key, value in made[-1].items() if not isinstance(value, Unknown | Instance)}
        shown = {key: None for key in made[-1]} | written | {"speculators_model_type": run.kind}
        return Export(shown, "the config that training makes", (step(making, "makes the config that is saved"),))
