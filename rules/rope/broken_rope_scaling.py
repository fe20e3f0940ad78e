"""The scaling of positions is incomplete, stated in two ways, or was lost on the way from the target."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.document import Node
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.artifacts.target import TargetConfig
from eaglelint.finding import Edit, Finding, Related
from eaglelint.rule import Facts, Rule

from .._edits import set_value
from .._header import stated_by
from .._messages import joined_with_and
from ._settings import bases_of, bases_of_target, scaling_of, scaling_of_target, type_of

__all__ = ["RULE"]

# What each kind of scaling cannot do without: transformers 4.57 and 5.0, modeling_rope_utils.py.
_NEEDED = {
    "linear": ("factor",),
    "dynamic": ("factor",),
    "yarn": ("factor",),
    "longrope": ("short_factor", "long_factor"),
    "llama3": ("factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"),
}
_PLAIN = (None, "default")
# Names of one kind: mrope only says how positions are counted, su is what longrope was called.
_ALIASES = {"mrope": "default", "su": "longrope", "deepseek_yarn": "yarn"}


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    if draft is None or draft.embedded or draft.kind in ("unknown", "mtp"):
        return
    scaling = scaling_of(draft)
    said = list(_within(rule, draft, scaling))
    yield from said or _lost(rule, facts, draft, scaling)


def _within(rule: Rule, draft: DraftConfig, scaling: Node | None) -> Iterator[Finding]:
    if scaling is None or not scaling.members:
        return
    kinds = [(key, node) for key in ("rope_type", "type") if (node := scaling.get(key)) is not None]
    if len(kinds) == 2 and _plainly(kinds[0][1].value) != _plainly(kinds[1][1].value):
        yield rule.finding(
            f"rope_type is {kinds[0][1].value} and type is {kinds[1][1].value}: which one counts depends on the reader",
            kinds[1][1].span,
            confidence="likely",
            severity="warning",
            related=(Related("beside", f"rope_type {kinds[0][1].value}", kinds[0][1].span),),
            help="Write the kind of scaling that the draft was trained with in both.",
            identity=("two", str(kinds[0][1].value), str(kinds[1][1].value)),
        )
        return
    kind = type_of(scaling)
    missing = [key for key in _NEEDED.get(kind or "", ()) if scaling.get(key) is None]
    if missing:
        yield rule.finding(
            f"{kind} scaling needs {joined_with_and(missing)}, which this config does not give",
            scaling.span,
            confidence="certain",
            help="Copy the whole object from the config that the draft was trained with.",
            identity=("missing", str(kind), *missing),
        )
    elif kind is None and scaling.get("factor") is not None:
        yield rule.finding(
            "the scaling has a factor and no rope_type, so that a reader stops or leaves it out",
            scaling.span,
            confidence="likely",
            help="Write the kind of scaling that the draft was trained with as rope_type.",
            identity=("no type",),
        )
    elif kind == "default" and draft.text_node("kv_lora_rank") is not None:
        yield rule.finding(
            "a rope_type of default in a draft with latent attention: releases of vLLM that take any scaling for "
            "yarn "
            "stop at the missing factor",
            scaling.span,
            confidence="possible",
            severity="note",
            help="Where an engine stops with KeyError: factor, leave the object out and keep rope_theta alone.",
            identity=("default",),
        )


def _plainly(kind: object) -> object:
    return _ALIASES.get(kind, kind) if isinstance(kind, str) else kind


def _lost(rule: Rule, facts: Facts, draft: DraftConfig, scaling: Node | None) -> Iterator[Finding]:
    """The draft promises positions that the target reaches only by scaling, and does not scale."""
    theirs = scaling_of_target(facts.target)
    kind = type_of(theirs)
    if theirs is None or kind in _PLAIN or type_of(scaling) not in _PLAIN:
        return
    original = theirs.get("original_max_position_embeddings")
    reach = stated_by(draft, "max_position_embeddings")
    if original is None or type(original.value) is not int or reach is None or reach.value <= original.value:
        return
    own_bases, their_bases = bases_of(draft), bases_of_target(facts.target)
    # The same base shows that the config was made from the target's; without it the draft was set up by itself.
    if not own_bases or not their_bases or own_bases[0].value != their_bases[-1].value:
        return
    node = draft.text_node("rope_scaling")
    yield rule.finding(
        f"the target reaches beyond {original.value} positions by {kind} scaling; the draft goes to {reach.value} "
        "and "
        "has none",
        reach.span if node is None else node.span,
        confidence="likely",
        severity="warning",
        related=(Related("target", f"rope_type {kind}", theirs.span),),
        help="Where the draft was trained with the target's scaling, write it here; else lower "
        "max_position_embeddings to what it was trained on.",
        edits=_copied(draft, facts.target, theirs),
        identity=("lost", str(kind)),
    )


def _copied(draft: DraftConfig, target: TargetConfig | None, theirs: Node) -> tuple[Edit, ...]:
    """The target's object at the place that the draft has for it, where both keep it in rope_scaling."""
    same = target is not None and target.text_node("rope_scaling") is theirs
    if not same or draft.node("max_position_embeddings") is None:
        return ()
    edit = set_value(draft.document, ("rope_scaling",), theirs.value, "unsafe", "the target's scaling")
    return () if edit is None else (edit,)


RULE = Rule(
    code="ROP002",
    name="broken-rope-scaling",
    summary="The scaling of positions is incomplete, ambiguous or lost.",
    severity="error",
    check=_check,
)
