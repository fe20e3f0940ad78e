"""ModelOpt's dumps: what the scripts of its checkout write, and what the package makes of a dump.

The scripts stand in examples/ beside the package, which its wheel leaves out. Read at a2fbac7; the rest is derived.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eaglelint.source.calls import call_value
from eaglelint.source.lookup import get_attribute
from eaglelint.source.operators import whole
from eaglelint.source.values import BoundMethod, ClassValue, Function, Instance, Norm, Tensor, Unknown
from eaglelint.trainers.base import Captured, Fed, HandOver, Run, step
from eaglelint.trainers.bench import Bench, NotFollowed, given, names_in, order_in
from eaglelint.trainers.stacks import make_stack

__all__ = ["SCRIPTS", "dumped", "loaded", "scripts_of"]

_DIRECTORY = "examples/speculative_decoding/collect_hidden_states"
_BY_HF = f"{_DIRECTORY}/compute_hidden_states_hf.py"
_BY_VLLM = f"{_DIRECTORY}/compute_hidden_states_vllm.py"
SCRIPTS: Mapping[str, str] = {_BY_HF: "dump", _BY_VLLM: "vllm"}
"""The scripts, and the way of training that each stands for."""

_DATASET = "torch/speculative/eagle/utils.py"
_PLUGINS = "torch/speculative/plugins"


def scripts_of(bench: Bench) -> tuple[str, ...]:
    """The ways of dumping whose scripts the checkout has."""
    return tuple(way for file, way in SCRIPTS.items() if bench.has(file))


def dumped(bench: Bench, run: Run) -> Captured | HandOver:
    """What the script of that way captures for a run's layers.

    Raises:
        NotFollowed: The checkout, or the script, is not there, or cannot be followed.
    """
    file = next(file for file, way in SCRIPTS.items() if way == run.way)
    if not bench.has(file):
        raise NotFollowed(
            "a dump is written by scripts outside the package: pass the one in use with --training, or ModelOpt's "
            "checkout, which has its own, with --trained-by modelopt@PATH"
        )
    main = bench.function(file, "main")
    options = bench.call(bench.function(file, "parse_args"))
    if not isinstance(options, Instance):
        raise NotFollowed(f"{main.module.display}: the command line's defaults are not known")
    layers = _layers(run)
    if layers is not None:
        options.attrs["aux_layers"] = layers
    flag = f" with --aux-layers {layers}" if layers is not None else ""
    proviso = f"if {main.module.display} wrote the dump{flag}"
    if run.way == "vllm":
        return _handed(bench, main, options, proviso)
    bench.call(main, options)
    saved = _last_saved(bench, main)
    states, last = whole(saved.get("aux_hidden_states")), whole(saved.get("hidden_states"))
    assumptions = tuple(sorted(bench.machine.used_assumptions))
    return Captured(
        tuple(bench.slot(part) for part in bench.parts(states)),
        bench.slot(last) if isinstance(last, Tensor) else None,
        (step(main, "picks from the target's hidden states"),),
        assumptions,
        (proviso,),
    )


def _layers(run: Run) -> str | None:
    """What ``--aux-layers`` has to be for the run's layers; None where its default is."""
    if run.layer_ids is not None:
        return ",".join(map(str, run.layer_ids))
    return None if run.kind == "eagle3" else "dflash"


def _handed(bench: Bench, main: Function, options: Instance, proviso: str) -> HandOver:
    """The ids that vLLM is started with: the last of them stands for the target's final state."""
    engines: list[Any] = []

    def engine(machine: Any, args: Any, kwargs: dict[str, Any], site: Any) -> Any:
        engines.append(kwargs.get("speculative_config"))
        return Unknown("vLLM", present=True)

    bench.machine.intercepts["vllm.LLM"] = engine
    try:
        bench.call(main, options)
    except NotFollowed:
        if not engines:
            raise
    config = engines[-1] if engines else None
    for key in ("draft_model_config", "hf_config", "eagle_aux_hidden_state_layer_ids"):
        config = config.get(key) if isinstance(config, dict) else None
    ids = bench.ids(config, main)
    note = f"starts vLLM with {list(ids)}, the last for the label"
    return HandOver("vllm", "eagle3", ids, (step(main, note),), label=True, provisos=(proviso,))


