"""``use_aux_hidden_state`` says one thing, and the ids or the checkpoint another."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Edit, Finding, Span
from eaglelint.rule import Facts, Rule

from .._edits import replace_value
from .._header import stated_by, target_width, tensor_row
from .._messages import engine_of, key_phrase, served_rows, switched_off

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    if draft is None or draft.embedded or not switched_off(draft):
        return
    path, span = _flag(draft)
    for served in facts.servings:
        wiring = served.wiring
        if wiring.slots and wiring.status in ("exact", "conditional"):
            yield rule.finding(
                f"{key_phrase(path)} is false, and {engine_of(wiring)} captures {wiring} all the same: the "
                "draft is fed states that it has no place for",
                span,
                confidence="certain" if wiring.status == "exact" else "likely",
                related=served_rows(wiring, 0),
                help="Serve this draft with a release that reads the flag, or as one that takes the last state alone.",
                identity=("served", wiring.engine or "", str(wiring)),
            )
    fc = None if facts.checkpoint is None else facts.checkpoint.find("fc.weight")
    width = target_width(draft, facts.target) or stated_by(draft, "hidden_size")
    states = fc.shape[1] // width.value if fc is not None and len(fc.shape) == 2 and width and width.value > 0 else None
    edits: tuple[Edit, ...] = ()
    if states is not None and states > 1:
        node = draft.node(*path)
        assert fc is not None and node is not None
        edits = (replace_value(node, True, "safe", "fc takes captured states"),)
        yield rule.finding(
            f"{key_phrase(path)} is false, and fc.weight takes {fc.shape[1]} features, {states} captured states: an "
            "engine that follows the flag feeds one",
            span,
            confidence="likely",
            related=(tensor_row(fc),),
            help="Write true, and the ids of the layers.",
            edits=edits,
            identity=("fc", str(fc.shape[1])),
        )
    elif draft.layer_ids and states is None:
        ids = draft.layer_ids[0]
        yield rule.finding(
            f"{key_phrase(path)} is false, and the config names layers in {key_phrase(ids.key_path)}: an engine that "
            "follows the flag passes them over, and one that does not captures them",
            span,
            confidence="likely",
            severity="warning",
            help="Write true if the draft was trained on these layers; else leave the ids out.",
            identity=("ids", ".".join(ids.key_path)),
        )


def _flag(draft: DraftConfig) -> tuple[tuple[str, ...], Span]:
    for path in (("eagle_config", "use_aux_hidden_state"), ("use_aux_hidden_state",)):
        node = draft.node(*path)
        if node is not None and node.value is False:
            return path, node.span
    raise AssertionError("asked of a draft without the flag")


RULE = Rule(
    code="CFG006",
    name="contradicted-aux-states",
    summary="use_aux_hidden_state contradicts the ids or the checkpoint.",
    severity="error",
    check=_check,
)
