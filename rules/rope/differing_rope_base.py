"""The base of the rotary embedding is stated twice and differently, or is not the target's."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Edit, Finding, Related
from eaglelint.rule import Facts, Rule

from .._edits import replace_value
from ._settings import RopeBase, bases_of, bases_of_target

__all__ = ["RULE"]

# What transformers takes for Llama and its kin where a config says nothing.
_CLASS_DEFAULT = 10_000


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    if draft is None or draft.embedded or draft.kind in ("unknown", "mtp"):
        return
    own, other = bases_of(draft), bases_of_target(facts.target)
    if own and (differing := next((base for base in own if base.value != own[0].value), None)) is not None:
        yield rule.finding(
            f"{own[0].key} is {own[0].value:.15g} and {differing.key} is {differing.value:.15g}: transformers 4 and "
            "engines that follow it read the first, transformers 5 the second",
            own[0].span,
            confidence="certain",
            annotation=f"{differing.value:.15g} in {differing.key}",
            related=(Related("beside", f"{differing.key} {differing.value:.15g}", differing.span),),
            help="Write the base that the draft was trained with in both places.",
            edits=_as_the_target(own, other),
            identity=("two", f"{own[0].value:.15g}", f"{differing.value:.15g}"),
        )
    elif own and other and all(base.value != own[0].value for base in other):
        default = " (the default of the class)" if own[0].value == _CLASS_DEFAULT else ""
        yield rule.finding(
            f"{own[0].key} is {own[0].value:.15g}{default}, and the target's is {other[-1].value:.15g}",
            own[0].span,
            confidence="possible",
            severity="note",
            annotation=f"the target has {other[-1].value:.15g}",
            related=(Related("target", f"{other[-1].key} {other[-1].value:.15g}", other[-1].span),),
            help="A draft may be trained with a base of its own. Check that the value was not lost on the way from "
            "the trainer to this config.",
            identity=("target", f"{own[0].value:.15g}", f"{other[-1].value:.15g}"),
        )


def _as_the_target(own: tuple[RopeBase, ...], other: tuple[RopeBase, ...]) -> tuple[Edit, ...]:
    """The target's base everywhere, where one place has it already: drafts are mostly set up like their target."""
    bases = {base.value for base in other}
    if len(bases) != 1 or not any(base.value in bases for base in own):
        return ()
    wrong = [base for base in own if base.value not in bases]
    return tuple(replace_value(base.node, other[0].node.value, "unsafe", "the target's base") for base in wrong[:1])


RULE = Rule(
    code="ROP001",
    name="differing-rope-base",
    summary="The base of the rotary embedding is stated differently in two places.",
    severity="warning",
    check=_check,
)
