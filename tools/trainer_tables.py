"""Writes docs/trainers.md and docs/train-to-serve.md from released packages: ``python tools/trainer_tables.py``.

The releases are those that tests/real/packages.py pins; ``--check`` compares instead of writing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from eaglelint.artifacts.draft import DraftConfig  # noqa: E402
from eaglelint.deployment import parse_assumptions  # noqa: E402
from eaglelint.derive import ServingRequest  # noqa: E402
from eaglelint.serving import EngineHandle, ProfileHandle, open_serving, open_source  # noqa: E402
from eaglelint.serving_end import judge, mended_option  # noqa: E402
from eaglelint.trainers.base import HandOver, Run  # noqa: E402
from eaglelint.trainers.bench import Step  # noqa: E402
from eaglelint.trainers.public import open_trainer  # noqa: E402
from eaglelint.trainers.stack import Engines, StackTraining, TrainerHandle  # noqa: E402
from eaglelint.trainers.weights import rules_of  # noqa: E402
from eaglelint.wiring import Evidence, Slot, compare  # noqa: E402
from tests.real import packages  # noqa: E402

N = 32
BY_HAND = ("tensorrt-llm==001e670", "llama.cpp==0274f0f")
EXPLICIT = (11, 3, 7)
TARGET = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": N}
# A draft that training starts from where the stack does not make its config itself.
BASE: Mapping[str, Any] = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "num_hidden_layers": 1,
    "hidden_size": 4096,
    "draft_vocab_size": 32000,
    "vocab_size": 128256,
}
Releases = tuple[tuple[str, packages.Package | packages.Checkout], ...]
RELEASES: Releases = (
    ("specforge", packages.SPECFORGE_0_2_0),
    ("speculators", packages.SPECULATORS_0_9_0),
    ("speculators", packages.SPECULATORS_0_5_0),
    ("speculators", packages.SPECULATORS_0_4_0),
    ("speculators", packages.SPECULATORS_0_3_0),
    ("modelopt", packages.MODELOPT_0_47_0),
    ("modelopt", packages.MODELOPT),
    ("torchspec", packages.TORCHSPEC),
    ("eagle", packages.EAGLE),
    ("dflash", packages.DFLASH),
    ("angelslim", packages.ANGELSLIM_0_5_0),
)


@dataclass(frozen=True, slots=True)
class Engine:
    """One column of the matrix."""

    title: str
    package: packages.Package
    assume: tuple[str, ...] = ()


ENGINES = (
    Engine("SGLang 0.5.9", packages.SGLANG_0_5_9),
    Engine("SGLang 0.5.23", packages.SGLANG_0_5_23),
    Engine("vLLM 0.33.0, V2 runner", packages.VLLM_0_33_0),
    Engine("vLLM 0.33.0, V1 runner", packages.VLLM_0_33_0, ("runner=v1",)),
)


class Sources:
    """Stacks and engines, opened once."""

    def __init__(self) -> None:
        self._engines: dict[str, EngineHandle] = {}

    def stack(self, name: str, pin: packages.Package | packages.Checkout) -> TrainerHandle | None:
        if isinstance(pin, packages.Checkout):
            directory = packages.checkout_directory(pin)
        else:
            directory = packages.package_directory(pin)
        if directory is None:
            return None
        top = directory if isinstance(pin, packages.Checkout) else directory.parent
        return open_trainer(f"{name}@{directory}", root=ROOT, display_root=top)

    def engine(self, pin: packages.Package) -> EngineHandle:
        key = f"{pin.name} {pin.version}"
        if key not in self._engines:
            directory = packages.package_directory(pin)
            handle = open_source(f"{pin.name}@{directory}", root=ROOT, display_root=directory.parent)
            self._engines[key] = handle
        return self._engines[key]

    def capturing(self) -> Engines:
        ends = (self.engine(packages.SGLANG_0_5_23), self.engine(packages.VLLM_0_33_0))
        return Engines(ends, ("LlamaForCausalLM",), TARGET)


def starting_draft(kind: str, ids: tuple[int, ...] | None, stack: str) -> dict[str, Any]:
    """The draft config that training starts from: with the ids where the stack's own config has them."""
    draft = dict(BASE)
    if kind in ("dflash", "domino", "dspark"):
        draft = {"architectures": ["DFlashDraftModel"], "model_type": "qwen3", "hidden_size": 4096, "block_size": 16}
        if stack != "specforge":  # which makes one of one layer where nothing is said
            draft["num_hidden_layers"] = 5
        if kind in ("domino", "dspark"):
            draft["architectures"] = ["DominoDraftModel" if kind == "domino" else "DSparkDraftModel"]
        if ids is not None:
            draft["dflash_config"] = {"target_layer_ids": list(ids)}
            draft["num_hidden_layers"] = len(ids)
    elif ids is not None:
        if stack == "angelslim":
            draft["aux_hidden_states_layer_ids"] = list(ids)
        elif stack in ("specforge", "torchspec"):
            draft["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": list(ids)}
    return draft


