"""The draft's checkpoint lacks a tensor that nobody else can provide."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.checkpoint import Checkpoint
from eaglelint.artifacts.decoder_layers import place_in_layers
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Finding, Related, Span
from eaglelint.rule import Facts, Rule

from .._header import layers_of, state_counts, stated_by, target_width
from .._messages import joined_with_and, switched_off, takes_auxiliary_states

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, checkpoint = facts.draft, facts.checkpoint
    if draft is None or checkpoint is None or not checkpoint.complete or draft.kind in ("unknown", "mtp"):
        return
    yield from _lost(rule, facts, draft, checkpoint)
    missing = list(_missing(facts, draft, checkpoint))
    if not missing:
        return
    names = [name for name, _ in missing]
    yield rule.finding(
        f"{checkpoint.path} has no {joined_with_and(names, 'and no')}: {'; '.join(why for _, why in missing)}",
        draft.key_span("architectures") or draft.span(),
        confidence="certain",
        annotation=f"{len(checkpoint.tensors)} tensors in the checkpoint",
        related=tuple(_left_out(facts, names)),
        help="Save the checkpoint with all of the draft's own weights.",
        identity=("missing", *names),
    )


def _left_out(facts: Facts, names: list[str]) -> Iterator[Related]:
    """The exporters of the stack that trained the draft which leave out what is missing."""
    for weights in facts.weight_maps:
        for saved in weights.left_out:
            layer = place_in_layers(saved.name) is not None and "decoder layer" in names
            if layer or any(f".{saved.name}".endswith(f".{name}") for name in names):
                text = f"{saved.name} by {weights.label}{f', {saved.condition}' if saved.condition else ''}"
                yield Related("left out", text, Span.at(saved.path, saved.line))


def _lost(rule: Rule, facts: Facts, draft: DraftConfig, checkpoint: Checkpoint) -> Iterator[Finding]:
    """What training changed and the exporter leaves out: served is the target's, as far as an engine has one."""
    for weights in facts.weight_maps:
        for saved in weights.left_out:
            module = saved.name.rpartition(".")[0].rpartition(".")[2]
            if not saved.trained or saved.condition or not module or _has(checkpoint, module):
                continue
            unless = f", {' and '.join(weights.provisos)}" if weights.provisos else ""
            yield rule.finding(
                f"{saved.name} was trained{unless}, and {weights.label} leaves it out: served is the target's, or one "
                "that nothing fills",
                draft.key_span("architectures") or draft.span(),
                confidence="possible" if weights.provisos else "likely",
                severity="note" if weights.provisos else "warning",
                annotation=f"{checkpoint.path} has none",
                related=(
                    Related("left out", saved.name, Span.at(saved.path, saved.line)),
                    *((Related("built", module, Span.at(*saved.built)),) if saved.built[0] else ()),
                ),
                help=f"Export it with the rest, or keep {module} frozen in training.",
                identity=("lost", saved.name),
            )


def _missing(facts: Facts, draft: DraftConfig, checkpoint: Checkpoint) -> Iterator[tuple[str, str]]:
    if not layers_of(checkpoint):
        yield "decoder layer", "a draft has at least one of its own"
    if takes_auxiliary_states(draft) and not switched_off(draft) and not _has(checkpoint, "fc"):
        width = target_width(draft, facts.target) or stated_by(draft, "hidden_size")
        own = stated_by(draft, "hidden_size")
        joined = [] if width is None else [count * width.value for count, _, _ in state_counts(draft)]
        # DSpark and its kin name the projection otherwise; where the widths are equal, engines skip it.
        if draft.kind in ("eagle3", "peagle") and (own is None or own.value not in joined):
            yield "fc.weight", "without it the captured states do not reach the draft"
    small, full = stated_by(draft, "draft_vocab_size"), stated_by(draft, "vocab_size")
    if small is not None and full is not None and small.value != full.value and not _has(checkpoint, "lm_head"):
        yield (
            "lm_head.weight",
            f"the draft's vocabulary has {small.value} of {full.value} tokens, so the target's head cannot stand in",
        )


def _has(checkpoint: Checkpoint, module: str) -> bool:
    """Whether there is a module of this name, whatever its weights are called once they are quantised."""
    return any(module in name.split(".") for name in checkpoint.names)


RULE = Rule(
    code="WGT001",
    name="missing-weights",
    summary="The draft's checkpoint lacks weights that nobody else can provide.",
    severity="error",
    check=_check,
)
