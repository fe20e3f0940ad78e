"""Between the last state of the target and the logits that are made of it there is not exactly one norm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Confidence, Finding, Related
from eaglelint.rule import Facts, Rule

from .._training import row

if TYPE_CHECKING:
    from eaglelint.artifacts.dump import DumpedAs
    from eaglelint.practice import HeadUse
    from eaglelint.survey.facts import Place

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    practice, target = facts.practice, facts.target
    if facts.draft is None or practice is None or target is None:
        return
    flag = facts.dump.norm if facts.dump is not None else None
    places: dict[Place, list[HeadUse]] = {}
    for use in practice.heads:
        if _total(use, target.num_layers, flag) is not None:
            places.setdefault(use.place, []).append(use)
    for place, uses in places.items():
        totals = {_total(use, target.num_layers, flag): use for use in uses}
        if 1 not in totals:
            total, use = next(iter(totals.items()))
            assert total is not None
            yield _finding(rule, place, use, total, flag)


def _total(use: HeadUse, last: int, flag: DumpedAs | None) -> int | None:
    """All norms on the way; None where that is not known."""
    if use.state.form in ("stream", "norm") and use.state.boundary == last:
        return use.total
    if use.state.form == "unknown" and flag is not None and use.key is not None:
        return use.norms + (not flag.prenorm)
    return None


def _finding(rule: Rule, place: Place, use: HeadUse, total: int, flag: DumpedAs | None) -> Finding:
    known = use.state.known
    what = str(use.state) if known else f"{use.key} of the dump, taken {_stage(flag)},"
    how = "the final norm is applied nowhere" if total == 0 else f"a norm is applied {total} times"
    related = row("captured", use.captured)
    if not known and flag is not None:
        related += (Related("dumped", flag.key, flag.span),)
    confidence: Confidence = "certain" if known else "likely"
    return rule.finding(
        f"logits are made of {what} and {how}: they are not the target's own",
        place.span,
        confidence=confidence,
        annotation=f"{total} norms on the way" if total else "no norm on the way",
        related=related,
        help="Apply the target's final norm, with its own weight, just once: where the state is captured or before the "
        "head, and say in the dump which it is.",
        identity=("norms", str(total), place.code),
    )


def _stage(flag: DumpedAs | None) -> str:
    return "before the final norm" if flag is not None and flag.prenorm else "after the final norm"


RULE = Rule(
    code="NRM003",
    name="miscounted-norms",
    summary="The target's logits are made without the final norm, or with two.",
    severity="error",
    check=_check,
)
