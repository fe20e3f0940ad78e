"""The target keeps its embedding, final norm or head under names that trainers do not look for."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.checkpoint import Checkpoint
from eaglelint.finding import Finding, Span
from eaglelint.rule import Facts, Rule

from .._messages import joined_with_and

__all__ = ["RULE"]

# Where transformers' language models keep them: plain models, and models with a language model inside.
_USUAL = ("model.", "", "model.language_model.", "language_model.model.", "language_model.")
_PLAIN = "model."
_PARTS = ("embed_tokens.weight", "norm.weight", "lm_head.weight")
# Parts of a model that have norms and heads of their own.
_OTHER_TOWERS = ("vision", "visual", "audio", "mtp", "projector", "aligner", "talker", "speech")


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    target, checkpoint = facts.target, facts.target_checkpoint
    if target is None or checkpoint is None or not checkpoint.names or facts.draft is None or facts.draft.embedded:
        return
    odd, wrapped = [], []
    for part in _PARTS:
        name = _found(checkpoint, part)
        if name is None:
            continue
        prefix = name.removesuffix(part)
        if prefix not in _USUAL:
            odd.append(name)
        elif prefix not in (_PLAIN, "") and part != "norm.weight":
            wrapped.append(name)
    span = target.span("architectures") or Span.at(checkpoint.path, 1)
    if odd:
        yield rule.finding(
            f"the target keeps its weights as {joined_with_and(odd)}: a trainer that does not know these names "
            "trains without them",
            span,
            confidence="likely",
            annotation=f"names in {checkpoint.path}",
            help="Tell the trainer these names, and check in its log that embedding, final norm and head were loaded.",
            identity=("odd", *odd),
        )
    elif wrapped:
        yield rule.finding(
            f"the target keeps its weights as {joined_with_and(wrapped)}, below the language model of a wrapper",
            span,
            confidence="possible",
            severity="note",
            annotation=f"names in {checkpoint.path}",
            help="Trainers that look for model.embed_tokens.weight need to be told, such as SpecForge with "
            "--embedding-key and --lm-head-key.",
            identity=("wrapped", *wrapped),
        )


def _found(checkpoint: Checkpoint, part: str) -> str | None:
    """The full name of one part of the language model; ``None`` where it is not clear."""
    for prefix in _USUAL:
        if f"{prefix}{part}" in checkpoint.names:
            return f"{prefix}{part}"
    found = [
        name
        for name in checkpoint.names
        if name.endswith(f".{part}") and ".layers." not in name and not any(tower in name for tower in _OTHER_TOWERS)
    ]
    return min(found, key=lambda name: (name.count("."), name)) if found else None


RULE = Rule(
    code="WGT006",
    name="unusual-target-names",
    summary="The target keeps its embedding, norm or head under names that trainers may not look for.",
    severity="warning",
    check=_check,
)
