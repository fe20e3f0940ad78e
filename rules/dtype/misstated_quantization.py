"""The config says that the weights are quantised, and the checkpoint holds plain ones."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from eaglelint.artifacts.checkpoint import Tensor
from eaglelint.artifacts.document import Node
from eaglelint.finding import Finding, Related
from eaglelint.rule import Facts, Rule

from .._header import layer_tensors, tensor_row

__all__ = ["RULE"]

# Where quantisers list what they left as it was: compressed-tensors, ModelOpt, Quark, transformers.
_LEFT_OUT = ("ignore", "exclude", "exclude_modules", "modules_to_not_convert", "ignored_layers")


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, checkpoint = facts.draft, facts.checkpoint
    if draft is None or checkpoint is None or not checkpoint.complete or draft.embedded:
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
    summary="The config says that the weights are quantised, and they are not.",
    severity="error",
    check=_check,
)
