"""The engine is given a map of frequent tokens for a draft that has a vocabulary of its own."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding, Related
from eaglelint.rule import Facts, Rule

from .._header import stated_by, tensor_row

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, launch = facts.draft, facts.launch
    given = None if launch is None else launch.get("token_map")
    if draft is None or given is None or draft.embedded:
        return
    own = None if facts.checkpoint is None else facts.checkpoint.find("d2t")
    small, full = stated_by(draft, "draft_vocab_size"), stated_by(draft, "vocab_size")
    reduced = small is not None and full is not None and small.value < full.value
    if own is None and not reduced:
        return
    rows: tuple[Related, ...] = () if own is None else (tensor_row(own),)
    if reduced:
        assert small is not None
        rows = (*rows, Related("draft", str(small), small.span))
    yield rule.finding(
        f"{given.flag} gives a map of tokens to a draft that has a vocabulary of its own: one of the two is left out, "
        "or the head is cut twice",
        given.span,
        confidence="likely",
        related=rows,
        help=f"Leave {given.flag} out: the draft's own map comes with its checkpoint as d2t.",
        identity=(given.flag,),
    )


RULE = Rule(
    code="VOC007",
    name="second-token-map",
    summary="A map of tokens is given for a draft that has its own.",
    severity="warning",
    check=_check,
)
