"""Draft and target differ in width, and the config or the checkpoint does not provide for it."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Finding, Safety
from eaglelint.rule import Facts, Rule

from .._edits import set_value
from .._header import config_row, stated_by, stated_by_target, takes_states_of
from .._messages import takes_auxiliary_states

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, target = facts.draft, facts.target
    if draft is not None and draft.kind == "unknown":
        yield from _standing_alone(rule, facts, draft)
    if draft is None or draft.embedded or draft.kind in ("unknown", "mtp"):
        return
    own, other = stated_by(draft, "hidden_size"), stated_by_target(target, "hidden_size")
    if other is None:
        return
    said = stated_by(draft, "target_hidden_size")
    if said is not None and said.value != other.value:
        edit = set_value(draft.document, _path(facts), other.value, "safe", "the target's hidden_size")
        yield rule.finding(
            f"target_hidden_size is {said.value}, and the target's hidden_size is {other.value}",
            said.span,
            confidence="certain",
            annotation=f"the target has {other.value}",
            related=(config_row("target", other),),
            help="Check that this is the target that the draft was trained for.",
            # Where the checkpoint bears the config out, it is the target that is the wrong one.
            edits=() if edit is None or takes_states_of(said.value, draft, facts.checkpoint) else (edit,),
            identity=("said", str(said.value), str(other.value)),
        )
        return
    if own is None or own.value == other.value:
        return
    if takes_auxiliary_states(draft) and said is None and not takes_states_of(own.value, draft, facts.checkpoint):
        made_for_it = takes_states_of(other.value, draft, facts.checkpoint)
        safety: Safety = "safe" if made_for_it else "unsafe"
        edit = set_value(draft.document, _path(facts), other.value, safety, "the width of the target's states")
        yield rule.finding(
            f"the draft is {own.value} wide and the target {other.value}, and the config has no target_hidden_size: "
            f"engines then build fc for states of {own.value}",
            own.span,
            confidence="likely",
            annotation=f"the target has {other.value}",
            related=(config_row("target", other),),
            help=f"Write target_hidden_size {other.value}.",
            edits=() if edit is None else (edit,),
            identity=("unsaid", str(own.value), str(other.value)),
        )
    checkpoint = facts.checkpoint
    if checkpoint is not None and checkpoint.complete and checkpoint.name_of("embed_tokens.weight") is None:
        yield rule.finding(
            f"the checkpoint has no embed_tokens, and the target's embedding is {other.value} wide "
            f"where the draft takes {own.value}: it cannot be shared",
            own.span,
            confidence="certain",
            related=(config_row("target", other),),
            help="Save the draft's own embedding with the checkpoint.",
            identity=("embedding", str(own.value), str(other.value)),
        )


def _standing_alone(rule: Rule, facts: Facts, draft: DraftConfig) -> Iterator[Finding]:
    """A whole model of another width as the draft: SGLang joins hidden states of both as requests are batched."""
    algorithm = None if facts.launch is None else facts.launch.get("algorithm")
    if algorithm is None or (algorithm.value or "").upper() != "STANDALONE":
        return
    own, other = stated_by(draft, "hidden_size"), stated_by_target(facts.target, "hidden_size")
    if own is None or other is None or own.value == other.value:
        return
    yield rule.finding(
        f"{algorithm.flag} {algorithm.value} with a draft {own.value} wide and a target {other.value} wide: as it "
        "merges batches, SGLang 0.5.9 joins hidden states of both widths, which this algorithm does not use, and "
        "stops; 0.5.23 carries none along",
        algorithm.span,
        confidence="possible",
        severity="warning",
        related=(config_row("draft", own), config_row("target", other)),
        help="Take a release that carries no states along, or a draft as wide as the target.",
        identity=("standalone", str(own.value), str(other.value)),
    )


def _path(facts: Facts) -> tuple[str, ...]:
    """Where target_hidden_size stands, or belongs: at the top level, unless the config has it elsewhere."""
    draft = facts.draft
    assert draft is not None
    for section in ("eagle_config", "dflash_config"):
        if draft.node("target_hidden_size") is None and draft.node(section, "target_hidden_size") is not None:
            return (section, "target_hidden_size")
    return ("target_hidden_size",)


RULE = Rule(
    code="SHP004",
    name="mismatched-width",
    summary="Draft and target differ in width, and nothing provides for it.",
    severity="error",
    check=_check,
)
