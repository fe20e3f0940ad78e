"""A draft of a training stack's class, built for its exporters: its tensors by name, and what freezes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eaglelint.source.calls import construct
from eaglelint.source.values import ClassValue, Instance, Unknown
from eaglelint.trainers.base import Run
from eaglelint.trainers.bench import Bench, NotFollowed
from eaglelint.trainers.parameters import Named, build

__all__ = ["SIZES", "built", "calls", "class_of_draft", "draft_config", "draft_module", "freeze"]

# What every config of a language model has (transformers: LlamaConfig); the sizes do not matter for the names.
SIZES = (
    *("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size"),
    *("draft_vocab_size", "max_position_embeddings", "rms_norm_eps", "hidden_act", "rope_theta", "layer_types"),
)
_PLAIN = {
    "attention_bias": False,
    "mlp_bias": False,
    "pad_token_id": None,
    "num_hidden_layers": 1,
    "rope_scaling": None,
}
_LOADING = ("load_embedding", "load_vocab_mapping", "warm_start_draft_model")  # changes values, and nothing else


def draft_config(bench: Bench, data: Mapping[str, Any]) -> Instance:
    sizes = {name: Unknown(name, present=True) for name in SIZES}
    return bench.section("the draft's config", {**sizes, **_PLAIN, **data})


def draft_module(bench: Bench, cls: ClassValue, run: Run, name: str = "") -> tuple[Instance, tuple[Named, ...]]:
    """A draft of this class and its tensors, as an attribute of what trains it where that has a name."""
    model = construct(bench.machine, cls, (draft_config(bench, run.draft),), {})
    return model, built(bench, model, f"{name}." if name else "")


def built(bench: Bench, model: Instance, prefix: str = "") -> tuple[Named, ...]:
    """The tensors of a module.

    Raises:
        NotFollowed: What it is built of depends on what is not known.
    """
    name = model.cls.info.name if model.cls is not None else model.name
    found = bench.every(lambda: build(bench.machine, model, prefix), name)
    first: tuple[Named, ...] = found[0]
    if len(found) == 1:
        return first
    # Of several paths, what all of them build; whether it is trained is told by none.
    always = [item for item in first if all(any(item.name == other.name for other in path) for path in found)]
    unsure = Unknown("it depends on a condition")
    return tuple(
        replace(item, value=None if item.value is None else Instance(None, attrs={"requires_grad": unsure}))
        for item in always
    )


def class_of_draft(bench: Bench, file: str, run: Run, default: str) -> ClassValue:
    """The class of the draft's architecture where that file has it."""
    named = run.draft.get("architectures")
    names = [name for name in named if isinstance(name, str)] if isinstance(named, list | tuple) else []
    classes = bench.module(file).index.classes
    return bench.cls(file, next((name for name in names if name in classes), default))


def calls(bench: Bench, method: str, work: Callable[[], Any], what: str) -> bool | None:
    """Whether a piece of work calls a method of that name; None where it could not be followed that far."""
    seen: list[Any] = []
    aside = {f"{name}()": lambda machine, args, kwargs, site: None for name in _LOADING}
    noted = {f"{method}()": lambda machine, args, kwargs, site: seen.append(site)}
    before = dict(bench.machine.intercepts)
    bench.machine.intercepts |= {**aside, **noted}
    try:
        bench.every(work, what)
    except NotFollowed:
        return True if seen else None
    finally:
        bench.machine.intercepts = before
    return bool(seen)


def freeze(bench: Bench, model: Instance, method: str, frozen: bool | None, named: Sequence[Named]) -> None:
    """Do what freezes the embedding, where training does it; what is not known about it is unknown then."""
    if frozen:
        bench.call(bench.method(model, method), receiver=model)
    elif frozen is None:
        for item in named:
            if item.value is not None:
                item.value.attrs["requires_grad"] = Unknown("whether it is frozen")