def train(
    handle: TrainerHandle, engines: Engines, kind: str, way: str, ids: tuple[int, ...] | None, depth: int = N
) -> StackTraining:
    target = {**TARGET, "num_hidden_layers": depth}
    run = Run(kind, depth, ids, starting_draft(kind, ids, handle.trainer.name), target, way)
    return handle.derive(run, Engines(engines.ends, engines.architectures, target))


# --- the table of each stack ---------------------------------------------------------------------------------------


def trainers_page(sources: Sources, releases: Releases = RELEASES) -> str:
    lines = [
        "# What each training stack trains on",
        "",
        "Generated by `python tools/trainer_tables.py` from the releases named below; nothing here is written by hand.",
        "Each cell names the file and line of the release that it comes from. h[k] is the residual stream after k",
        f"decoder layers; the target is a Llama of N = {N} layers. States that an engine captures are those of SGLang",
        "0.5.23 and vLLM 0.33.0. Weights: what an exporter renames and leaves out, by running it on the names of the",
        "draft's class; `midlayer.*` stands for all below. What converts foreign checkpoints is given SafeAILab's.",
        "`eaglelint wiring --trained-by STACK@PATH` shows the same for your own draft.",
    ]
    foreign = foreign_names(sources)
    for name, pin in releases:
        handle = sources.stack(name, pin)
        if handle is None:
            raise SystemExit(f"{pin} cannot be had")
        lines += ["", f"## {title(handle, pin)}"]
        for kind in handle.trainer.kinds:
            for way in handle.ways(kind):
                lines += ["", *stack_table(handle, sources.capturing(), kind, way, foreign)]
    return "\n".join(lines) + "\n"


def title(handle: TrainerHandle, pin: packages.Package | packages.Checkout) -> str:
    if isinstance(pin, packages.Checkout):
        return f"{pin.repository} at {pin.commit[:7]}"
    return f"{pin.name} {pin.version}"


_WAYS = {"dump": "from a dump", "hf": "Hugging Face target", "sglang": "SGLang", "vllm": "vLLM"}


def foreign_names(sources: Sources) -> tuple[str, ...]:
    """The tensors that SafeAILab's trainer saves: what converters of other stacks' checkpoints are given."""
    handle = sources.stack("eagle", packages.EAGLE)
    maps = () if handle is None else handle.weights(Run("eagle3", N, draft=BASE, target=TARGET))[0]
    return tuple(name for found in maps for saved in found.names for name in saved.written)


def weight_rows(handle: TrainerHandle, kind: str, foreign: tuple[str, ...]) -> Iterator[str]:
    """What exporters rename or leave out, a row for each."""
    draft = starting_draft(kind, None, handle.trainer.name)
    maps, problems = handle.weights(Run(kind, N, None, draft, TARGET, names=foreign if kind == "eagle3" else ()))
    for found in maps:
        rules = rules_of(found)
        kept = [f"`{before}` → {' and '.join(f'`{name}`' for name in after)}" for before, after, *_ in rules if after]
        lost = [f"`{before}`" for before, after, *_ in rules if not after]
        texts = [*kept, *([f"left out: {', '.join(lost)}"] if lost else [])]
        if found.added:
            texts.append(f"added: {', '.join(f'`{name}`' for name in found.added)}")
        texts += [f"`{saved.name}` only {saved.condition}" for saved in found.names if saved.condition]
        label = f"weights, {found.option}" if found.option else "weights"
        lines = (
            ", ".join(dict.fromkeys(f"`{path}:{line}`" for *_, path, line in rules)) or f"`{found.path}:{found.line}`"
        )
        yield f"| {label} | {'; '.join(texts) or 'names as they are'} | {lines} |"
    if not maps and not problems:
        yield "| weights | unknown: what saves them is not followed | |"
    for problem in problems:
        yield f"| weights | unknown: {problem.replace('|', '/')} | |"


