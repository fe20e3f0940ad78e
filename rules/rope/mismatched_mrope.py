"""The draft's positions of images and video do not add up, or are counted otherwise than the target's."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.document import Node
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.artifacts.target import TargetConfig
from eaglelint.finding import Finding, Related, Span
from eaglelint.rule import Facts, Rule

from .._header import stated_by
from ._settings import scaling_of, scaling_of_target

__all__ = ["RULE"]

_KEY = "mrope_section"


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    if draft is None or draft.embedded or draft.kind in ("unknown", "mtp"):
        return
    own, theirs = _sections(scaling_of(draft)), _sections(scaling_of_target(facts.target))
    if own is not None:
        yield from (
            _short(rule, draft, own)
            if _rotated(draft) not in (None, 2 * sum(own.value))
            else (_other(rule, draft, facts.target, own, theirs))
        )
    elif theirs is not None:
        yield rule.finding(
            "the target counts a position of an image by time, height and width "
            f"({_KEY} {theirs.value}); the draft has no {_KEY} and counts one number",
            _place(draft),
            confidence="possible",
            severity="note",
            related=(Related("target", f"{_KEY} {theirs.value}", theirs.span),),
            help="Of text nothing is lost. Where the draft was trained on images with the target's positions, copy the "
            "target's object into this config.",
            identity=("none", *map(str, theirs.value)),
        )


def _short(rule: Rule, draft: DraftConfig, own: Node) -> Iterator[Finding]:
    rotated = _rotated(draft)
    assert rotated is not None
    yield rule.finding(
        f"{_KEY} {own.value} covers {sum(own.value)} pairs, and a head has {rotated // 2} that are turned "
        f"({rotated} numbers): vLLM stops there, SGLang changes the sections",
        own.span,
        confidence="certain",
        annotation=f"adds up to {sum(own.value)}, not {rotated // 2}",
        help=f"Write the {_KEY} that the draft was trained with, for its own head_dim.",
        identity=("sum", str(sum(own.value)), str(rotated)),
    )


def _other(
    rule: Rule, draft: DraftConfig, target: TargetConfig | None, own: Node, theirs: Node | None
) -> Iterator[Finding]:
    """Heads of one size, and sections that differ: copied from another model, unless it was trained so."""
    if theirs is None or own.value == theirs.value or sum(own.value) != sum(theirs.value):
        return
    yield rule.finding(
        f"{_KEY} is {own.value}, and the target's is {theirs.value}: the draft turns other numbers of a head by the "
        "height and width of an image than the target does",
        own.span,
        confidence="possible",
        severity="warning",
        annotation=f"the target has {theirs.value}",
        related=(Related("target", f"{_KEY} {theirs.value}", theirs.span),),
        help="A draft may be trained so. Check that the value was not taken over from another target's draft.",
        identity=("target", *map(str, own.value), *map(str, theirs.value)),
    )


def _sections(scaling: Node | None) -> Node | None:
    node = None if scaling is None else scaling.get(_KEY)
    numbers = node.value if node is not None else None
    return node if isinstance(numbers, list) and numbers and all(type(part) is int for part in numbers) else None


def _rotated(draft: DraftConfig) -> int | None:
    """How many numbers of a head are turned; None where the config does not say."""
    heads, width, size = (stated_by(draft, key) for key in ("num_attention_heads", "hidden_size", "head_dim"))
    each = size.value if size is not None else None
    if each is None and heads is not None and width is not None and heads.value > 0:
        each = width.value // heads.value
    part = draft.text_node("partial_rotary_factor") or _within(draft, "partial_rotary_factor")
    factor = 1 if part is None else part.value
    if each is None or not isinstance(factor, (int, float)) or isinstance(factor, bool):
        return None
    return int(each * factor)


def _within(draft: DraftConfig, key: str) -> Node | None:
    scaling = scaling_of(draft)
    return None if scaling is None else scaling.get(key)


def _place(draft: DraftConfig) -> Span:
    """Where the draft says how it counts positions, or could say so."""
    spans = (draft.key_span(key) for key in ("rope_scaling", "rope_parameters", "rope_theta", "architectures"))
    return next((span for span in spans if span is not None), draft.span())


RULE = Rule(
    code="ROP004",
    name="mismatched-mrope",
    summary="The draft's positions of images do not add up, or are counted otherwise than the target's.",
    severity="error",
    check=_check,
)
