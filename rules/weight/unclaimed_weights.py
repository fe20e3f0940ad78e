"""The checkpoint has weights that a loader leaves out: below another prefix, two for one place, unannounced biases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.artifacts.checkpoint import Checkpoint, Tensor
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Finding, Related, Span
from eaglelint.rule import Facts, Rule

from .._built import under_another_name
from .._header import layer_tensors, tensor_row
from .._messages import joined_with_and

if TYPE_CHECKING:
    from eaglelint.draft_modules import DraftModules
    from eaglelint.exported import WeightMap

__all__ = ["RULE"]

# Models whose attention has biases in q, k and v without any flag (transformers: Qwen2Attention).
_BIASED_MODELS = ("qwen2",)
_FC_FLAGS = ("eagle_fc_bias", "fc_bias", "bias", "fusion_bias")


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, checkpoint = facts.draft, facts.checkpoint
    if draft is None or checkpoint is None or draft.embedded or draft.kind in ("unknown", "mtp"):
        return
    for built in facts.built:
        yield from _by_loader(rule, draft, checkpoint, built, facts.weight_maps)
    groups: tuple[tuple[list[Tensor], tuple[str, ...], str], ...] = (
        (_fc(checkpoint), _FC_FLAGS, "EAGLE heads of vLLM read eagle_fc_bias, EAGLE-3 heads of SGLang bias"),
        (_of_layers(checkpoint, "self_attn", _is_biased(draft)), ("attention_bias", "qkv_bias", "bias"), ""),
        (_of_layers(checkpoint, "mlp", False), ("mlp_bias", "bias"), ""),
    )
    for tensors, flags, remark in groups:
        if not tensors or any(_is_true(draft, flag) for flag in flags):
            continue
        names = ", ".join(tensor.name for tensor in tensors[:3]) + (", ..." if len(tensors) > 3 else "")
        span = _flag_span(draft, flags) or draft.key_span("architectures") or draft.span()
        yield rule.finding(
            f"the checkpoint has {names}, and the config does not say so ({flags[0]}): a loader leaves biases that "
            f"it does not expect out, or stops{'; ' + remark if remark else ''}",
            span,
            confidence="likely",
            # SGLang builds the fc of EAGLE with a bias in any case.
            severity="warning" if remark and draft.kind == "eagle" else "error",
            related=tuple(map(tensor_row, tensors[:2])),
            help=f"Write {flags[0]} true where the engine reads that, or train without the bias.",
            identity=(flags[0], *(tensor.name for tensor in tensors[:3])),
        )


def _by_loader(
    rule: Rule, draft: DraftConfig, checkpoint: Checkpoint, built: DraftModules, maps: tuple[WeightMap, ...]
) -> Iterator[Finding]:
    """What the loader of the engine's draft class, followed with the checkpoint's names, leaves out or overwrites."""
    from eaglelint.draft_modules import modules_of

    place = draft.key_span("architectures") or draft.span()
    loader = (Related("loader", f"{built.cls}.load_weights", Span.at(*built.loader)),) if built.loader[0] else ()
    left = under_another_name(built, modules_of(checkpoint))
    if left:
        name, module = next(iter(left.items()))
        theirs, own = _prefixes(name, module.path)
        yield rule.finding(
            f"the loader of {built.cls} in {built.engine} leaves out {name}.weight"
            f"{f' and {len(left) - 1} more that were asked for' if len(left) > 1 else ''}: the class has it as "
            f"{module.path}, and no name below {theirs} is turned into one below {own}; those weights stay as "
            "initialised",
            place,
            confidence="certain",
            related=(
                *loader,
                Related("built", module.path, Span.at(module.file, module.line)),
                *_renamed(maps, f"{name}.weight"),
            ),
            help=f"Rename {theirs} to {own.removeprefix('model.')} in the checkpoint, or serve with a release that "
            f"takes its names.{_otherwise(maps, name, module.path)}",
            identity=("left out", built.engine, *left),
        )
    sources: dict[str, list[str]] = {}
    for name, path in built.loaded or ():
        sources.setdefault(path, []).append(name)
    for path, names in sources.items():
        if len(set(names)) > 1:
            shown = joined_with_and(f"{name}.weight" for name in names)
            yield rule.finding(
                f"the loader of {built.cls} in {built.engine} puts {shown} into {path}, one over the other: "
                "the last one stays",
                place,
                confidence="certain",
                related=loader,
                help="Keep the one that belongs there, or serve with a class that has a place for each.",
                identity=("overwritten", built.engine, path, *names),
            )


def _renamed(maps: tuple[WeightMap, ...], name: str) -> Iterator[Related]:
    """The exporters of the stack that trained the draft which write a tensor under this name."""
    for weights in maps:
        found = weights.before(name)
        if found is not None:
            before, saved = found
            condition = f", {saved.condition}" if saved.condition else ""
            yield Related("renamed", f"{before} by {weights.label}{condition}", Span.at(saved.path, saved.line))


def _otherwise(maps: tuple[WeightMap, ...], name: str, path: str) -> str:
    """The way of exporting that writes the name which the class has, as a sentence."""
    before = {found[1].name for weights in maps if (found := weights.before(f"{name}.weight")) is not None}
    for weights in maps:
        after = weights.after(f"{name}.weight")
        others = [saved.written[0] for saved in weights.names if saved.name in before and len(saved.written) == 1]
        for written in (*others, *(() if after is None else (after[0],))):
            if f".{path}.weight".endswith(f".{written}"):
                return f" {weights.label} writes it as {written}."
    return ""


def _prefixes(name: str, path: str) -> tuple[str, str]:
    """What two names of one module begin with, as far as they differ."""
    ours, theirs = name.split("."), path.split(".")
    while len(ours) > 1 and len(theirs) > 1 and ours[-1] == theirs[-1]:
        ours, theirs = ours[:-1], theirs[:-1]
    return ".".join(ours), ".".join(theirs)


def _fc(checkpoint: Checkpoint) -> list[Tensor]:
    found = checkpoint.find("fc.bias")
    return [] if found is None else [found]


def _of_layers(checkpoint: Checkpoint, part: str, expected: bool) -> list[Tensor]:
    if expected:
        return []
    return [
        tensor
        for _, name, tensor in layer_tensors(checkpoint)
        if name.startswith(f"{part}.") and name.endswith("_proj.bias")
    ]


def _is_biased(draft: DraftConfig) -> bool:
    node = draft.text_node("model_type")
    return node is not None and isinstance(node.value, str) and node.value.startswith(_BIASED_MODELS)


def _is_true(draft: DraftConfig, flag: str) -> bool:
    node = draft.text_node(flag)
    return node is not None and node.value is True


def _flag_span(draft: DraftConfig, flags: tuple[str, ...]) -> Span | None:
    return next((node.span for flag in flags if (node := draft.text_node(flag)) is not None), None)


RULE = Rule(
    code="WGT005",
    name="unclaimed-weights",
    summary="A loader leaves weights of the checkpoint out, or puts two into one place.",
    severity="error",
    check=_check,
)