def stack_table(
    handle: TrainerHandle, engines: Engines, kind: str, way: str, foreign: tuple[str, ...]
) -> Iterator[str]:
    default = train(handle, engines, kind, way, None)
    explicit = train(handle, engines, kind, way, EXPLICIT)
    deep = train(handle, engines, kind, way, None, 61)
    yield f"### {kind}, {_WAYS.get(way, way)}"
    yield ""
    yield "| | | read in |"
    yield "|---|---|---|"
    for label, text, where in (
        ("default ids", _ids(default, deep), _step(default.chosen)),
        ("an id means", _meaning(explicit), _capture_lines(explicit)),
        ("captured", _captured_by(default), _capture_lines(default)),
        ("fed to `fc`", _states(default), _fed_lines(default)),
        (f"ids {list(EXPLICIT)} give", _states(explicit), _fed_lines(explicit)),
        ("order", _order(explicit), _capture_lines(explicit)),
        ("label", _label(default), _fed_lines(default)),
        ("norm of the label", _norm(default), _fed_lines(default)),
        ("moved to the left", _shifts(default), _fed_lines(default)),
        ("exported keys", _keys(default, explicit), _export_lines(default)),
    ):
        yield f"| {label} | {text} | {where} |"
    yield from weight_rows(handle, kind, foreign)
    yield f"| holds | {_conditions(default)} |  |"


def _ids(default: StackTraining, deep: StackTraining) -> str:
    if default.ids is None:
        return _unknown(default)
    if not default.ids:
        return "none: the layers stand in the code"
    deeper = "" if deep.ids is None else f"; N = 61: {list(deep.ids)}"
    return f"{list(default.ids)}{deeper}"


def _meaning(explicit: StackTraining) -> str:
    found = offset_of(explicit)
    return {None: _unknown(explicit), 1: "the output of layer i, h[i+1]", 0: "the boundary i, h[i]"}.get(
        found, f"h[i{found:+d}]" if found is not None else ""
    )


def offset_of(explicit: StackTraining) -> int | None:
    """What a stack adds to an id to get its boundary; None where that is not known, or not one number."""
    ids, slots = explicit.ids, explicit.wiring.slots
    if not ids or len(ids) < len(slots) or not slots or any(slot.boundary is None for slot in slots):
        return None
    boundaries = sorted(slot.boundary for slot in slots if slot.boundary is not None)
    # A stack may keep one of the ids for the label, whichever comes last.
    for shift in (0, 1):
        if set(boundaries) <= {value + shift for value in ids}:
            return shift
    return None


def _captured_by(default: StackTraining) -> str:
    capture = default.capture
    if isinstance(capture, HandOver):
        return f"by {capture.engine}: {capture.steps[0].note}"
    return capture.steps[0].note if capture is not None and capture.steps else _unknown(default)


def _states(training: StackTraining) -> str:
    slots = training.wiring.slots
    return str(training.wiring) if slots and all(slot.known for slot in slots) else _unknown(training)


def _order(explicit: StackTraining) -> str:
    found = [slot.boundary for slot in explicit.wiring.slots]
    if len(found) < 2 or None in found:
        return _unknown(explicit)
    if found == sorted(found, key=lambda value: value or 0):
        return "ascending, whatever the list says"
    return "as the list says"


def _label(training: StackTraining) -> str:
    if training.fed is None:
        return _unknown(training)
    if not training.fed.label:
        return "tokens alone"
    return _in_n(training.wiring.label) if training.wiring.label is not None else "the target's logits"


def _in_n(slot: Slot) -> str:
    if slot.boundary is None:
        return str(slot)
    distance = N - slot.boundary
    return str(slot).replace(f"[{slot.boundary}]", "[N]" if not distance else f"[N-{distance}]")


