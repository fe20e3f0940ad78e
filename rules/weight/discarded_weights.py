"""The engine does without weights that the draft's checkpoint has: it takes the target's, or none at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.artifacts.checkpoint import Checkpoint, Tensor
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Finding, Related
from eaglelint.rule import Facts, Rule

from .._header import tensor_row

if TYPE_CHECKING:
    from eaglelint.artifacts.embeddings import EmbeddingRows
    from eaglelint.survey.facts import Unused

__all__ = ["RULE"]

_SAYS = {
    "left out": "is never loaded: the class leaves {module} out and keeps one of its own, which nothing fills",
    "dropped": "is loaded under another name, and then dropped: the test for it asks for the old one",
}


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, checkpoint = facts.draft, facts.checkpoint
    if draft is None or checkpoint is None or draft.embedded:
        return
    for cls in facts.draft_classes:
        for unused in cls.unused:
            tensor = _tensor(checkpoint, unused.module)
            if tensor is None:
                continue
            if unused.how == "replaced":
                yield from _replaced(rule, facts, draft, cls.engine, unused, tensor)
            else:
                said = _SAYS[unused.how].format(module=unused.module)
                yield _finding(rule, draft, f"{tensor.name} {said} ({cls.engine})", cls.engine, unused, tensor)


def _tensor(checkpoint: Checkpoint, module: str) -> Tensor | None:
    return checkpoint.find(f"{module}.weight") or checkpoint.find(module)


def _replaced(
    rule: Rule, facts: Facts, draft: DraftConfig, engine: str, unused: Unused, tensor: Tensor
) -> Iterator[Finding]:
    """Sharing is right where both are the same. Where that cannot be seen, only a head may well be the draft's own."""
    rows = facts.embeddings if unused.module == "embed_tokens" else facts.heads
    if rows is not None and rows.same:
        return
    if rows is None and unused.module != "lm_head":
        return
    known = "" if rows is None else f", from which it differs in the {len(rows.rows)} rows compared"
    message = f"{engine} puts the target's {unused.module} in place of the draft's{known}: {tensor.name} is not used"
    yield _finding(rule, draft, message, engine, unused, tensor, rows)


def _finding(
    rule: Rule,
    draft: DraftConfig,
    message: str,
    engine: str,
    unused: Unused,
    tensor: Tensor,
    rows: EmbeddingRows | None = None,
) -> Finding:
    unseen = unused.how == "replaced" and rows is None
    other = () if rows is None else (tensor_row(rows.target),)
    return rule.finding(
        message,
        draft.key_span("architectures") or draft.span(),
        confidence="possible" if unseen else "certain",
        severity="warning" if unseen else None,
        related=(Related(unused.how, unused.place.code, unused.place.span), tensor_row(tensor), *other),
        help="Serve the draft with a release that keeps what the draft brings, or train it with the target's "
        f"{unused.module} as it is."
        if unused.how == "replaced"
        else "Take a release of the engine in which this is mended.",
        identity=(engine, unused.module, unused.how),
    )


RULE = Rule(
    code="WGT002",
    name="discarded-weights",
    summary="The engine does without weights that the draft's checkpoint has.",
    severity="error",
    check=_check,
)
