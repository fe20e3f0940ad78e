"""The target's states are rotated by its quantisation, and the draft was trained on states that are not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._messages import takes_auxiliary_states

__all__ = ["RULE"]

# QuaRot and SpinQuant turn the residual stream; compressed-tensors writes a transform_config, msModelSlim a flag.
_ROTATED = re.compile(r"quarot|spinquant|hadamard|rotat|transform_config", re.IGNORECASE)
_MOST = 2_000


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, target = facts.draft, facts.target
    if draft is None or target is None or draft.embedded or not takes_auxiliary_states(draft):
        return
    said = target.text_node("quantization_config")
    mark = None if said is None else _mark(said.value)
    if said is None or mark is None:
        return
    yield rule.finding(
        f"the target's quantisation rotates its states ({mark}): a draft that was trained beside the plain target is "
        "fed rotated ones, and an embedding that it shares is rotated too",
        said.span,
        confidence="possible",
        annotation="rotated",
        help="Train the draft on this target's states, or check that the engine turns them back before it hands them "
        "to the draft.",
        identity=(mark,),
    )


def _mark(config: Any) -> str | None:
    """The first key or text that speaks of a rotation and is not switched off."""
    pending: list[tuple[str, Any]] = [("", config)]
    for _ in range(_MOST):
        if not pending:
            return None
        key, value = pending.pop(0)
        if isinstance(value, dict):
            if _ROTATED.search(key) and value:
                return key
            pending += [(str(name), inner) for name, inner in value.items()]
        elif isinstance(value, list):
            pending += [(key, inner) for inner in value[:100]]
        elif (value is True and _ROTATED.search(key)) or (isinstance(value, str) and _ROTATED.search(value)):
            return f"{key}: {value}"[:80].replace(": True", "")
    return None


RULE = Rule(
    code="WGT007",
    name="rotated-target",
    summary="The target's quantisation rotates the states that the draft is fed.",
    severity="warning",
    check=_check,
)