def _norm(training: StackTraining) -> str:
    if training.fed is None:
        return _unknown(training)
    if not training.fed.label:
        return "-"
    label = training.wiring.label
    if training.fed.label_normed:
        return "by the trainer"
    return "before it is handed over" if label is None or label.form == "norm" else "none"


def _shifts(training: StackTraining) -> str:
    if training.fed is None:
        return _unknown(training)
    return ", ".join(f"`{name}` by {shift}" for name, shift in training.fed.shifts) or "unknown: not followed"


def _keys(default: StackTraining, explicit: StackTraining) -> str:
    export = explicit.export or default.export
    if export is None:
        return "unknown: the exporter is not followed"
    ids = [".".join(path) for path, value in _lists(export.config) if explicit.ids and value == list(explicit.ids)]
    written = f"ids in {', '.join(f'`{key}`' for key in ids)}; " if ids else "no ids; "
    return written + export.rule


def _lists(data: Mapping[str, Any], prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    for key, value in data.items():
        if isinstance(value, list | tuple):
            yield (*prefix, key), list(value)
        elif isinstance(value, Mapping):
            yield from _lists(value, (*prefix, key))


def _conditions(training: StackTraining) -> str:
    texts = [condition.text for condition in training.wiring.conditions]
    return f"{training.wiring.status}" + (f": {'; '.join(texts)}" if texts else "")


def _unknown(training: StackTraining) -> str:
    return f"unknown: {training.wiring.reason or '; '.join(training.problems) or 'not followed'}".replace("|", "/")


def _step(step: Step | None) -> str:
    return "" if step is None else f"`{step.path}:{step.line}`"


def _capture_lines(training: StackTraining) -> str:
    capture = training.capture
    if capture is None:
        return ""
    own = [_step(step) for step in capture.steps]
    engine = [_evidence(item) for item in training.wiring.evidence if item.slot == 0][:1]
    return ", ".join(dict.fromkeys((*own, *engine)))


def _evidence(item: Evidence) -> str:
    return f"`{item.path}:{item.line}`"


def _fed_lines(training: StackTraining) -> str:
    steps = training.fed.steps if training.fed is not None else ()
    return ", ".join(dict.fromkeys(map(_step, steps))) or _capture_lines(training)


def _export_lines(training: StackTraining) -> str:
    return ", ".join(_step(step) for step in training.export.steps) if training.export is not None else ""


# --- the matrix ----------------------------------------------------------------------------------------------------


def matrix_page(sources: Sources, releases: Releases = RELEASES) -> str:
    lines = [
        "# What is trained, and what is served",
        "",
        "Generated by `python tools/trainer_tables.py`; derived from the releases but for the columns marked †.",
        f"Each row is one stack's export for a Llama of {N} layers: its default, and the ids {list(EXPLICIT)}.",
        "A cell says whether the engine serves the draft what it was trained on; else what it serves, and the ids that",
        "make it serve that. `eaglelint wiring --trained-by STACK@PATH` shows the row of your own draft, and",
        "`eaglelint wiring --fix` writes the ids for the engine that `--serving` names.",
        "",
        "† By hand, not derived: `eaglelint engines list` names each fact and its file. Neither asks the draft's",
        "config for layers: TensorRT-LLM has an option, llama.cpp a key of the GGUF file.",
        "Of DFlash drafts nothing was read.",
        "",
        "| stack, way, ids | trained on | "
        + " | ".join(engine.title for engine in ENGINES)
        + "".join(f" | {spec.replace('==', ' ')} †" for spec in BY_HAND)
        + " |",
        f"|---|---|{'---|' * (len(ENGINES) + len(BY_HAND))}",
    ]
    for name, pin in releases:
        handle = sources.stack(name, pin)
        if handle is None:
            raise SystemExit(f"{pin} cannot be had")
        for kind in handle.trainer.kinds:
            if kind not in ("eagle3", "dflash"):
                continue
            way = first_way(handle, sources.capturing(), kind)
            if way is None:
                continue
            for ids in (None, EXPLICIT):
                training = train(handle, sources.capturing(), kind, way, ids)
                if ids is not None and training.ids != ids:
                    continue  # the stack takes no ids
                lines.append(matrix_row(sources, handle, pin, kind, way, ids, training))
    return "\n".join(lines) + "\n"


def first_way(handle: TrainerHandle, engines: Engines, kind: str) -> str | None:
    """The first way of a stack that is understood; the ways of one stack export alike."""
    ways = handle.ways(kind)
    return next((way for way in ways if train(handle, engines, kind, way, None).wiring.status != "unknown"), None)


def matrix_row(
    sources: Sources,
    handle: TrainerHandle,
    pin: packages.Package | packages.Checkout,
    kind: str,
    way: str,
    ids: tuple[int, ...] | None,
    training: StackTraining,
) -> str:
    draft = exported(training, kind)
    cells = [cell(sources, engine, kind, draft, training) for engine in ENGINES]
    cells += [by_hand(spec, training, kind, draft) for spec in BY_HAND]
    what = "default" if ids is None else str(list(ids))
    return (
        f"| {title(handle, pin)}, {kind}, {_WAYS.get(way, way)}, {what} | {_states(training)} | {' | '.join(cells)} |"
    )


def exported(training: StackTraining, kind: str) -> dict[str, Any]:
    """The config that serving sees: the exported keys, and what a draft's config needs besides."""
    config = {} if training.export is None else {k: v for k, v in training.export.config.items() if v is not None}
    base = starting_draft(kind, None, "")
    if "speculators_model_type" in config:
        names = {"eagle3": "Eagle3DraftModel", "dflash": "DFlashDraftModel"}
        base = {"architectures": [names[kind]], "speculators_config": {"algorithm": kind, "verifier": {}}}
        base["mask_token_id"] = 128255
        base["transformer_layer_config"] = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 1}
    return {**base, **config}


