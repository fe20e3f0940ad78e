"""The weights are taken for quantised, by the draft's config or by an engine that hands on its target's."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from eaglelint.artifacts.checkpoint import Tensor
from eaglelint.artifacts.document import Node
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Finding, Related
from eaglelint.rule import Facts, Rule

from .._header import layer_tensors, tensor_row
from .._messages import joined_with_and

__all__ = ["RULE"]

# Where quantisers list what they left as it was: compressed-tensors, ModelOpt, Quark, transformers.
_LEFT_OUT = ("ignore", "exclude", "exclude_modules", "modules_to_not_convert", "ignored_layers")


# Methods whose layers are built by a file that says how the weights are packed, so that none are made on the fly:
# get_config_filenames in SGLang 0.5.9, srt/layers/quantization.
_BY_A_FILE = ("awq", "awq_marlin", "gptq", "gptq_marlin", "marlin", "moe_wna16")


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, checkpoint = facts.draft, facts.checkpoint
    if draft is None or draft.embedded:
        return
    yield from _inherited(rule, facts, draft)
    yield from _handed_on(rule, facts, draft)
    if checkpoint is None or not checkpoint.complete:
        return
    said = draft.text_node("quantization_config")
    if said is None or said.kind != "object":
        return
    weights = [tensor for _, name, tensor in layer_tensors(checkpoint) if name.endswith("_proj.weight")]
    plain = [tensor for tensor in weights if tensor.is_plain]
    if not plain or len(plain) < len(weights) or _has_scales(checkpoint.names):
        return
    listed = _left_out(said.value)
    unlisted = [tensor for tensor in plain if not any(_covers(pattern, tensor.name) for pattern in listed)]
    if not unlisted:
        return
    yield rule.finding(
        f"quantization_config says {_method(said)}, and all {len(plain)} projections in the checkpoint are stored in "
        f"{unlisted[0].dtype}: an engine builds quantised layers and finds no weights that fit",
        draft.key_span("quantization_config") or said.span,
        confidence="likely",
        related=_rows(unlisted, facts),
        help="Leave quantization_config out of the draft's config, or list the draft's layers among those that were "
        "left as they are.",
        identity=(_method(said),),
    )


def _inherited(rule: Rule, facts: Facts, draft: DraftConfig) -> Iterator[Finding]:
    """An engine that builds the draft with the quantisation of its target."""
    checkpoint = facts.checkpoint
    said = None if facts.target is None else facts.target.text_node("quantization_config")
    if said is None or draft.kind == "mtp" or (checkpoint is not None and _has_scales(checkpoint.names)):
        return  # layers for prediction lie in the target's checkpoint, and are quantised with it
    for found in facts.draft_classes:
        if not found.inherited:
            continue
        first = found.inherited[0]
        weights = [] if checkpoint is None else [tensor for _, _, tensor in layer_tensors(checkpoint)]
        plain = [tensor for tensor in weights if tensor.is_plain]
        paths = joined_with_and(item.path for item in found.inherited[:3])
        yield rule.finding(
            f"{found.engine} builds {paths} of the draft with the target's quantisation, {_method(said)}, and the "
            f"draft {'is stored in ' + plain[0].dtype if plain else 'names none'}: its loader asks for scales or "
            "packed weights that are not there",
            draft.key_span("architectures") or draft.span(),
            confidence="certain" if plain else "likely",
            annotation=f"not quantised, and built as {_method(said)}",
            related=(
                Related("built", first.path, first.place.span),
                Related("target", f"quantised: {_method(said)}", said.span),
            ),
            help="Serve with a release that asks for the draft's own quantisation, or quantise the draft as the "
            "target is.",
            identity=("inherited", found.engine, _method(said)),
        )


def _handed_on(rule: Rule, facts: Facts, draft: DraftConfig) -> Iterator[Finding]:
    """The command says how the target is quantised, and SGLang takes it for the draft too."""
    launch, checkpoint = facts.launch, facts.checkpoint
    # srt/configs/model_config.py:232 (0.5.5), server_args.py:882 (0.5.9), arg_groups/serving_hook.py:685 (0.5.23).
    if launch is None or launch.engine != "sglang" or launch.get("draft_quantization") is not None:
        return
    said = launch.get("quantization")
    if said is None or said.value is None or said.value.lower() not in _BY_A_FILE or launch.get("draft") is None:
        return
    if draft.text_node("quantization_config") is not None or (checkpoint and _has_scales(checkpoint.names)):
        return
    yield rule.finding(
        f"{said.flag} {said.value} holds for the draft too, which is not quantised: sglang looks for a file that says "
        "how its weights are packed, and stops without one",
        said.span,
        confidence="likely",
        annotation="handed on to the draft",
        help=f"Leave {said.flag} out, as the target's config says it by itself, or add "
        "--speculative-draft-model-quantization unquant, which releases since 0.5.9 know.",
        identity=("handed on", said.value.lower()),
    )


def _rows(plain: list[Tensor], facts: Facts) -> tuple[Related, ...]:
    target = facts.target
    theirs = None if target is None else target.text_node("quantization_config")
    rows = tuple(tensor_row(tensor) for tensor in plain[:1])
    return rows if theirs is None else (*rows, Related("target", f"quantised: {_method(theirs)}", theirs.span))


def _method(said: Node) -> str:
    node = said.get("quant_method") or said.get("quant_algo")
    return str(node.value)[:40] if node is not None and isinstance(node.value, str) else "quantised weights"


def _has_scales(names: frozenset[str]) -> bool:
    return any(name.endswith(("_scale", "_scale_inv", ".scales", "weight_packed", ".qweight")) for name in names)


def _left_out(config: Any) -> list[str]:
    found: list[str] = []
    for key in _LEFT_OUT:
        value = config.get(key) if isinstance(config, dict) else None
        found += [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
    return found


def _covers(pattern: str, name: str) -> bool:
    """Whether an entry names this tensor: a module, a glob, or an expression after ``re:`` (taken to cover all)."""
    if pattern.startswith("re:"):
        return True
    module = name.removesuffix(".weight")
    return module == pattern or module.startswith(f"{pattern}.") or pattern in module or fnmatchcase(module, pattern)


RULE = Rule(
    code="DTY002",
    name="misstated-quantization",
    summary="The weights are taken for quantised, by the config or by the engine, and are not.",
    severity="error",
    check=_check,
)