def _last_saved(bench: Bench, main: Function) -> dict[str, Any]:
    saved = [event.value for event in bench.events if event.kind == "save" and isinstance(event.value, dict)]
    if not saved:
        raise NotFollowed(f"{main.module.display}:{main.info.line}: what is saved is not known")
    return saved[-1]


def loaded(bench: Bench, run: Run, count: int) -> Fed:
    """What becomes of the states of a dump: the script's own keys, the dataset, and the draft's input.

    Raises:
        NotFollowed: One of these is not there or cannot be followed.
    """
    states = [given(f"state {index}") for index in range(count)]
    label = given("label")
    saved, steps = _saved(bench, run, states, label)
    file, name = _DATASET, "OfflineSupervisedDataset"
    reader = bench.function(file, f"{name}.__getitem__")
    bench.machine.intercepts["torch.load"] = lambda machine, args, kwargs, site: dict(saved)
    files = Unknown("the files", present=True)
    dataset = bench.instance(bench.cls(file, name), dumped_files=files, answer_only_loss=False, tokenizer=None)
    example = bench.call(reader, Unknown("an index", present=True), receiver=dataset)
    if not isinstance(example, dict):
        raise NotFollowed(f"{reader.module.display}:{reader.info.line}: the example is not known")
    steps.append(step(reader, "takes a file apart"))
    outputs, made = _outputs(bench, run, example)
    steps.append(made)
    order, normed = order_in(get_attribute(bench.machine, outputs, _FED_AS[run.kind == "eagle3"]), reader)
    last, place = _label(bench, run, example, outputs)
    steps.append(place)
    found = names_in(last)
    if found not in (("label",), ("norm(label)",)):
        raise NotFollowed(f"{reader.module.display}:{reader.info.line}: which state is the label is not known")
    return Fed(order, normed, True, found == ("norm(label)",), (), tuple(dict.fromkeys(steps)))


_FED_AS = {True: "aux_hiddens", False: "target_hidden"}


def _saved(bench: Bench, run: Run, states: list[Tensor], label: Tensor) -> tuple[dict[str, Any], list[Any]]:
    """What stands in a file. vLLM's states come back as ``[tokens, layers, features]``."""
    from eaglelint.source.values import Cat

    if run.way != "vllm":
        return {
            "input_ids": Unknown("ids", present=True),
            "hidden_states": label,
            "aux_hidden_states": Tensor.of(Cat(tuple(states))) if len(states) > 1 else states[0],
        }, []
    main = bench.function(_BY_VLLM, "main")
    options = bench.call(bench.function(_BY_VLLM, "parse_args"))
    options.attrs["aux_layers"] = _layers(run) or "dflash"
    held = {"hidden_states": make_stack([*states, label], 1), "token_ids": Unknown("ids", present=True)}
    bench.machine.intercepts["load_hidden_states()"] = lambda machine, args, kwargs, site: dict(held)
    bench.call(main, options)
    return _last_saved(bench, main), [step(main, "takes vLLM's states apart and saves them")]


def _outputs(bench: Bench, run: Run, example: dict[str, Any]) -> tuple[Any, Any]:
    """The target's outputs as the draft's forward pass takes them from an example."""
    file, name = (
        (f"{_PLUGINS}/modeling_eagle.py", "EagleBaseModelOutput")
        if run.kind == "eagle3"
        else (f"{_PLUGINS}/modeling_dflash.py", "DFlashBaseModelOutput")
    )
    take = bench.function(file, f"{name}.from_offline_dict")
    cls: ClassValue = bench.cls(file, name)
    made = bench.run(lambda: call_value(bench.machine, BoundMethod(take, cls), (example,), {}, None), take.info.name)
    return made, step(take, "takes the target's outputs from an example")


def _label(bench: Bench, run: Run, example: dict[str, Any], outputs: Any) -> tuple[Any, Any]:
    """The state that logits are made of, normed once more where the dump says that it was not."""
    norm = bench.function(f"{_PLUGINS}/modeling_final_norm.py", "_maybe_apply_base_final_norm")
    last = example.get("base_model_hidden_states")
    made = bench.call(norm, last, example, bench.instance(None, "RMSNorm"))
    return whole(made), step(norm, "norms the label" if isinstance(_term(made), Norm) else "takes the label as it is")


def _term(value: Any) -> Any:
    value = whole(value)
    return value.single() if isinstance(value, Tensor) else None
