"""The target is split into pipeline stages, and the draft needs states of layers on all of them."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding, Related
from eaglelint.rule import Facts, Rule

from .._messages import key_phrase, takes_auxiliary_states
from ._stranded_in_source import stranded_in_source

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    if facts.draft is None:
        yield from stranded_in_source(rule, facts)
    draft, launch = facts.draft, facts.launch
    stages = None if launch is None else launch.get("pipeline_stages")
    if draft is None or launch is None or stages is None or not takes_auxiliary_states(draft):
        return
    if stages.number is None or stages.number < 2:
        return
    ids = draft.layer_ids[0] if draft.layer_ids else None
    which = f"layers {list(ids.values)}" if ids is not None else "layers all over the target"
    yield rule.finding(
        f"{stages.flag} {stages.value} splits the target into stages, and the draft is fed states of {which}: what is "
        "captured on another stage than the last does not reach it, unless the engine carries it along",
        stages.span,
        confidence="likely",
        related=() if ids is None else (Related("draft", key_phrase(ids.key_path), ids.span),),
        help="Serve the target on one stage (tensor parallelism keeps all states), or check that this release of "
        f"{launch.engine} hands captured states on for this target class.",
        identity=(stages.value or "", launch.engine),
    )


RULE = Rule(
    code="PAR002",
    name="split-target",
    summary="Captured states stay on pipeline stages that the draft is not on.",
    severity="warning",
    check=_check,
)