def cell(sources: Sources, engine: Engine, kind: str, draft: dict[str, Any], training: StackTraining) -> str:
    handle = sources.engine(engine.package)
    binding = handle.target_class("LlamaForCausalLM")
    assert binding is not None
    deployment = parse_assumptions(engine.assume)
    request = ServingRequest(binding, N, TARGET, kind, draft, deployment=deployment)
    wiring = handle.wiring(request)
    config = DraftConfig.parse("config.json", json.dumps(draft).encode())
    served = judge(handle, request, wiring, config, training.wiring)
    slots = wiring.slots
    if not slots or any(not slot.known for slot in slots):
        stops = (wiring.reason or "").startswith("it would stop")
        return f"{'no' if stops else 'unknown'}: {wiring.reason}".replace("|", "/").split(". ")[0]
    if any(not slot.known for slot in training.wiring.slots) or not training.wiring.slots:
        return f"serves {wiring}"
    if not compare(training.wiring, wiring):
        return "yes"
    place = wiring.ids_from or (served.looks_in[0] if served.looks_in else None)
    if served.mended_ids is None or place is None:
        return f"no: {wiring}"
    return f"no: {wiring}; write `{list(served.mended_ids)}` in `{'.'.join(place)}`"


def by_hand(spec: str, training: StackTraining, kind: str, draft: dict[str, Any]) -> str:
    """What an engine serves by the profile that was read by hand; where it is told its layers, what to tell it."""
    end = open_serving(spec, root=ROOT)
    assert isinstance(end, ProfileHandle)
    request = ServingRequest(end.target_class("LlamaForCausalLM") or "", N, TARGET, kind, draft)
    wiring, trained = end.wiring(request), training.wiring.slots
    if not wiring.slots or not trained or any(not slot.known for slot in trained):
        return "unknown"
    if not compare(training.wiring, wiring):
        return "yes"
    option = mended_option(end, request, wiring, training.wiring)
    if option is not None:
        return f"no: {wiring}; give `{option[0]}` {list(option[1])}"
    return f"no: {wiring}"


PAGES = {"docs/trainers.md": trainers_page, "docs/train-to-serve.md": matrix_page}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pages", nargs="*", choices=[*PAGES, []], help="docs/NAME.md; all if left out")
    parser.add_argument("--check", action="store_true", help="say which are not fresh, and write nothing")
    options = parser.parse_args()
    sources, stale = Sources(), 0
    for name in options.pages or PAGES:
        page = PAGES[name]
        path, text = ROOT / name, page(sources)
        if not options.check:
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text("utf-8") != text:
            print(f"{name} is not what is derived now: run python tools/trainer_tables.py")
            stale += 1
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
