"""The target's final norm is applied by a class that multiplies with its weight in another way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._training import row
from ._gains import ONE_MORE_CLASSES, one_more

if TYPE_CHECKING:
    from eaglelint.practice import HeadUse, NormClass

__all__ = ["RULE"]

# Classes of transformers 5.24.0 that multiply with the weight as it is, of which trainers make use.
_PLAIN_CLASSES = frozenset(
    {"LlamaRMSNorm", "MistralRMSNorm", "Qwen2RMSNorm", "Qwen3MoeRMSNorm", "Qwen3RMSNorm", "RMSNorm"}
)


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    practice, target = facts.practice, facts.target
    if facts.draft is None or practice is None or target is None:
        return
    kind = one_more(target)
    known = isinstance(target.data.get("model_type"), str)
    seen = set()
    for use in practice.heads:
        norm = use.norm
        if norm is None or not use.norms or not known or norm.name in seen:
            continue
        gain = _gain(norm)
        if gain is None or (gain == "1+w") == (kind is not None) or norm.adjusted:
            continue
        seen.add(norm.name)
        yield _finding(rule, use, norm, gain, kind or str(target.data.get("model_type")))


def _gain(norm: NormClass) -> str | None:
    if norm.gain is not None:
        return norm.gain
    if norm.name in ONE_MORE_CLASSES:
        return "1+w"
    return "w" if norm.name in _PLAIN_CLASSES else None


def _finding(rule: Rule, use: HeadUse, norm: NormClass, gain: str, kind: str) -> Finding:
    own, other = ("1 + weight", "its weight") if gain == "w" else ("its weight", "1 + weight")
    return rule.finding(
        f"{norm.name} multiplies with {other}, and the final norm of {kind} with {own}: with the target's weight it "
        "makes other logits than the target's",
        norm.place.span if norm.place is not None else use.place.span,
        confidence="likely",
        annotation=f"multiplies with {other}",
        related=row("logits", use.place),
        help="Take the norm's class from the target's own model, or "
        + ("add one to the weight when it is loaded." if gain == "w" else "leave the weight as it is."),
        identity=("gain", norm.name, kind),
    )


RULE = Rule(
    code="NRM004",
    name="foreign-norm-gain",
    summary="The target's final norm is applied with a gain of another family.",
    severity="error",
    check=_check,
)
