"""The draft's config has a key that looks like wiring and that no reader knows."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Edit, Finding
from eaglelint.rule import Facts, Rule

from .._messages import key_phrase
from ._keys import KNOWN_KEYS, MODEL_KEYS, WIRING_STEMS

__all__ = ["RULE"]

_SECTIONS = ((), ("eagle_config",), ("dflash_config",))
_ALIKE = 0.87


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    # A target that holds its drafter has keys of its own.
    if draft is None or draft.embedded or draft.kind in ("unknown", "mtp"):
        return
    for section in _SECTIONS:
        node = draft.node(*section)
        for key, value in () if node is None else node.items():
            if key in KNOWN_KEYS or key in MODEL_KEYS or len(key) > 80:
                continue
            near = get_close_matches(key, KNOWN_KEYS, n=1, cutoff=_ALIKE) if "_" in key else []
            if not near and not any(stem in key.lower() for stem in WIRING_STEMS):
                continue
            yield _unknown(rule, draft, (*section, key), near[0] if near else None, value.value)


def _unknown(rule: Rule, draft: DraftConfig, key_path: tuple[str, ...], near: str | None, value: object) -> Finding:
    span = draft.key_span(*key_path)
    assert span is not None
    free = near is not None and draft.node(*key_path[:-1], near) is None
    edits = (Edit("unsafe", span, f'"{near}"', f"the key that readers know: {near}"),) if free else ()
    return rule.finding(
        f"no reader is known of {key_phrase(key_path)}" + (f"; did you mean {near}?" if near else ""),
        span,
        confidence="likely" if near else "possible",
        annotation=f"did you mean {near}?" if near else "",
        help="An engine passes over a key that it does not know, and does what it would do without."
        + ("" if near else " Write what it says under the key that your engine reads."),
        edits=edits,
        identity=(".".join(key_path), str(value)[:40]),
    )


RULE = Rule(
    code="CFG002",
    name="unknown-key",
    summary="A key looks like wiring, and no reader knows it.",
    severity="warning",
    check=_check,
)
